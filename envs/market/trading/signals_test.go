package trading_test

import (
	"math"
	"slices"
	"testing"

	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/envs/envtest"
	"github.com/onnxrl/onnxrl/envs/market/trading"
	"github.com/onnxrl/onnxrl/runtime/rng"
)

// TestSafetySignals: over an episode of random orders the drawdowns add up to the maximum drawdown
// of the values, and the losses to what was lost; without being asked for they are not there.
func TestSafetySignals(t *testing.T) {
	m := randomMarket(6, 200, 3, 1)
	g := start(t, open(t, m, config(func(c *trading.Config) {
		c.SafetySignals = []string{trading.LossSignal, trading.DrawdownSignal, trading.StepLossSignal}
		c.Episode = trading.Episode{Kind: trading.Random, Length: 50, End: trading.Truncate}
	})), rng.New(1))
	if got := g.Spec().Costs; !slices.Equal(got, []string{"loss", "drawdown", "step_loss"}) {
		t.Fatalf("costs %q", got)
	}
	s, n, deep := rng.New(2).Stream(), 0, 0
	for k := range 20 {
		if err := g.Reset(rng.New(3).Split("episode", k), g.ts); err != nil {
			t.Fatal(err)
		}
		begin, peak, worst, loss, drawdown := g.Value(), g.Value(), 0.0, 0.0, 0.0
		for g.ts.Type != envs.Last {
			before := g.Value()
			g.play(g.random(s)...)
			if step := 1 - g.Value()/before; math.Abs(g.ts.Costs[2]-step) > 1e-12 {
				t.Fatalf("a step loses %g, expected %g", g.ts.Costs[2], step)
			}
			peak = max(peak, g.Value())
			worst = max(worst, 1-g.Value()/peak)
			loss, drawdown = loss+g.ts.Costs[0], drawdown+g.ts.Costs[1]
			if n++; g.ts.Costs[1] < 0 || math.Abs(drawdown-worst) > 1e-12 || math.Abs(loss-(1-g.Value()/begin)) > 1e-12 {
				t.Fatalf("drawdowns of %g and losses of %g, expected %g and %g", drawdown, loss, worst, 1-g.Value()/begin)
			}
		}
		if worst > 0.02 {
			deep++
		}
	}
	if n != 20*50 || deep < 5 {
		t.Errorf("%d steps, %d episodes with a drawdown", n, deep)
	}
	if got := open(t, m, config(nil)).Spec().Costs; got != nil {
		t.Errorf("costs %q", got)
	}
}

func TestSafetySignalsContract(t *testing.T) {
	m, c := randomMarket(1, 200, 4, 3), config(func(c *trading.Config) {
		c.SafetySignals = []string{trading.DrawdownSignal, trading.LossSignal, trading.StepLossSignal}
	})
	r := envtest.Run(t, func() (envs.Env, error) { return open(t, m, c), nil }, envtest.Options{Key: rng.New(5), Steps: 800})
	if r.Saved < 10 || r.Episodes < 3 || r.Errors < 100 {
		t.Errorf("too little was checked: %+v", r)
	}
}
