package ashare

// Lot says how many shares one order may have: Min and any number of Steps more, up to Max.
type Lot struct{ Min, Step, Max int64 }

// lots, section 4.5 of the reference: SSE's page on its trading mechanism (multiples of 100, at
// most 1,000,000; Shenzhen alike), STAR's 200 and single shares above, BSE's 100 and single shares
// above (wodefinance.com). The largest orders of STAR and of ChiNext since 2020 are those of limit
// orders and from memory.
var lots = [boards][]dated[Lot]{
	MainSH:  {{begin, Lot{100, 100, 1_000_000}}},
	MainSZ:  {{begin, Lot{100, 100, 1_000_000}}},
	ChiNext: {{chiNextOpened, Lot{100, 100, 1_000_000}}, {chiNextReform, Lot{100, 100, 300_000}}},
	STAR:    {{starOpened, Lot{200, 1, 100_000}}},
	BSE:     {{bseOpened, Lot{100, 1, 1_000_000}}},
}

// Lot returns the lots of a board.
func (r Rules) Lot(b Board) Lot { return at(lots[b], r.date) }

// Buy returns the largest number of shares up to want that can be bought, 0 if none can. More than
// Max take several orders.
func (l Lot) Buy(want int64) int64 {
	if want < l.Min {
		return 0
	}
	return l.Min + (want-l.Min)/l.Step*l.Step
}

// Sell returns the largest number of shares up to want that can be sold by whoever holds held of
// them, 0 if none can. What is held below a lot is sold in one order: a holding of 250 in lots of
// 100 can give 50, 100, 150, 200 or 250, and of a STAR share at least 200.
func (l Lot) Sell(want, held int64) int64 {
	if want >= held {
		return held
	}
	odd := held % l.Step
	n := want / l.Step * l.Step
	if want >= odd {
		n = max(n, odd+(want-odd)/l.Step*l.Step)
	}
	if n < l.Min && n != odd {
		return 0
	}
	return n
}

// Settlement says after how many days of trading something can be used: shares that were bought can
// be sold, the cash of a sale can buy again, and it can be withdrawn.
type Settlement struct{ Shares, Cash, Withdrawal int }

// settlements, section 4.5 of the reference (SSE): T+1 for shares; cash buys at once.
var settlements = []dated[Settlement]{{begin, Settlement{1, 0, 1}}}

// Settlement returns when shares and cash can be used again; it is the same on all boards.
func (r Rules) Settlement() Settlement { return at(settlements, r.date) }
