package trading

import "time"

// unsettled are the shares of each asset that were bought on a day and cannot be sold on it.
type unsettled struct {
	shares []float64 // [N]; nil where shares can be sold at once
	day    time.Time
}

// begin forgets the shares of another day.
func (u *unsettled) begin(now time.Time) {
	if u.shares != nil && !sameDay(u.day, now) {
		clear(u.shares)
		u.day = now
	}
}

func sameDay(a, b time.Time) bool {
	if a.Location() == time.UTC && b.Location() == time.UTC {
		const day, past = 86_400, 1 << 40
		return (a.Unix()+past*day)/day == (b.Unix()+past*day)/day
	}
	return a.YearDay() == b.YearDay() && a.Year() == b.Year()
}

// Settled returns how many of an asset's shares can be sold on the day of now.
func (a *Account) Settled(asset int, now time.Time) float64 {
	if a.unsettled.shares == nil || !sameDay(a.unsettled.day, now) {
		return a.pos[asset]
	}
	return max(a.pos[asset]-a.unsettled.shares[asset], 0)
}

// settled is Settled on the day of the trade that is made.
func (a *Account) settled(asset int) float64 {
	if a.unsettled.shares == nil {
		return a.pos[asset]
	}
	return max(a.pos[asset]-a.unsettled.shares[asset], 0)
}

func midnight(t time.Time) bool {
	if t.Location() == time.UTC {
		return t.Unix()%86_400 == 0
	}
	h, m, s := t.Clock()
	return h == 0 && m == 0 && s == 0
}

// Unsettled returns the shares [N] that were bought on a day and cannot be sold on it, nil where
// all can. The slice is the account's own.
func (a *Account) Unsettled() (shares []float64, day time.Time) {
	return a.unsettled.shares, a.unsettled.day
}

// HoldUnsettled says after [Account.Hold] which of the shares were bought on that day. It changes
// nothing where shares can be sold at once, and forgets those of a slice of another length.
func (a *Account) HoldUnsettled(shares []float64, day time.Time) {
	if clear(a.unsettled.shares); len(shares) == len(a.unsettled.shares) {
		copy(a.unsettled.shares, shares)
	}
	a.unsettled.day = day
}

// WriteMask writes which actions [3·N] each asset has at a bar with those sides. A position of
// which nothing is settled cannot be sold where the order would be filled on the same day: at the
// same close, or at the next bar of bars within days. Bars at midnight are days. What the limits on
// risk leave no room for at the last [Account.Mark] cannot be bought. With [MaskAccount], nothing
// is sold that is not held, nor bought with less than [Dust] of cash for each asset.
func (a *Account) WriteMask(mask []bool, sides []Sides, now time.Time) {
	WriteMask(mask, sides)
	if a.unsettled.shares != nil {
		a.maskUnsettled(mask, now)
	}
	if a.config.Mask == MaskAccount {
		a.maskEmpty(mask)
	}
	a.guard.close(mask, a.pos)
}

// maskEmpty masks sales of nothing, and purchases where the cash, shared by buyers of every asset,
// would buy less than Dust of each.
func (a *Account) maskEmpty(mask []bool) {
	n := float64(len(a.pos))
	broke := a.cash*min(a.config.BuyPct, 1/n)*(1-a.config.FeeRate) < 2*Dust
	for i, q := range a.pos {
		of := mask[i*actions : (i+1)*actions]
		of[Buy] = of[Buy] && !broke
		of[Sell] = of[Sell] && q > 0
	}
}

func (a *Account) maskUnsettled(mask []bool, now time.Time) {
	if a.config.Execution.Fill != SameClose && midnight(now) {
		return
	}
	for i, q := range a.pos {
		if q > 0 && a.Settled(i, now) == 0 {
			mask[i*actions+Sell] = false
		}
	}
}
