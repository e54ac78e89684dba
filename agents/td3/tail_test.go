package td3

import (
	"math"
	"testing"

	"github.com/onnxrl/onnxrl/agents"
	"github.com/onnxrl/onnxrl/agents/agenttest"
	"github.com/onnxrl/onnxrl/agents/constraint"
	"github.com/onnxrl/onnxrl/agents/offpolicy"
	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/runtime/longtest"
)

// TestKeepsTail: the CVaR of episodes is kept at its limit, for the return that this costs.
func TestKeepsTail(t *testing.T) {
	longtest.Nightly(t)
	agenttest.KeepsTail(t, func(list []constraint.Config) agents.Maker {
		c := small()
		c.Hidden, c.LearningStarts, c.BatchSize, c.BufferSize, c.LearningRate = []int{32, 32}, 100, 64, 4000, 2e-3
		c.ActionNoise.Kind, c.ActionNoise.Sigma = offpolicy.Normal, 0.1
		c.TrainFreq, c.GradientSteps, c.Constraints = 4, 2, list
		m, err := NewMaker(c)
		if err != nil {
			t.Fatal(err)
		}
		return m
	}, 15_000)
}

// TestWhatEpisodesHadCost: a replay keeps with each transition what its episode had cost before it,
// for the constraints on tails alone.
func TestWhatEpisodesHadCost(t *testing.T) {
	r, l := training(t, 3, agenttest.Costly(agenttest.Box()), func(c *Config) { c.Constraints = agenttest.Tails() })
	type moved struct{ toll, before float32 }
	seen, spent := map[moved]bool{}, make([]float64, 3)
	for range 30 {
		r.Run(t, 1)
		b := r.Env.Batch()
		for e, x := range b.Costs {
			seen[moved{float32(x[1]), float32(spent[e])}] = true
			if spent[e] += x[1]; b.Type[e] == envs.Last {
				spent[e] = 0
			}
		}
	}
	drawn := 0
	for range 20 {
		if err := l.Draw(0); err != nil {
			t.Fatal(err)
		}
		x := l.Batch.Cost.Float32s()
		for i := 0; i < len(x); i += 3 {
			if drawn++; !seen[moved{x[i+1], x[i+2]}] {
				t.Fatalf("a toll of %g after %g was not paid", x[i+1], x[i+2])
			}
		}
	}
	if drawn != 20*l.c.BatchSize {
		t.Errorf("%d transitions", drawn)
	}
}

// TestEditConstraints changes limits and rates while the learner lives.
func TestEditConstraints(t *testing.T) {
	c := small()
	list := agenttest.Tails()
	list[1].Method = constraint.PIDController
	agenttest.EditConstraints(t, agenttest.Costly(agenttest.Box()), list, func(list []constraint.Config) agents.Maker {
		c.Constraints = list
		m, err := NewMaker(c)
		if err != nil {
			t.Fatal(err)
		}
		return m
	}, 40)
}

// TestKnownMultiplier: the multiplier and the cost of the optimum. Noise of a deviation of a tenth
// takes 0.01 of the limit of 0.16, and the multiplier is 0.8/√0.15 − 1.
func TestKnownMultiplier(t *testing.T) {
	longtest.Slow(t)
	c := small()
	limit := agenttest.TollLimit(0.16)
	limit.LambdaLR = 0.01
	c.Hidden, c.LearningStarts, c.BatchSize, c.BufferSize, c.LearningRate, c.Constraints = []int{32, 32}, 100, 64, 2000, 1e-3, []constraint.Config{limit}
	c.Gamma, c.TrainFreq, c.GradientSteps, c.ActionNoise.Kind, c.ActionNoise.Sigma = 0, 5, 4, offpolicy.Normal, 0.1
	m, err := NewMaker(c)
	if err != nil {
		t.Fatal(err)
	}
	cost, lambda := agenttest.Pay(t, m, false, 8_000)
	want := 0.8/math.Sqrt(0.15) - 1
	t.Logf("a step costs %.4f, λ %.3f of %.3f", cost, lambda, want)
	if math.Abs(cost-0.16) > 0.02 || math.Abs(lambda-want) > 0.1 {
		t.Errorf("a step costs %g and λ is %g, expected 0.16 and %g", cost, lambda, want)
	}
}
