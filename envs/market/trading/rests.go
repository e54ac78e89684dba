package trading

// rests are what the volume of bars was too small for of the orders for each asset, [N] each; nil
// where it is cancelled. At most one of an asset's is not 0.
type rests struct {
	shares []float64 // to be sold
	amount []float64 // to be spent, in currency
	// before [N] are the positions that a fill began with, and again [N] says which of its orders
	// are rests.
	before []float64
	again  []bool
	terms  []float64 // of sums
}

func newRests(c *Config, n int) rests {
	if c.Costs.Rest != Carry {
		return rests{}
	}
	return rests{make([]float64, n), make([]float64, n), make([]float64, n), make([]bool, n), make([]float64, 0, n)}
}

func (r *rests) reset() {
	clear(r.shares)
	clear(r.amount)
}

// resting returns the orders with rests where they hold. Another order ends a rest, and so does
// leaving the universe.
func (a *Account) resting(orders []int64) []int64 {
	r := &a.rests
	copy(a.orders, orders)
	copy(r.before, a.pos)
	for i, o := range a.orders {
		r.again[i] = false
		switch {
		case o != Hold:
			r.shares[i], r.amount[i] = 0, 0
		case r.shares[i] > 0:
			a.orders[i], r.again[i] = Sell, true
		case r.amount[i] > 0:
			a.orders[i], r.again[i] = Buy, true
		}
	}
	return a.orders
}

// carrySales keeps what the bar was too small for of the sales that were ordered.
func (a *Account) carrySales(x *Charges, orders []int64, sellers []int32) {
	r := &a.rests
	for _, i := range sellers {
		if orders[i] != Sell {
			continue
		}
		r.shares[i] = 0
		if want := a.sales[i]; want > x.Most(int(i)) {
			r.shares[i] = max(want-(r.before[i]-a.pos[i]), 0)
		}
	}
}

// carryPurchase is carrySales for a purchase of an amount.
func (a *Account) carryPurchase(x *Charges, i int, amount float64) {
	r, price := &a.rests, x.bar.Price[i]
	r.amount[i] = 0
	if amount > x.Most(i)*price {
		r.amount[i] = max(amount-(a.pos[i]-r.before[i])*price, 0)
	}
}

// buyRests executes the rests among the purchases and returns the other buyers. Where there is not
// cash for all, fair buyers have parts of it as their rests are, and those of the owner's rule what
// is left in their turn.
func (a *Account) buyRests(x *Charges, buyers []int32) (others []int32) {
	r, n := &a.rests, 0
	r.terms = r.terms[:0]
	for at, k := range buyers {
		if r.again[k] {
			// Rests come first, and the others stay in their order.
			copy(buyers[n+1:at+1], buyers[n:at])
			buyers[n] = k
			n++
			r.terms = append(r.terms, r.amount[k])
		}
	}
	if n == 0 {
		return buyers
	}
	cash, all, owner := a.cash, total(r.terms), a.config.Execution.CashSplit == Owner
	want := func(i int) (want, budget float64) {
		if budget = cash * (r.amount[i] / all); owner {
			budget = a.cash
		}
		if t := x.terms(i); t != nil {
			return max(min(r.amount[i], x.spend(t, i, budget)), 0), budget
		}
		return max(min(r.amount[i], x.Spend(budget)), 0), budget
	}
	g := a.guard
	if g != nil && !owner {
		clear(g.want)
		for _, i := range buyers[:n] {
			g.want[i], _ = want(int(i))
		}
		g.room(a, x, g.want)
	}
	for _, k := range buyers[:n] {
		i := int(k)
		amount, budget := want(i)
		if g != nil {
			if owner {
				clear(g.want)
				g.want[i] = amount
				g.room(a, x, g.want)
			}
			amount = g.want[i]
		}
		if t := x.terms(i); t == nil {
			a.buy(x, i, x.bar.Price[i], amount)
		} else if !a.buyWhole(x, t, i, amount, budget) {
			a.step.skipped++
		} else if owner {
			a.counted()
		}
		a.carryPurchase(x, i, amount)
	}
	a.counted()
	return buyers[n:]
}

// split keeps rests of sales what they are through a change of the number of shares.
func (r *rests) split(i int, before, after float64) {
	if r.shares != nil && before > 0 {
		r.shares[i] *= after / before
	}
}

// Rests returns what is still to be sold of each asset, in shares, and to be bought, in currency;
// nil where rests of orders are cancelled. The slices are the account's own.
func (a *Account) Rests() (shares, amount []float64) { return a.rests.shares, a.rests.amount }

// HoldRests says after [Account.Hold] what Rests was. It changes nothing where rests are cancelled,
// and forgets those of slices of another length.
func (a *Account) HoldRests(shares, amount []float64) {
	a.rests.reset()
	if len(shares) == len(a.rests.shares) && len(amount) == len(a.rests.amount) {
		copy(a.rests.shares, shares)
		copy(a.rests.amount, amount)
	}
}
