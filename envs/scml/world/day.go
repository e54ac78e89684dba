package world

import "math"

// Lot is what a contract brings on the day of its delivery.
type Lot struct {
	// Quantity is what was agreed, Price the money per unit.
	Quantity int
	Price    float64
	// Contract is a number of the caller's, which stays with the lot; those of the factory's own
	// lots are -1.
	Contract int
	// Sold is written by Settle: how much of a sale was made and paid for.
	Sold int
}

// Total is a quantity, and the money for all of it.
type Total struct {
	Quantity int
	Money    float64
}

// FactoryDay is what a factory begins the settlement of a day with.
type FactoryDay struct {
	// Balance is the money before the day, Cost that of making a unit, Lines how many can be made.
	Balance float64
	Cost    float64
	Lines   int
	// Stock is the number of input units from days before.
	Stock int
	// Supply and Demand are the exogenous contracts due.
	Supply, Demand Total
	// Shortfall is the penalty for a unit that was owed and not made, Storage the cost of an input
	// unit that is left: money per unit, at the trading prices the day began with.
	Shortfall, Storage float64
}

// Outcome is what a day brought.
type Outcome struct {
	// Made is the number of units made, all of them sold.
	Made int
	// Bought is what was delivered today, exogenous supply included, and Owed what was to be
	// delivered.
	Bought, Owed int
	// Missing is the shortfall, Left how many input units were not used.
	Missing, Left int
	// Revenue, Paid, Penalty and Kept are the money for sales, supplies, the shortfall and storage.
	Revenue, Paid, Penalty, Kept float64
	// Profit is what the balance changes by.
	Profit float64
	// Stock is the number of input units after the day.
	Stock int
}

// Settle computes the day of a factory that receives buys and owes sells. It orders both in place
// and appends a lot of the factory's own to each, which callers that reuse them cut off again; both
// are returned.
//
// Stock and exogenous contracts count as one more lot of their mean price. Money is checked along
// the inputs, cheapest first: production stops at the first lot that cannot be paid for together
// with making it, but everything is received and paid. Sales are served dearest first.
func (d *FactoryDay) Settle(r *Rules, buys, sells []Lot) (Outcome, []Lot, []Lot) {
	var o Outcome
	o.Bought, o.Owed = d.Supply.Quantity, d.Demand.Quantity
	for i := range buys {
		o.Bought += buys[i].Quantity
	}
	for i := range sells {
		o.Owed += sells[i].Quantity
	}
	buys, sells = pooled(buys, d.Supply, d.Stock), pooled(sells, d.Demand, 0)
	order(buys, 1)
	order(sells, -1)

	stopped, payable, in := d.Balance < 0, 0, 0
	for _, l := range buys {
		if !stopped && o.Paid+float64(l.Price*float64(l.Quantity))+float64(float64(l.Quantity)*d.Cost) > d.Balance {
			payable, stopped = in+floorDiv(d.Balance-o.Paid, l.Price+d.Cost), true
		}
		o.Paid += float64(l.Price * float64(l.Quantity))
		in += l.Quantity
	}
	if !stopped {
		payable = in
	}
	can := min(payable, d.Lines)

	out := 0
	for i := range sells {
		l := &sells[i]
		l.Sold = max(0, min(l.Quantity, can-out))
		o.Revenue += float64(float64(l.Sold) * l.Price)
		out += l.Quantity
	}

	o.Made = min(can, out, in, d.Lines)
	o.Missing = max(0, out-o.Made)
	o.Left = max(0, in-o.Made)
	o.Kept = float64(float64(o.Left) * d.Storage)
	o.Penalty = float64(float64(o.Missing) * d.Shortfall)
	o.Profit = o.Revenue - o.Paid - float64(d.Cost*float64(o.Made)) - o.Kept - o.Penalty
	if o.Stock = d.Stock + max(0, o.Bought-o.Made); r.StockShrinks {
		o.Stock = o.Left
	}
	return o, buys, sells
}

// pooled appends what a factory has without negotiating, as one lot. It is last among lots of its
// price.
func pooled(lots []Lot, t Total, stock int) []Lot {
	if q := t.Quantity + stock; q > 0 {
		lots = append(lots, Lot{Quantity: q, Price: t.Money / float64(q), Contract: -1})
	}
	return lots
}

// order sorts by price, up or down, and keeps the order of equal ones. There are few.
func order(lots []Lot, sign float64) {
	for i := 1; i < len(lots); i++ {
		l := lots[i]
		j := i
		for ; j > 0 && sign*lots[j-1].Price > sign*l.Price; j-- {
			lots[j] = lots[j-1]
		}
		lots[j] = l
	}
}

// floorDiv is x/y rounded down, from the remainder, as Python's // of floats is.
func floorDiv(x, y float64) int {
	rest := math.Mod(x, y)
	q := (x - rest) / y
	if rest != 0 && (rest < 0) != (y < 0) {
		q--
	}
	down := math.Floor(q)
	if q-down > 0.5 {
		down++
	}
	return int(down)
}

// Breach returns the share of what a factory owes on a day that it cannot make, as financial
// reports count it, given the totals due today with exogenous contracts in them.
func (d *FactoryDay) Breach(r *Rules, in, out int) float64 {
	if !r.BreachOnce {
		in, out = in+d.Supply.Quantity, out+d.Demand.Quantity
	}
	can := min(in+d.Stock, d.Lines)
	if out <= can {
		return 0
	}
	return float64(out-can) / float64(out)
}
