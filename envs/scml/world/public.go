package world

// Your own agents can read the values below; the rule agents do without them.

// Catalog returns the catalog price of a product.
func (v *View) Catalog(product int) int { return v.w.c.Catalog[product] }

// TradingPrice returns the trading price of a product that is in force today.
func (v *View) TradingPrice(product int) float64 { return v.w.inForce[product] }

// Cost returns what making a unit costs the agent.
func (v *View) Cost() int { return v.factory().Cost }

// Rules returns those of the world, which are not to be changed.
func (v *View) Rules() *Rules { return &v.w.c.Rules }

// InitialBalance returns the agent's money before the first day, which scores are relative to.
func (v *View) InitialBalance() float64 { return v.factory().Balance }

// ShortfallPenalty returns the money that a unit costs today which the agent owes and does not
// make.
func (v *View) ShortfallPenalty() float64 {
	return float64(v.factory().Shortfall[v.w.s.Day] * v.w.inForce[v.Level()+1])
}

// StorageCost returns the money that an input unit costs today which is left.
func (v *View) StorageCost() float64 {
	return float64(v.factory().Storage[v.w.s.Day] * v.w.inForce[v.Level()])
}

// MeanPenalties returns what the agent knows of other days: the means of its coefficients of
// shortfall and storage, to be multiplied by trading prices.
func (v *View) MeanPenalties() (shortfall, storage float64) {
	return v.factory().ShortfallMean, v.factory().StorageMean
}

// Agents returns how many agents the world has.
func (v *View) Agents() int { return len(v.w.views) }

// Levels returns how many levels there are.
func (v *View) Levels() int { return len(v.w.levels) }

// Buys reports whether anybody negotiates with the agent about its input, and Sells about its
// output: between levels 1 and 2 of four nobody does, unless that is repaired.
func (v *View) Buys() bool { return v.w.negotiated(v.Level()) }

// Sells reports whether the agent's output is negotiated about.
func (v *View) Sells() bool { return v.w.negotiated(v.Level() + 1) }

// negotiated reports whether negotiations about a product can begin. Levels call every second one,
// from the last back, and those in between that call both ways have negotiators for one only.
func (w *run) negotiated(product int) bool {
	seller, last := product-1, len(w.levels)-1
	if seller < 0 || seller == last {
		return false
	}
	return seller == 0 || (last-seller)%2 == 1 || w.c.Rules.MiddleEdge
}

// Competitors returns the agents of the agent's level, itself included.
func (v *View) Competitors() []int { return v.w.levels[v.Level()] }

// Bankrupt reports whether an agent is, which everybody knows.
func (v *View) Bankrupt(agent int) bool { return v.w.s.Accounts[agent].Bankrupt }

// Report returns the last report of an agent, which is public from the day after it; false before
// the first one.
func (v *View) Report(agent int) (Report, bool) {
	r := v.w.s.Reports[agent]
	return r, r.Day < v.w.s.Day
}

// Outside returns what is supplied to all agents of the first level today, and demanded of all
// those of the last one.
func (v *View) Outside() (supply, demand Total) {
	for i := range v.w.views {
		s, d := v.w.supplyOf[i], v.w.demand[i]
		supply.Quantity, supply.Money = supply.Quantity+s.Quantity, supply.Money+s.Money
		demand.Quantity, demand.Money = demand.Quantity+d.Quantity, demand.Money+d.Money
	}
	return supply, demand
}

// With returns what is agreed with a partner for a day, as quantity and money; bankrupt partners'
// promises are kept, and days past have nothing.
func (v *View) With(partner, day int) Total {
	var t Total
	if day < v.w.s.Day || day >= v.w.c.Days {
		return t
	}
	for _, k := range v.w.s.Due[day] {
		c := &v.w.s.Contracts[k]
		if c.Dropped && v.w.c.Rules.ForgetBankrupt || !c.between(v.agent, partner) {
			continue
		}
		t.Quantity += c.Quantity
		t.Money += float64(c.Quantity * c.Price)
	}
	return t
}
