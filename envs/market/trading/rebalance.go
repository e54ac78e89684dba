package trading

import "math"

// rebalancing is what an account needs to trade towards weights; nothing is allocated in a step.
type rebalancing struct {
	// worth [N] is the value of each position and want [N] by how much it is to change; terms [N+1]
	// are those of sums.
	worth, want, terms []float64
	sides              []Sides // [N] what can be done
	kept               []bool  // [N] positions that stay as they are
}

func newRebalancing(n int) rebalancing {
	numbers := make([]float64, 3*n+1)
	return rebalancing{worth: numbers[:n:n], want: numbers[n : 2*n : 2*n], terms: numbers[2*n:], sides: make([]Sides, n), kept: make([]bool, n)}
}

// Rebalance trades from what is held towards target weights [N+1], of the assets and, last, of the
// cash, at the prices of a bar: all sells, then all buys. The weights must have passed
// [CheckWeights], and the configuration must be one of weights. Fills are overwritten by the next
// trade. See the package comment for what is done where not all can be done.
func (a *Account) Rebalance(weights []float64, b *Bar) {
	a.forget()
	x := a.config.Charges(b)
	a.unsettled.begin(b.Date)
	a.cents, a.bar = hundredths(a.cash), b.Number
	g, open := a.guard, Both
	if g != nil {
		open = g.begin(a, &x)
		weights = g.clip(weights)
		defer g.end(a, &x)
	}
	a.plan(weights, &x, open)
	r, price, lot, cash := &a.rebalancing, b.Price, a.config.Execution.Lot, a.cash
	for i, d := range r.want {
		if a.sales[i] = -1; d >= 0 {
			continue
		}
		shares := min(-d/price[i], a.pos[i])
		if t := x.terms(i); t != nil {
			if t.Lot.Sell(whole(shares), whole(a.pos[i])) > 0 {
				a.sales[i] = shares
			}
			continue
		}
		if lot > 0 && (a.pos[i]-shares)*price[i] >= Dust {
			if shares = math.Floor(shares/lot) * lot; shares == 0 {
				continue
			}
		}
		a.sales[i] = shares
	}
	if g != nil {
		g.cut(a, &x, a.sales)
	}
	a.sellAll(&x, a.offered())
	a.settleCash(cash, 0)
	if g != nil {
		g.room(a, &x, r.want)
	}
	// The money that buys need, fees included.
	terms := r.terms[:0]
	for i, d := range r.want {
		if d > 0 {
			terms = append(terms, d+x.feeOn(i, d))
		}
	}
	part, sold := 1.0, len(a.fills)
	cash = a.cash
	if needed := total(terms); needed > a.cash {
		part = a.cash / needed
	}
	for i, d := range r.want {
		if d <= 0 {
			continue
		}
		if t := x.terms(i); t != nil {
			budget := part * (d + x.feeOn(i, d))
			if part < 1 {
				d = x.spend(t, i, budget)
			}
			a.buyWhole(&x, t, i, d, budget)
			continue
		}
		if part < 1 {
			d = x.Spend(part * (d + x.Fee(Buy, d)))
		}
		if lot > 0 && d < lot*price[i] {
			continue
		}
		if d < Dust {
			a.step.skipped++
			continue
		}
		a.buy(&x, i, price[i], d)
	}
	a.settleCash(cash, sold)
}

// settleCash makes the cash what it was before the fills from that one on, less what they cost, in
// a way that does not depend on their order.
func (a *Account) settleCash(before float64, from int) {
	if a.counted(); len(a.fills) == from || a.config.book != nil {
		return // whole hundredths have no rounding errors
	}
	terms := append(a.rebalancing.terms[:0], before)
	for _, f := range a.fills[from:] {
		terms = append(terms, -f.Shares*f.Price-f.Fee)
	}
	// A rounding error must not make a debt.
	a.cash = max(total(terms), 0)
}

// plan writes by how much the value of each position is to change, where only the open sides are.
func (a *Account) plan(weights []float64, x *Charges, open Sides) {
	r, b, rules := &a.rebalancing, x.bar, &a.config.Weights
	n := len(a.pos)
	whole := append(r.terms[:0], a.cash)
	for i, q := range a.pos {
		// Before its first bar an asset has no price.
		if r.worth[i] = 0; q != 0 {
			r.worth[i] = q * b.Price[i]
		}
		whole = append(whole, r.worth[i])
		decided := b.Decided[i] & open
		s := decided & b.Tradable[i]
		if !x.plain {
			most := x.Most(i)
			if most <= 0 {
				s = 0
			}
			if min(most, a.settled(i)) <= 0 {
				s &^= CanSell
			}
		}
		r.sides[i], r.kept[i] = s, s == 0
		if s == 0 && decided != 0 {
			a.step.skipped++
		}
	}
	value := total(whole)
	// Assets that cannot be traded, or not to the side that they would have to be, are kept, and
	// the others share the rest. This may turn around what another would have to do.
	for again := true; again; {
		again = false
		terms := append(r.terms[:0], a.cash)
		for i, w := range r.worth {
			if !r.kept[i] {
				terms = append(terms, w)
			}
		}
		free := total(terms)
		terms = append(terms[:0], weights[n])
		for i, w := range weights[:n] {
			if !r.kept[i] {
				terms = append(terms, w)
			}
		}
		per := 0.0
		if sum := total(terms); sum > 0 {
			per = free / sum
		}
		for i := range r.want {
			if r.want[i] = 0; r.kept[i] {
				continue
			}
			d := weights[i]*per - r.worth[i]
			side := CanBuy
			if d < 0 {
				side = CanSell
			}
			if d != 0 && r.sides[i]&side == 0 {
				r.kept[i], again = true, true
				if b.Decided[i]&open&side != 0 {
					a.step.skipped++
				}
				continue
			}
			r.want[i] = d
		}
	}
	terms := r.terms[:0]
	for i, d := range r.want {
		if size := math.Abs(d); size < Dust || size < rules.MinTrade*value && (d > 0 || weights[i] > 0) {
			r.want[i] = 0
		}
		terms = append(terms, math.Abs(r.want[i]))
	}
	if rules.MaxTurnover == 0 {
		return
	}
	if turnover, most := total(terms), rules.MaxTurnover*value; turnover > most {
		for i := range r.want {
			r.want[i] *= most / turnover
		}
	}
}
