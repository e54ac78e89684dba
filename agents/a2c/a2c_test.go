package a2c

import (
	"testing"

	"github.com/onnxrl/onnxrl/agents"
	"github.com/onnxrl/onnxrl/agents/agenttest"
	"github.com/onnxrl/onnxrl/envs/market/trading"
	"github.com/onnxrl/onnxrl/envs/vector"
	"github.com/onnxrl/onnxrl/models/encoder"
	"github.com/onnxrl/onnxrl/runtime/engine/testengines"
	"github.com/onnxrl/onnxrl/runtime/longtest"
	"github.com/onnxrl/onnxrl/runtime/optim"
	"github.com/onnxrl/onnxrl/runtime/rng"
)

// qtmrl has the values of QTMRL.
func qtmrl() Config {
	c := Defaults()
	c.LearningRate, c.CriticLearningRate, c.Optimizer, c.NSteps, c.Gamma, c.EntCoef = 1e-5, 1e-5, Optimizer{optim.Config{Kind: "adam"}}, 50, 0.96, 0.05
	c.VFCoef, c.MaxGradNorm, c.Reduction, c.Encoders, c.HiddenGain = 1, 1, Sum, Shared, 0
	return c
}

// quick is a configuration that learns small things fast.
func quick() Config {
	c := qtmrl()
	c.NSteps, c.Reduction, c.LearningRate, c.CriticLearningRate, c.EntCoef, c.Hidden = 16, Mean, 3e-3, 1e-2, 0.01, []int{32}
	c.MaxGradNorm = 0.5
	return c
}

// TestLearnsTheCorridor requires that the greedy policy goes right from everywhere.
func TestLearnsTheCorridor(t *testing.T) {
	n := 0
	for _, e := range testengines.All(t) {
		v := corridors(t, 8)
		a := agent(t, quick(), v, e, 1)
		r := agenttest.NewTraining(t, a, v)
		var first, last float64
		for i := range 150 {
			m := r.Update(t)
			if last = m["train/entropy"]; i == 0 {
				first = last
			}
		}
		if last > first/2 {
			t.Errorf("%s: the entropy went from %g to %g", e.Name(), first, last)
		}
		test := corridors(t, 8)
		greedy := agenttest.Actor(t, a, agents.Greedy, 8)
		if err := agents.Collect(t.Context(), test, greedy, nil, rng.New(1), 0, 20, nil); err != nil {
			t.Fatal(err)
		}
		for i := range 20 {
			d, err := greedy.Act(t.Context(), rng.New(1), test.Batch())
			if err != nil {
				t.Fatal(err)
			}
			for _, x := range d.Actions.Int64s() {
				if n++; x != 1 {
					t.Fatalf("%s: round %d: it goes left", e.Name(), i)
				}
			}
			if err := test.Step(d.Actions); err != nil {
				t.Fatal(err)
			}
		}
	}
	if n < 160 {
		t.Errorf("%d decisions", n)
	}
}

// TestLearnsASignal trains on a market of two assets in which a feature tells the next move.
// Whoever follows it earns about 1.5 % a bar, whoever does not nothing.
func TestLearnsASignal(t *testing.T) {
	longtest.Slow(t)
	c := small(t, func(c *encoder.TimeCNNConfig) { c.Pool = "last" })
	c.Optimizer.Kind, c.LearningRate, c.CriticLearningRate, c.Gamma, c.EntCoef, c.NSteps, c.NormalizeAdvantage = "adam", 3e-3, 3e-3, 0, 0.001, 20, true
	m := market(400, 2, 3, true)
	for i := range m.Tradable {
		m.Tradable[i] = trading.Both
	}
	rules := func(c *trading.Config) { c.Window, c.BuyPct, c.SellPct, c.FeeRate = 6, 1, 1, 0 }
	earned := func(a agents.Agent) float64 {
		v, sum := markets(t, m, 1, rules), 0.0
		if err := agents.Collect(t.Context(), v, agenttest.Actor(t, a, agents.Greedy, 1), nil, rng.New(1), 0, 300, func(b *vector.Batch) error { sum += b.Reward[0]; return nil }); err != nil {
			t.Fatal(err)
		}
		return sum / 300
	}
	v := markets(t, m, 4, func(c *trading.Config) { rules(c); c.Episode.Kind, c.Episode.Length = trading.Random, 100 })
	a := agent(t, c, v, testengines.Fastest(t), 1)
	before := earned(a)
	r := agenttest.NewTraining(t, a, v)
	for range 600 {
		r.Update(t)
	}
	after := earned(a)
	t.Logf("a bar earns %.4f before and %.4f after", before, after)
	if before > 0.008 || after < 0.012 {
		t.Errorf("a bar earns %g before and %g after", before, after)
	}
}
