package meta

import (
	"errors"
	"time"

	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/envs/risk"
	"github.com/onnxrl/onnxrl/envs/wrap"
)

// Account is implemented by environments whose agent holds something of value, such as a portfolio,
// for limits on the risk of experts.
type Account interface {
	// Value is what is held, a positive number, and Now the time of the market.
	Value() float64
	Now() time.Time
	// Risk are the account's own limits on risk, nil where it has none.
	Risk() *risk.Monitor
}

// books are those of the experts: what the account has made of 1 while each was in charge.
type books struct {
	account  Account
	value    float64
	values   []float64
	monitors []*risk.Monitor
	cuts     bool
}

func newBooks(inside envs.Env, experts int, c risk.Config) (*books, error) {
	a, ok := wrap.Find[Account](inside)
	if !ok {
		return nil, errors.New("its agent holds nothing of value, expected an account such as that of trading")
	}
	b := &books{account: a, values: make([]float64, experts), cuts: c.CVaR.Limit > 0}
	if b.cuts && a.Risk() == nil {
		return nil, errors.New("cvar cuts what may be held, and the account has no limits on that; expected risk.max_exposure in the environment inside, 1 for no other limit")
	}
	for range experts {
		m, err := risk.NewMonitor(c)
		if err != nil {
			return nil, err
		}
		b.monitors = append(b.monitors, m)
	}
	return b, nil
}

func (b *books) reset() {
	b.value = b.account.Value()
	for i, m := range b.monitors {
		b.values[i] = 1
		m.Reset()
		m.Observe(b.account.Now(), 1)
	}
	b.cut(nil)
}

// observe books what the last env step has made of the account.
func (b *books) observe(shares []float64) {
	now := b.account.Value()
	r := 0.0
	if b.value > 0 {
		r = now/b.value - 1
	}
	b.value = now
	for i, m := range b.monitors {
		b.values[i] *= 1 + shares[i]*r
		m.Observe(b.account.Now(), b.values[i])
	}
}

// cut limits what the account may hold by the experts in charge.
func (b *books) cut(shares []float64) {
	if b.cuts {
		b.account.Risk().Scale(b.factor(shares))
	}
}

// factor is what limits on positions are multiplied by for the experts in charge, 1 for nobody.
func (b *books) factor(shares []float64) float64 {
	f := 1.0
	if shares != nil {
		f = 0
		for i, s := range shares {
			f += s * b.monitors[i].Factor()
		}
	}
	return f
}

// allow says which experts may be chosen: those that are not stopped, and if that is none the one
// with the least drawdown.
func (b *books) allow(allowed []bool) {
	any, least := false, 0
	for i, m := range b.monitors {
		allowed[i] = !m.Stopped()
		any = any || allowed[i]
		if m.Drawdown() < b.monitors[least].Drawdown() {
			least = i
		}
	}
	if !any {
		allowed[least] = true
	}
}

// losses are the drawdown and the CVaR of expert i, 0 where they are not known or are gains.
func (b *books) losses(i int) (drawdown, cvar float32) {
	loss, known := b.monitors[i].CVaR()
	if !known {
		loss = 0
	}
	return float32(b.monitors[i].Drawdown()), float32(min(max(loss, 0), 1))
}
