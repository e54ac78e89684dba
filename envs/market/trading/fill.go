package trading

import "math"

// Dust is the amount, in the market's currency, below which nothing is traded.
const Dust = 1e-6

// trade executes the orders decided at bar t: all sells, then all buys.
func (e *Env) trade(orders []int64) {
	n, x := len(e.pos), &e.source.config.Execution
	bar, prices := e.t+1, e.market.Open
	switch x.Fill {
	case NextClose:
		prices = e.market.Close
	case SameClose:
		bar, prices = e.t, e.market.Close
	}
	price := prices[bar*n : (bar+1)*n]
	decided, filled := e.market.Tradable[e.t*n:(e.t+1)*n], e.market.Tradable[bar*n:(bar+1)*n]
	orders, filled, decided = orders[:n], filled[:n], decided[:n]
	buyers := 0
	for i, o := range orders {
		switch {
		case o == Hold:
		case !decided[i] || !filled[i]:
			e.step.skipped++
		case o == Buy:
			buyers++
		default:
			e.sell(i, bar, price[i])
		}
	}
	if buyers == 0 {
		return
	}
	// Each fair buyer spends this much, its fee included.
	share := min(e.source.config.BuyPct, 1/float64(buyers)) * e.cash
	for i, o := range orders {
		if o != Buy || !decided[i] || !filled[i] {
			continue
		}
		if x.CashSplit == Owner {
			e.buy(i, bar, price[i], e.source.config.BuyPct*e.cash)
		} else {
			e.buy(i, bar, price[i], share/(1+e.source.config.FeeRate))
		}
	}
}

// sell gives part of the position in asset i.
func (e *Env) sell(i, bar int, price float64) {
	c, held := &e.source.config, e.pos[i]
	shares := c.SellPct * held
	if lot := c.Execution.Lot; lot > 0 {
		shares = min(max(math.Floor(shares/lot), 1)*lot, held)
	}
	if (held-shares)*price < Dust {
		shares = held
	}
	if shares <= 0 {
		e.step.skipped++
		return
	}
	amount := shares * price
	fee := amount * c.FeeRate
	e.pos[i] = held - shares
	e.cash += amount - fee
	e.step.sells++
	e.book(Fill{Asset: i, Bar: bar, Shares: -shares, Price: price, Fee: fee}, amount)
}

// buy spends up to amount, and the fee on top, on asset i.
func (e *Env) buy(i, bar int, price, amount float64) {
	shares := amount / price
	if lot := e.source.config.Execution.Lot; lot > 0 {
		shares = math.Floor(shares/lot) * lot
		amount = shares * price
	}
	fee := amount * e.source.config.FeeRate
	left := e.cash - amount - fee
	if e.source.config.Execution.CashSplit == Fair {
		// Fair buyers never spend more than there is, but together they may miss zero by a rounding error.
		left = max(left, 0)
	}
	if amount < Dust || left < 0 {
		e.step.skipped++
		return
	}
	e.pos[i] += shares
	e.cash = left
	e.step.buys++
	e.book(Fill{Asset: i, Bar: bar, Shares: shares, Price: price, Fee: fee}, amount)
}

func (e *Env) book(f Fill, amount float64) {
	e.step.fees += f.Fee
	e.step.turnover += amount
	e.fills = append(e.fills, f)
}
