package qrdqn

import (
	"testing"

	"github.com/onnxrl/onnxrl/agents"
	"github.com/onnxrl/onnxrl/agents/agenttest"
	"github.com/onnxrl/onnxrl/agents/valuebased"
	"github.com/onnxrl/onnxrl/runtime/engine/testengines"
)

// TestUpdatesOfContrib has 100 updates of sb3-contrib's QRDQN, and 20 of other settings.
func TestUpdatesOfContrib(t *testing.T) {
	updates, numbers := agenttest.UpdatesAgree(t, "testdata/updates.json", func(f *agenttest.Fixture) (agents.Maker, error) {
		c := Defaults()
		f.Settings(&c.Settings.Settings)
		o := &f.Options
		c.Hidden, c.NQuantiles, c.Tau, c.MaxGradNorm, c.TargetUpdateInterval, c.GradientSteps = o.Hidden, o.NQuantiles, o.Tau, o.MaxGradNorm, 10, 1
		return NewMaker(c)
	}, func(a agents.Agent) agenttest.Updates { return agenttest.ValueBased(a.Learner().(*valuebased.Learner)) })
	if n := len(testengines.All(t)); updates != n*2*120 || numbers != n*656 {
		t.Errorf("%d updates, %d numbers", updates, numbers)
	}
}
