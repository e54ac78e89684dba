package world

// settle ends the day: prices move, and every factory makes, is paid and pays.
func (w *World) settle() {
	r, st := &w.c.Rules, &w.statistics
	w.gather()
	for p := range w.s.Prices {
		w.s.Prices[p].Update(r, st.Quantity[p], st.Money[p])
	}
	if r.DeliverMade && len(w.delivered) < len(w.s.Contracts) {
		w.delivered = append(w.delivered, make([]int, len(w.s.Contracts)-len(w.delivered))...)
	}
	for i := range w.s.Accounts {
		w.settleOne(i)
	}
	if w.s.Day%r.ReportPeriod == 0 {
		days := float64(w.s.Day + 1)
		for i := range w.s.Accounts {
			a := &w.s.Accounts[i]
			w.s.Reports[i] = Report{Day: w.s.Day, Cash: a.Balance, Bankrupt: a.Bankrupt, BreachProb: float64(a.Breaches) / days, BreachLevel: a.Breach / days}
		}
	}
}

// gather finds the contracts that are delivered today and adds them up by product.
func (w *World) gather() {
	st, last := &w.statistics, len(w.s.Prices)-1
	for i := range w.s.Accounts {
		w.buysOf[i], w.sellsOf[i] = w.buysOf[i][:0], w.sellsOf[i][:0]
		st.Quantity[0] += w.supplyOf[i].Quantity
		st.Money[0] += w.supplyOf[i].Money
		st.Quantity[last] += w.demand[i].Quantity
		st.Money[last] += w.demand[i].Money
	}
	for k := w.s.Exogenous - 1; k >= 0 && w.c.Exogenous[k].Day == w.s.Day; k-- {
		st.Executed++
		if st.Concluded++; w.s.Day == 0 && !w.c.Rules.CountOnce {
			st.Concluded++
		}
	}
	for _, k := range w.s.Due[w.s.Day] {
		c := &w.s.Contracts[k]
		if c.Dropped {
			st.Dropped++
			continue
		}
		st.Executed++
		st.Quantity[c.Product] += c.Quantity
		st.Money[c.Product] += float64(c.Quantity * c.Price)
		w.buysOf[c.Buyer] = append(w.buysOf[c.Buyer], k)
		w.sellsOf[c.Seller] = append(w.sellsOf[c.Seller], k)
	}
}

func (w *World) settleOne(i int) {
	r, f, a := &w.c.Rules, &w.c.Factories[i], &w.s.Accounts[i]
	d := FactoryDay{
		Balance: a.Balance, Cost: float64(f.Cost), Lines: w.c.Lines, Stock: a.Stock, Supply: w.supplyOf[i], Demand: w.demand[i],
		Shortfall: float64(f.Shortfall[w.s.Day] * w.inForce[f.Level+1]), Storage: float64(f.Storage[w.s.Day] * w.inForce[f.Level]),
	}
	buys, sells := w.buys[:0], w.sells[:0]
	for _, k := range w.buysOf[i] {
		c := &w.s.Contracts[k]
		quantity := c.Quantity
		if r.DeliverMade {
			quantity = w.delivered[k]
		}
		buys = append(buys, Lot{Quantity: quantity, Price: float64(c.Price), Contract: k})
	}
	for _, k := range w.sellsOf[i] {
		c := &w.s.Contracts[k]
		sells = append(sells, Lot{Quantity: c.Quantity, Price: float64(c.Price), Contract: k})
	}
	o, buys, sells := d.Settle(r, buys, sells)
	w.buys, w.sells, w.outcomes[i] = buys, sells, o
	if r.DeliverMade {
		for _, l := range sells {
			if l.Contract >= 0 {
				w.delivered[l.Contract] = l.Sold
			}
		}
	}
	a.Balance += o.Profit
	a.Stock = o.Stock
	if level := d.Breach(r, o.Bought, o.Owed); level > 0 {
		a.Breaches++
		a.Breach += level
	}
	if a.Balance < 0 && !a.Bankrupt {
		w.bankrupt(i)
	}
}

// bankrupt drops what an agent has agreed for later days.
func (w *World) bankrupt(i int) {
	w.s.Accounts[i].Bankrupt = true
	for day := w.s.Day + 1; day < w.c.Days; day++ {
		for _, k := range w.s.Due[day] {
			c := &w.s.Contracts[k]
			if c.Dropped || c.Seller != i && c.Buyer != i {
				continue
			}
			c.Dropped = true
			if !w.c.Rules.ForgetBankrupt {
				continue
			}
			w.s.Accounts[c.Seller].Sales[day] -= c.Quantity
			w.s.Accounts[c.Buyer].Supplies[day] -= c.Quantity
		}
	}
}
