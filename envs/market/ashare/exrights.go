package ashare

// Distribution is what holders of a share get on the ex date: cash before tax in 1/10,000 yuan a
// share, bonus shares and rights to buy new ones for RightsPrice, both in shares for 10,000 held.
type Distribution struct {
	Cash, Bonus, Rights int64
	RightsPrice         Fen
}

// Reference returns the previous close of the ex date, to which limits refer, from the last close
// before: what was paid out is taken off, what rights cost added, and the sum divided by the shares
// that there are of one, to the tick, halves up.
func (d Distribution) Reference(last Fen) Fen {
	return Fen(roundHalfUp((int64(last)*100-d.Cash)*10_000+int64(d.RightsPrice)*100*d.Rights, 100*(10_000+d.Bonus+d.Rights)))
}

// Shares returns the bonus shares for a holding, halves up. Exchanges give fractions to the largest
// holders of them in turn, which one holder cannot know.
func (d Distribution) Shares(held int64) int64 { return roundHalfUp(held*d.Bonus, 10_000) }

// Paid returns the cash for a holding, before tax, to the fen.
func (d Distribution) Paid(held int64) Fen { return Fen(roundHalfUp(held*d.Cash, 100)) }
