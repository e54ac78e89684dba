package shield

import (
	"github.com/onnxrl/onnxrl/envs/scml/negotiation"
	"github.com/onnxrl/onnxrl/envs/scml/world"
)

// Sides of a factory.
const (
	Buy  = 0
	Sell = 1
)

// Ledger is what a factory has agreed, by day of delivery, and what comes to it from outside. It
// belongs to one agent, which tells it of the days and of its contracts.
type Ledger struct {
	v *world.View
	memory

	// The days ahead: units that come and that are owed, and the money.
	in, out []int
	// more are units that come if open offers are accepted.
	more            []int
	expense, income []float64
}

// memory is what the rest of a world depends on.
type memory struct {
	// Paid and Earned is the money for what was agreed, by day of delivery.
	Paid   []float64 `json:"paid"`
	Earned []float64 `json:"earned"`
	// Outside counts the exogenous units of the days seen so far, of both sides.
	Outside [2]int `json:"outside"`
	Seen    int    `json:"seen"`
	// Held are offers of the agent's that are open, and may all be accepted.
	Held []hold `json:"held"`
}

// hold is an open offer.
type hold struct {
	Slot  int               `json:"slot"`
	Side  int               `json:"side"`
	Offer negotiation.Offer `json:"offer"`
}

// Starts begins the ledger of a world.
func (l *Ledger) Starts(v *world.View) {
	*l = Ledger{v: v, memory: memory{Paid: make([]float64, v.Days()), Earned: make([]float64, v.Days())}}
}

// DayBegins takes notice of today's exogenous contracts. Offers of the day before are no longer
// open.
func (l *Ledger) DayBegins() {
	l.Outside[Buy] += l.v.Supply().Quantity
	l.Outside[Sell] += l.v.Demand().Quantity
	l.Seen++
	l.Held = l.Held[:0]
}

// Agreed enters a contract of the agent's, and releases the open offer that it came of.
func (l *Ledger) Agreed(c *world.Contract) {
	money := float64(c.Quantity * c.Price)
	side, partner := Buy, c.Seller
	if c.Seller == l.v.Index() {
		side, partner = Sell, c.Buyer
		l.Earned[c.Time] += money
	} else {
		l.Paid[c.Time] += money
	}
	l.release(func(h hold) bool { return h.Side == side && l.v.Partner(h.Slot) == partner })
}

// Release forgets the open offer of a slot.
func (l *Ledger) Release(slot int) { l.release(func(h hold) bool { return h.Slot == slot }) }

func (l *Ledger) release(gone func(h hold) bool) {
	kept := l.Held[:0]
	for _, h := range l.Held {
		if !gone(h) {
			kept = append(kept, h)
		}
	}
	l.Held = kept
}

// Hold keeps an offer of the agent's open, in the place of the one before it in its slot.
func (l *Ledger) Hold(slot, side int, o negotiation.Offer) {
	l.Release(slot)
	l.Held = append(l.Held, hold{slot, side, o})
}

// Expected is what comes from outside on a later day on the first level, or is owed to it on the
// last: the mean of the days seen so far, rounded down, and at most what can be made.
func (l *Ledger) Expected(side int) int {
	if l.Seen == 0 {
		return 0
	}
	return min(l.Outside[side]/l.Seen, l.v.Lines())
}

// Max returns the largest quantity, at most that of the offer, that would be safe to offer or to
// accept in a slot beside all that is agreed and all offers that are open in other slots, 0 where
// none is: see [Ledger.Safe].
func (l *Ledger) Max(slot, side int, o negotiation.Offer) int {
	if o.Quantity < 1 || !l.begin(slot, o.Time) {
		return 0
	}
	before := l.measure()
	low, high := 0, o.Quantity
	for low < high {
		x := o
		x.Quantity = (low + high + 1) / 2
		l.add(side, x, 1)
		if l.measure().worse(before, side) {
			high = x.Quantity - 1
		} else {
			low = x.Quantity
		}
		l.add(side, x, -1)
	}
	return low
}

// Safe reports whether an offer may be made, or accepted, in a slot. It is safe if, whichever of
// the open offers are accepted as well, no unit more is owed that cannot be made by the rules of
// the world, no unit more is bought that is of no use, and all supplies, and the making of what is
// owed, can be paid for on their days. What is expected from outside counts.
func (l *Ledger) Safe(slot, side int, o negotiation.Offer) bool {
	return o.Quantity > 0 && l.Max(slot, side, o) == o.Quantity
}

// begin fills in the days ahead, with the offers that are open in other slots. It reports whether a
// day is one of them.
func (l *Ledger) begin(slot, day int) bool {
	l.ahead()
	for _, h := range l.Held {
		if h.Slot != slot {
			l.add(h.Side, h.Offer, 1)
		}
	}
	return day >= l.v.Today() && day-l.v.Today() < len(l.in)
}

// ahead fills in the days from today on: what is agreed, and expected from outside.
func (l *Ledger) ahead() {
	v, today := l.v, l.v.Today()
	n := min(v.Days()-today, v.Rules().Horizon+1)
	l.in, l.out, l.more = append(l.in[:0], make([]int, n)...), append(l.out[:0], make([]int, n)...), append(l.more[:0], make([]int, n)...)
	l.expense, l.income = append(l.expense[:0], l.Paid[today:today+n]...), append(l.income[:0], l.Earned[today:today+n]...)
	for i := range n {
		l.in[i], l.out[i] = v.SuppliesAt(today+i), v.SalesAt(today+i)
		if i > 0 {
			l.in[i] += l.Expected(Buy)
			l.out[i] += l.Expected(Sell)
		}
	}
	l.in[0] += v.Supply().Quantity
	l.out[0] += v.Demand().Quantity
	l.expense[0] += v.Supply().Money
	l.income[0] += v.Demand().Money
}

// add puts an offer that may be accepted into the days ahead; sign −1 takes it out again. Supplies
// that may come make nothing, and sales that may be made earn nothing.
func (l *Ledger) add(side int, o negotiation.Offer, sign int) {
	i := o.Time - l.v.Today()
	if side == Buy {
		l.more[i] += sign * o.Quantity
		l.expense[i] += float64(sign * o.Quantity * o.Price)
		return
	}
	l.out[i] += sign * o.Quantity
}

// state is what the days ahead come to.
type state struct {
	// missing is the shortfall of all days, in units, if nothing else comes; excess is how many
	// input units are in stock that are of no use even if all that can be made is sold; broke says
	// that a day cannot pay for its supplies and for making what is owed.
	missing, excess int
	broke           bool
}

// worse reports whether a state is worse than one before something was bought or sold.
func (s state) worse(before state, side int) bool {
	if side == Buy {
		return s.excess > before.excess || s.broke
	}
	return s.missing > before.missing || s.broke && !before.broke
}

// measure goes through the days ahead by the rules of the world.
func (l *Ledger) measure() (s state) {
	v := l.v
	lines, shrinks, balance, cost := v.Lines(), v.Rules().StockShrinks, v.Balance(), float64(v.Cost())
	kept := func(stock, in, made int) int {
		if shrinks {
			return stock + in - made
		}
		return stock + max(0, in-made)
	}
	stock, full, most := v.Stock(), v.Stock(), v.Stock()
	for i := range l.in {
		made := min(stock+l.in[i], lines, l.out[i])
		s.missing += l.out[i] - made
		stock = kept(stock, l.in[i], made)

		in := l.in[i] + l.more[i]
		if full = kept(full, in, min(full+in, lines)); shrinks {
			s.excess += full
		} else {
			s.excess += max(0, full-lines)
		}

		made = min(most+in, lines, l.out[i])
		most = kept(most, in, made)
		spent := l.expense[i] + cost*float64(made)
		s.broke = s.broke || spent > balance && l.expense[i] > 0
		balance += l.income[i] - spent
	}
	return s
}
