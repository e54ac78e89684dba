package backtest

import (
	"context"
	"fmt"

	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/envs/market/trading"
	"github.com/onnxrl/onnxrl/runtime/rng"
)

// Lagged returns a policy whose decisions are executed a number of bars, at least one, after p has
// taken them; until the first is due, nothing is done. p sees the environment as it then is: the
// positions that its late orders have led to.
func Lagged(p Policy, bars int) (Policy, error) {
	if bars < 1 {
		return nil, fmt.Errorf("back-test: a lag of %d bars, expected at least 1", bars)
	}
	l := &lagged{Policy: p, lag: bars}
	if w, ok := p.(Weigher); ok {
		return &laggedWeigher{lagged: l, weigher: w}, nil
	}
	return l, nil
}

type lagged struct {
	Policy
	lag, turn int
	// late is a ring of the decisions that are not executed yet, [lag,N], and new [N] the latest.
	late, new []int64
}

func (l *lagged) Name() string {
	if l.lag == 1 {
		return l.Policy.Name() + ", 1 bar late"
	}
	return fmt.Sprintf("%s, %d bars late", l.Policy.Name(), l.lag)
}

func (l *lagged) Begin(e *trading.Env, key rng.Key) error {
	n := len(e.Positions())
	l.turn, l.late, l.new = 0, make([]int64, l.lag*n), make([]int64, n)
	for i := range l.late {
		l.late[i] = trading.Hold
	}
	return l.Policy.Begin(e, key)
}

func (l *lagged) Decide(ctx context.Context, e *trading.Env, ts *envs.TimeStep, orders []int64) error {
	if err := l.Policy.Decide(ctx, e, ts, orders); err != nil {
		return err
	}
	due, slots := l.late[l.turn*len(l.new):(l.turn+1)*len(l.new)], e.Slots()
	byAsset(l.new, orders, slots)
	if slots == nil {
		copy(orders, due)
	}
	for slot, asset := range slots {
		if asset >= 0 {
			orders[slot] = due[asset]
		}
	}
	copy(due, l.new)
	l.turn = (l.turn + 1) % l.lag
	return nil
}

// laggedWeigher is late with target weights, too.
type laggedWeigher struct {
	*lagged
	weigher Weigher
	// late is a ring of the weights that are not traded towards yet, [lag,N+1]: all cash, as the
	// portfolio is when it begins.
	late []float64
}

func (l *laggedWeigher) Begin(e *trading.Env, key rng.Key) error {
	n := len(e.Positions()) + 1
	l.late = make([]float64, l.lag*n)
	for i := range l.lag {
		l.late[(i+1)*n-1] = 1
	}
	return l.lagged.Begin(e, key)
}

func (l *laggedWeigher) Weigh(ctx context.Context, e *trading.Env, ts *envs.TimeStep, weights []float64) error {
	if err := l.weigher.Weigh(ctx, e, ts, weights); err != nil {
		return err
	}
	n := len(l.late)/l.lag - 1
	due, slots, cash := l.late[l.turn*(n+1):(l.turn+1)*(n+1)], e.Slots(), len(weights)-1
	if slots == nil {
		for i, w := range weights {
			weights[i], due[i] = due[i], w
		}
	} else {
		// The weights of assets that have no slot any more are cash.
		next := make([]float64, n+1)
		weights[cash], next[n] = 1, weights[cash]
		for slot, asset := range slots {
			if asset < 0 {
				next[n] += weights[slot]
				weights[slot] = 0
				continue
			}
			weights[slot], next[asset] = due[asset], weights[slot]
			weights[cash] -= due[asset]
		}
		weights[cash] = max(weights[cash], 0)
		copy(due, next)
	}
	l.turn = (l.turn + 1) % l.lag
	return nil
}
