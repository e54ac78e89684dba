package rules

// The sides of an order.
const (
	Buy = iota
	Sell
	sides
)

// Terms say how orders for an asset are executed on a day. Money is in hundredths.
type Terms struct {
	Lot Lot
	// Levies are taxes and fees beside the commission, by side.
	Levies [sides][2]Levy
}

// Levy is a tax or fee of an order: a part of its amount and of the par value of its shares, 1.00
// each, and at least Least.
type Levy struct {
	OfAmount, OfPar Rate
	Least           int64
}

// Of returns the levy for an order.
func (l *Levy) Of(amount, shares int64) int64 {
	fee := int64(0)
	if l.OfAmount != 0 {
		fee = l.OfAmount.Of(amount)
	}
	if l.OfPar != 0 {
		fee += l.OfPar.Of(100 * shares)
	}
	return max(fee, l.Least)
}

// Rate is a fraction in units of 1e-7: 10,000 is 0.1 %.
type Rate int64

// Of returns the fraction of an amount, halves up.
func (r Rate) Of(amount int64) int64 { return (2*amount*int64(r) + 10_000_000) / 20_000_000 }

// Lot says how many shares one order may have: Min and any number of Steps more, up to Max.
type Lot struct{ Min, Step, Max int64 }

// Buy returns the largest number of shares up to want that can be bought, 0 if none can. More than
// Max take several orders.
func (l Lot) Buy(want int64) int64 {
	if want < l.Min {
		return 0
	}
	return l.Min + l.steps(want-l.Min)
}

// steps is the largest multiple of Step up to n. The usual steps are compiled as products;
// quotients of integers below 2⁵³ are exact enough, and faster than those of integers.
func (l Lot) steps(n int64) int64 {
	switch l.Step {
	case 1:
		return n
	case 100:
		return int64(uint64(n) / 100 * 100)
	}
	return int64(float64(n)/float64(l.Step)) * l.Step
}

// Sell returns the largest number of shares up to want that can be sold by whoever holds held of
// them, 0 if none can. What is held below a lot is sold in one order: a holding of 250 in lots of
// 100 can give 50, 100, 150, 200 or 250, and of a STAR share at least 200.
func (l Lot) Sell(want, held int64) int64 {
	if want >= held {
		return held
	}
	odd, n := held-l.steps(held), l.steps(want)
	if odd > 0 && want >= odd {
		n = max(n, odd+l.steps(want-odd))
	}
	if n < l.Min && n != odd {
		return 0
	}
	return n
}
