package iql

import (
	"testing"

	"github.com/onnxrl/onnxrl/agents"
	"github.com/onnxrl/onnxrl/agents/agenttest"
	"github.com/onnxrl/onnxrl/runtime/engine/testengines"
)

// TestUpdatesOfD3RLPy: losses and parameters of IQL and of AWAC are d3rlpy's, and those of AWR what
// its formulas say.
func TestUpdatesOfD3RLPy(t *testing.T) {
	for _, x := range []struct {
		file             string
		defaults         func() Config
		updates, numbers int
	}{
		{"d3rlpy", Defaults, 8, 698},
		{"awac", func() Config { c := AWACDefaults(); c.WeightTemp = 2; return c }, 16, 1200},
		{"awr", func() Config { c := AWRDefaults(); c.NSteps, c.WeightTemp, c.MaxWeight = 1, 2, 3; return c }, 8, 226},
	} {
		updates, numbers := agenttest.UpdatesAgree(t, "testdata/"+x.file+".json", func(f *agenttest.Fixture) (agents.Maker, error) {
			c := x.defaults()
			f.Settings(&c.Settings)
			c.Hidden, c.Critics, c.NActionSamples = f.Options.Hidden, f.Options.Critics, max(1, f.Options.NActionSamples)
			return NewMaker(c)
		}, func(a agents.Agent) agenttest.Updates {
			l := a.Learner().(*learner)
			return agenttest.Updates{Learner: &l.Learner, Noises: l.noises, Learn: func() (agents.Metrics, error) {
				var sum losses
				err := l.learn(1, &sum, agents.Stopwatch{})
				return agents.Metrics{"train/critic_loss": sum.Critic, "train/actor_loss": sum.Actor}, err
			}}
		})
		if n := len(testengines.All(t)); updates != n*x.updates || numbers != n*x.numbers {
			t.Errorf("%s: %d updates, %d numbers", x.file, updates, numbers)
		}
	}
}
