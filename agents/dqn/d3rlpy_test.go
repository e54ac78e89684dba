package dqn

import (
	"testing"

	"github.com/onnxrl/onnxrl/agents"
	"github.com/onnxrl/onnxrl/agents/agenttest"
	"github.com/onnxrl/onnxrl/agents/valuebased"
	"github.com/onnxrl/onnxrl/runtime/engine/testengines"
)

// TestUpdatesOfD3RLPy has updates of DiscreteCQL.
func TestUpdatesOfD3RLPy(t *testing.T) {
	updates, numbers := agenttest.UpdatesAgree(t, "testdata/d3rlpy.json", func(f *agenttest.Fixture) (agents.Maker, error) {
		c := CQLDefaults()
		f.Settings(&c.Settings.Settings)
		c.Tau, c.Hidden, c.ConservativeWeight, c.TargetUpdateInterval = 1, f.Options.Hidden, f.Options.ConservativeWeight, 2
		return NewMaker(c)
	}, func(a agents.Agent) agenttest.Updates { return agenttest.ValueBased(a.Learner().(*valuebased.Learner)) })
	if n := len(testengines.All(t)); updates != n*8 || numbers != n*136 {
		t.Errorf("%d updates, %d numbers", updates, numbers)
	}
}
