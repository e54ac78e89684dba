package backtest_test

import (
	"context"
	"math"
	"slices"
	"testing"

	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/envs/market/trading"
	"github.com/onnxrl/onnxrl/envs/market/trading/backtest"
	"github.com/onnxrl/onnxrl/runtime/rng"
)

// turns puts all into one asset after another, decided by the bar less delay; before, it is in
// cash.
type turns struct {
	backtest.Policy
	delay, first int
}

func (p *turns) Begin(e *trading.Env, _ rng.Key) error {
	p.first = e.Bar()
	return nil
}

func (p *turns) Weigh(_ context.Context, e *trading.Env, _ *envs.TimeStep, weights []float64) error {
	if bar := e.Bar() - p.delay; bar >= p.first {
		clear(weights)
		weights[bar%len(weights)] = 1
	}
	return nil
}

// TestWeights records a policy of weights: its actions are what was traded, a lag is a delay, and
// baselines trade by orders as they do in an environment of orders.
func TestWeights(t *testing.T) {
	m := randomMarket(3, 200, 4)
	weighs := source(t, m, func(c *trading.Config) { c.Actions = trading.Weights })
	orders := source(t, m, nil)
	bars := trading.Range{First: 0, Last: 199}
	run := func(s *trading.Source, p backtest.Policy) *backtest.Record {
		t.Helper()
		r, err := backtest.Run(ctx, s, bars, p, key)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	r := run(weighs, &turns{Policy: backtest.HoldCash()})
	traded := 0
	for i, a := range r.Actions {
		held := r.Positions[i+4] - r.Positions[i]
		if (a == trading.Buy) != (held > 0) || (a == trading.Sell) != (held < 0) {
			t.Fatalf("action %d is %d, and the position changes by %g", i, a, held)
		}
		if a != trading.Hold {
			traded++
		}
	}
	if traded != len(r.Trades) || traded < 250 {
		t.Errorf("%d actions, %d trades", traded, len(r.Trades))
	}
	for _, lag := range []int{1, 3} {
		late, err := backtest.Lagged(&turns{Policy: backtest.HoldCash()}, lag)
		if err != nil {
			t.Fatal(err)
		}
		if got, want := run(weighs, late), run(weighs, &turns{Policy: backtest.HoldCash(), delay: lag}); !slices.Equal(got.Value, want.Value) || math.Abs(got.Value[195]-r.Value[195]) < 1e-6 {
			t.Errorf("%d bars late: %v, expected %v", lag, got.Value[195], want.Value[195])
		}
	}
	if got, want := run(weighs, backtest.Random(42)), run(orders, backtest.Random(42)); !slices.Equal(got.Value, want.Value) || !slices.Equal(got.Actions, want.Actions) || len(got.Trades) < 50 {
		t.Errorf("random orders come to %v, expected %v", got.Value[195], want.Value[195])
	}
}
