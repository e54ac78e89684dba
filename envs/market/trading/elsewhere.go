package trading

import (
	"math"
	"time"

	"github.com/onnxrl/onnxrl/envs/risk"
)

// Elsewhere makes the account one whose orders somebody else executes, such as a broker, whose
// prices may leave a debt: [Account.Hold] then takes cash below 0. trial are what [Account.Intend]
// trades with.
func (a *Account) Elsewhere() {
	if a.trial == nil {
		a.trial = newAccount(a.config, len(a.pos))
		if a.trial.guard != nil {
			a.trial.Measure() // It takes what a measured account remembers.
		}
	}
}

// Intend returns what [Account.Trade] of the orders, or [Account.Rebalance] where there are target
// weights [N+1], would execute at a bar, and changes nothing but what [Account.Bound] says. A debt
// counts as no cash. The account must be one of [Account.Elsewhere]; the fills are valid until the
// next call.
func (a *Account) Intend(orders []int64, weights []float64, b *Bar, close []float64) []Fill {
	t := a.trial
	copy(t.pos, a.pos)
	t.cash = max(a.cash, 0)
	t.HoldUnsettled(a.unsettled.shares, a.unsettled.day)
	t.rests.reset()
	if a.guard != nil {
		_ = t.RestoreRisk(a.RiskMemory(), close) // It is the account's own.
	}
	if weights != nil {
		t.Rebalance(weights, b)
	} else {
		t.Trade(orders, b)
	}
	if a.guard != nil {
		a.guard.bound = t.guard.bound
	}
	return t.Fills()
}

// Executed books a fill that was made elsewhere, at a time: shares that were bought are not settled
// before the day after, where the rules say so. Nobody can hold less than nothing: a sale of more
// than is held leaves 0 and reports false.
func (a *Account) Executed(f Fill, at time.Time) bool {
	a.unsettled.begin(at)
	q := a.pos[f.Asset] + f.Shares
	held := q >= -Dust
	if f.Shares < 0 && q*f.Price < Dust {
		q = 0 // A rounding error is no position.
	}
	a.pos[f.Asset] = q
	a.cash -= f.Shares*f.Price + f.Fee
	if f.Shares > 0 && a.unsettled.shares != nil {
		a.unsettled.shares[f.Asset] += f.Shares
	}
	if g := a.guard; g != nil {
		if day := risk.DayOf(at); day != g.day {
			g.day, g.traded = day, 0
		}
		g.traded += math.Abs(f.Shares) * f.Price
	}
	return held
}

// Own replaces positions [N] and cash by those that somebody else reports, and keeps what the
// limits on risk remember. What is not settled is as much of it as is still held.
func (a *Account) Own(positions []float64, cash float64) error {
	shares, day := a.Unsettled()
	shares = append([]float64(nil), shares...)
	for i := range min(len(shares), len(positions)) {
		shares[i] = min(shares[i], positions[i])
	}
	guard, watch := a.guard, a.watch
	a.guard, a.watch = nil, nil
	err := a.Hold(positions, cash)
	if a.guard, a.watch = guard, watch; err == nil {
		a.HoldUnsettled(shares, day)
	}
	return err
}
