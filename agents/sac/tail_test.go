package sac

import (
	"testing"

	"github.com/onnxrl/onnxrl/agents"
	"github.com/onnxrl/onnxrl/agents/agenttest"
	"github.com/onnxrl/onnxrl/agents/constraint"
	"github.com/onnxrl/onnxrl/runtime/longtest"
)

// TestKeepsTail: the CVaR of episodes is kept at its limit, for the return that this costs.
func TestKeepsTail(t *testing.T) {
	longtest.Nightly(t)
	agenttest.KeepsTail(t, func(list []constraint.Config) agents.Maker {
		c := small()
		c.Hidden, c.LearningStarts, c.BatchSize, c.BufferSize, c.LearningRate, c.EntCoef = []int{32, 32}, 100, 64, 4000, 2e-3, EntCoef{Value: 0.005}
		c.TrainFreq, c.GradientSteps, c.Constraints = 4, 2, list
		m, err := NewMaker(c)
		if err != nil {
			t.Fatal(err)
		}
		return m
	}, 15_000)
}
