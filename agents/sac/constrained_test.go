package sac

import (
	"math"
	"testing"

	"github.com/onnxrl/onnxrl/agents"
	"github.com/onnxrl/onnxrl/agents/agenttest"
	"github.com/onnxrl/onnxrl/agents/constraint"
	"github.com/onnxrl/onnxrl/runtime/longtest"
	"github.com/onnxrl/onnxrl/runtime/sorted"
)

// constrain limits both costs of a toy, each in its own way.
func constrain(c *Config) {
	a, b := constraint.Defaults(), constraint.Defaults()
	a.Cost, a.Limit, a.Episodes = "toll", 3, 2
	b.Cost, b.Limit, b.Method = "risk", 2, constraint.PIDController
	c.Constraints = []constraint.Config{a, b}
}

// TestEditConstraints changes limits and rates while the learner lives.
func TestEditConstraints(t *testing.T) {
	c := small()
	constrain(&c)
	agenttest.EditConstraints(t, agenttest.Costly(agenttest.Box()), c.Constraints, func(list []constraint.Config) agents.Maker {
		c.Constraints = list
		m, err := NewMaker(c)
		if err != nil {
			t.Fatal(err)
		}
		return m
	}, 40)
}

// TestKnownMultiplier: the multipliers and costs of the optima, by both methods. The policy's
// density is proportional to exp((reward − λ·cost)/α), in the box a Gaussian with the mean 0.8/(1 +
// λ) and the variance α/(2·(1 + λ)): with the limit of 0.16 and α = 0.02, 1 + λ is (0.01 +
// √0.4097)/0.32. In the choice, whose odds are to be 3:7, λ is 1 − 0.2·log(3/7).
func TestKnownMultiplier(t *testing.T) {
	longtest.Slow(t)
	n := 0
	inBox := (0.01+math.Sqrt(0.4097))/0.32 - 1
	for what, x := range sorted.All(map[string]struct {
		choice       bool
		alpha        float64
		method       string
		cost, lambda float64
	}{
		"lagrange":         {false, 0.02, constraint.Lagrange, 0.16, inBox},
		"pid":              {false, 0.02, constraint.PIDController, 0.16, inBox},
		"lagrange, choice": {true, 0.2, constraint.Lagrange, 0.3, 1 - 0.2*math.Log(0.3/0.7)},
	}) {
		c := small()
		limit := agenttest.TollLimit(x.cost)
		limit.Method, limit.LambdaLR = x.method, 0.01
		c.LearningStarts, c.BatchSize, c.BufferSize, c.LearningRate, c.EntCoef, c.Constraints = 100, 64, 2000, 3e-3, EntCoef{Value: x.alpha}, []constraint.Config{limit}
		c.Gamma, c.TrainFreq, c.GradientSteps = 0, 5, 4
		m, err := NewMaker(c)
		if err != nil {
			t.Fatal(err)
		}
		cost, lambda := agenttest.Pay(t, m, x.choice, 8_000)
		t.Logf("%s: a step costs %.4f of %.2f, λ %.3f of %.3f", what, cost, x.cost, lambda, x.lambda)
		if n++; math.Abs(cost-x.cost) > 0.02 || math.Abs(lambda-x.lambda) > 0.05 {
			t.Errorf("%s: a step costs %g and λ is %g, expected %g and %g", what, cost, lambda, x.cost, x.lambda)
		}
	}
	if n != 3 {
		t.Errorf("%d problems", n)
	}
}
