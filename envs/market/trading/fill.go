package trading

import "math"

// Dust is the amount, in the market's currency, below which nothing is traded.
const Dust = 1e-6

// Bar is what an account must know of one bar to trade at it. The slices have one value for each
// asset.
type Bar struct {
	// Number is what fills call the bar, such as the row of a market.
	Number int
	// Price is what orders are filled at; it is not read where nothing can be traded.
	Price []float64
	// Decided says what could be traded at the bar of the decision, Tradable at this one's Price.
	Decided, Tradable []Sides
}

// Trade executes orders, Buy, Sell or Hold for each asset: all sells, then all buys. Fills are
// overwritten by the next Trade.
func (a *Account) Trade(orders []int64, b Bar) {
	a.fills, a.step = a.fills[:0], tally{}
	n, c := len(a.pos), a.config
	price, decided, filled := b.Price[:n], b.Decided[:n], b.Tradable[:n]
	orders = orders[:n]
	buyers := 0
	for i, o := range orders {
		switch {
		case o == Hold:
		case !(decided[i] & filled[i]).Allows(o):
			a.step.skipped++
		case o == Buy:
			buyers++
		default:
			a.sell(i, b.Number, price[i])
		}
	}
	if buyers == 0 {
		return
	}
	// Each fair buyer spends this much, its fee included.
	share := min(c.BuyPct, 1/float64(buyers)) * a.cash
	for i, o := range orders {
		if o != Buy || decided[i]&filled[i]&CanBuy == 0 {
			continue
		}
		if c.Execution.CashSplit == Owner {
			a.buy(i, b.Number, price[i], c.BuyPct*a.cash)
		} else {
			a.buy(i, b.Number, price[i], share/(1+c.FeeRate))
		}
	}
}

// sell gives part of the position in asset i.
func (a *Account) sell(i, bar int, price float64) {
	c, held := a.config, a.pos[i]
	shares := c.SellPct * held
	if lot := c.Execution.Lot; lot > 0 {
		shares = min(max(math.Floor(shares/lot), 1)*lot, held)
	}
	if (held-shares)*price < Dust {
		shares = held
	}
	if shares <= 0 {
		a.step.skipped++
		return
	}
	amount := shares * price
	fee := amount * c.FeeRate
	a.pos[i] = held - shares
	a.cash += amount - fee
	a.step.sells++
	a.book(Fill{Asset: i, Bar: bar, Shares: -shares, Price: price, Fee: fee}, amount)
}

// buy spends up to amount, and the fee on top, on asset i.
func (a *Account) buy(i, bar int, price, amount float64) {
	shares := amount / price
	if lot := a.config.Execution.Lot; lot > 0 {
		shares = math.Floor(shares/lot) * lot
		amount = shares * price
	}
	fee := amount * a.config.FeeRate
	left := a.cash - amount - fee
	if a.config.Execution.CashSplit == Fair {
		// Fair buyers never spend more than there is, but together they may miss zero by a rounding
		// error.
		left = max(left, 0)
	}
	if amount < Dust || left < 0 {
		a.step.skipped++
		return
	}
	a.pos[i] += shares
	a.cash = left
	a.step.buys++
	a.book(Fill{Asset: i, Bar: bar, Shares: shares, Price: price, Fee: fee}, amount)
}

func (a *Account) book(f Fill, amount float64) {
	a.step.fees += f.Fee
	a.step.turnover += amount
	a.fills = append(a.fills, f)
}
