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
	// late is a ring of the decisions that are not executed yet, [lag,N].
	late []int64
}

func (l *lagged) Name() string {
	if l.lag == 1 {
		return l.Policy.Name() + ", 1 bar late"
	}
	return fmt.Sprintf("%s, %d bars late", l.Policy.Name(), l.lag)
}

func (l *lagged) Begin(e *trading.Env, key rng.Key) error {
	l.turn, l.late = 0, make([]int64, l.lag*len(e.Positions()))
	for i := range l.late {
		l.late[i] = trading.Hold
	}
	return l.Policy.Begin(e, key)
}

func (l *lagged) Decide(ctx context.Context, e *trading.Env, ts *envs.TimeStep, orders []int64) error {
	if err := l.Policy.Decide(ctx, e, ts, orders); err != nil {
		return err
	}
	due := l.late[l.turn*len(orders) : (l.turn+1)*len(orders)]
	for i, o := range orders {
		orders[i], due[i] = due[i], o
	}
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
	due := l.late[l.turn*len(weights) : (l.turn+1)*len(weights)]
	for i, w := range weights {
		weights[i], due[i] = due[i], w
	}
	l.turn = (l.turn + 1) % l.lag
	return nil
}
