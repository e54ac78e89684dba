package trading

import (
	"math"
	"time"

	"github.com/onnxrl/onnxrl/envs/market/rules"
	"github.com/onnxrl/onnxrl/envs/market/universe"
)

// Dust is the amount, in the market's currency, below which nothing is traded.
const Dust = 1e-6

// Bar is what an account must know of one bar to trade at it. The slices have one value for each
// asset.
type Bar struct {
	// Number is what fills call the bar, such as the row of a market, and Date its time.
	Number int
	Date   time.Time
	// Price is what orders are filled at before slippage; it is not read where nothing can be
	// traded.
	Price []float64
	// Decided says what could be traded at the bar of the decision, Tradable at this one's Price.
	Decided, Tradable []Sides
	// Members are those at the bar of the decision, nil where all belong.
	Members []universe.Membership
	// Volume [N] is in shares, LimitUp and LimitDown are prices; they are read only where costs
	// depend on them, see [Costs], and limits may be nil.
	Volume, LimitUp, LimitDown []float64
	// Spread is in the currency of the prices and Depth in shares, of the whole book; they are read
	// only where the slippage is by depth.
	Spread, Depth []float64
	// Class [N] is the kind of each asset by a rule book and Terms those of each kind on this day;
	// nil without one.
	Class []uint8
	Terms []rules.Terms
	exact bool // see [Ruled]
}

// Trade executes orders, Buy, Sell or Hold for each asset: all sells, then all buys. Fills are
// overwritten by the next Trade.
func (a *Account) Trade(orders []int64, b *Bar) {
	a.forget()
	n, c := len(a.pos), a.config
	price, decided, filled := b.Price[:n], b.Decided[:n], b.Tradable[:n]
	orders = a.exits(orders[:n], b.Members)
	if a.rests.shares != nil {
		orders = a.resting(orders)
	}
	x := c.Charges(b)
	a.unsettled.begin(b.Date)
	a.cents, a.bar = hundredths(a.cash), b.Number
	g, open := a.guard, Both
	if g != nil {
		open = g.begin(a, &x)
		defer g.end(a, &x)
	}
	buyers, sellers := a.split(orders, decided, filled, open)
	if g != nil {
		for i := range a.sales {
			a.sales[i] = -1
		}
	}
	for _, i := range sellers {
		switch {
		case orders[i] == exit:
			a.sales[i] = a.pos[i]
		case a.rests.shares != nil && a.rests.again[i]:
			a.sales[i] = min(a.rests.shares[i], a.pos[i])
		default:
			a.sales[i] = a.part(&x, int(i))
		}
	}
	if g != nil {
		g.cut(a, &x, a.sales)
		sellers = a.offered()
	}
	a.sellAll(&x, sellers)
	if a.rests.shares != nil {
		a.carrySales(&x, orders, sellers)
		buyers = a.buyRests(&x, buyers)
	}
	if len(buyers) == 0 {
		return
	}
	// Each fair buyer spends this much, its fee included.
	share := min(c.BuyPct, 1/float64(len(buyers))) * a.cash
	amount, owner := x.Spend(share), c.Execution.CashSplit == Owner
	if g != nil && !owner {
		clear(g.want)
		for _, i := range buyers {
			g.want[i], _ = a.wants(&x, int(i), share, amount)
		}
		g.room(a, &x, g.want)
	}
	for _, k := range buyers {
		i := int(k)
		want, budget := a.wants(&x, i, share, amount)
		if g != nil {
			if owner {
				clear(g.want)
				g.want[i] = want
				g.room(a, &x, g.want)
			}
			want = g.want[i]
		}
		if t := x.terms(i); t == nil {
			a.buy(&x, i, price[i], want)
		} else if !a.buyWhole(&x, t, i, want, budget) {
			a.step.skipped++
		} else if owner {
			a.counted()
		}
		if a.rests.shares != nil {
			a.carryPurchase(&x, i, want)
		}
	}
	a.counted()
}

// wants is the amount for which a buyer buys asset i, and what there is for it and its fee. share
// is that of a fair buyer and amount what it pays for.
func (a *Account) wants(x *Charges, i int, share, amount float64) (want, budget float64) {
	if a.config.Execution.CashSplit == Owner {
		return a.config.BuyPct * a.cash, a.cash
	}
	if t := x.terms(i); t != nil {
		amount = x.spend(t, i, share)
	}
	return amount, share
}

// split returns the assets that are bought and that are sold, and counts the orders that cannot be
// executed. It has no branches that depend on whether an order is Buy, Sell or Hold, which a
// processor cannot foresee.
func (a *Account) split(orders []int64, decided, filled []Sides, open Sides) (buyers, sellers []int32) {
	buyers, sellers = a.buyers[:len(orders)], a.sellers[:len(orders)]
	nb, ns, skipped := 0, 0, 0
	for i, o := range orders {
		can := decided[i] & filled[i] & (open | CanSell)
		if o == exit {
			o, can = Sell, filled[i]
		}
		done := int(can>>uint64(o)) & 1
		sold := done & int(o)
		buyers[nb], sellers[ns] = int32(i), int32(i)
		nb += done - sold
		ns += sold
		skipped += 1 - done - int(o)/Hold
	}
	a.step.skipped += skipped
	return buyers[:nb], sellers[:ns]
}

// offered returns the assets that sales has shares of.
func (a *Account) offered() []int32 {
	sellers := a.sellers[:0]
	for i, shares := range a.sales {
		if shares >= 0 {
			sellers = append(sellers, int32(i))
		}
	}
	return sellers
}

// sellAll executes the sales of a fill.
func (a *Account) sellAll(x *Charges, sellers []int32) {
	for _, k := range sellers {
		i := int(k)
		if t := x.terms(i); t == nil {
			a.sell(x, i, x.bar.Price[i], a.sales[i])
		} else if !a.sellWhole(x, t, i, a.sales[i]) {
			a.step.skipped++
		}
	}
	a.counted()
}

// part is how much of the position in asset i an order sells.
func (a *Account) part(x *Charges, i int) float64 {
	c, held := a.config, a.pos[i]
	shares, lot := c.SellPct*held, c.Execution.Lot
	if t := x.terms(i); t != nil {
		if least := float64(t.Lot.Min); shares < least {
			return least
		}
		return shares
	}
	if lot > 0 {
		shares = min(max(math.Floor(shares/lot), 1)*lot, held)
	}
	return shares
}

// sell gives up to that many shares of the position in asset i.
func (a *Account) sell(x *Charges, i int, price, shares float64) {
	c, held := a.config, a.pos[i]
	lot := c.Execution.Lot
	if (held-shares)*price < Dust {
		shares = held
	}
	if !x.plain {
		if most := min(x.Most(i), a.settled(i)); shares > most {
			if shares = most; lot > 0 {
				shares = math.Floor(shares/lot) * lot
			}
		}
	}
	if shares <= 0 {
		a.step.skipped++
		return
	}
	if !x.plain {
		price = x.Price(Sell, i, shares)
	}
	amount := shares * price
	fee := x.Fee(Sell, amount)
	if !x.plain {
		left := amount - fee
		if c.Actions != Weights {
			left = a.cash + amount - fee
		}
		if left < 0 {
			a.step.skipped++
			return
		}
	}
	a.pos[i] = held - shares
	a.cash += amount - fee
	a.step.sells++
	a.book(Fill{Asset: i, Bar: x.bar.Number, Shares: -shares, Price: price, Fee: fee}, amount)
}

// buy spends up to amount, and the fee on top, on asset i.
func (a *Account) buy(x *Charges, i int, price, amount float64) {
	shares := amount / price
	if !x.plain {
		most := x.Most(i)
		price = x.Price(Buy, i, min(shares, most))
		if shares = amount / price; shares > most {
			shares = most
			amount = shares * price
		}
	}
	if lot := a.config.Execution.Lot; lot > 0 {
		shares = math.Floor(shares/lot) * lot
		amount = shares * price
	}
	fee := x.Fee(Buy, amount)
	left := a.cash - amount - fee
	if a.config.Execution.CashSplit == Fair || a.config.Actions == Weights {
		// These buyers never spend more than there is, but together they may miss zero by a
		// rounding error.
		left = max(left, 0)
	}
	if amount < Dust || left < 0 {
		a.step.skipped++
		return
	}
	a.pos[i] += shares
	if a.unsettled.shares != nil {
		a.unsettled.shares[i] += shares
	}
	a.cash = left
	a.step.buys++
	a.book(Fill{Asset: i, Bar: x.bar.Number, Shares: shares, Price: price, Fee: fee}, amount)
}

func (a *Account) book(f Fill, amount float64) {
	a.step.fees += f.Fee
	a.step.turnover += amount
	a.fills = append(a.fills, f)
}
