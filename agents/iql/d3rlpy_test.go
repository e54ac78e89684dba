package iql

import (
	"testing"

	"github.com/onnxrl/onnxrl/agents"
	"github.com/onnxrl/onnxrl/agents/agenttest"
	"github.com/onnxrl/onnxrl/runtime/engine/testengines"
)

func TestUpdatesOfD3RLPy(t *testing.T) {
	updates, numbers := agenttest.UpdatesAgree(t, "testdata/d3rlpy.json", func(f *agenttest.Fixture) (agents.Maker, error) {
		c := Defaults()
		f.Settings(&c.Settings)
		c.Hidden, c.Critics = f.Options.Hidden, f.Options.Critics
		return NewMaker(c)
	}, func(a agents.Agent) agenttest.Updates {
		l := a.(*Agent).learner
		return agenttest.Updates{Learner: &l.Learner, Learn: func() (agents.Metrics, error) {
			var sum losses
			err := l.learn(1, &sum, agents.Stopwatch{})
			return agents.Metrics{"train/critic_loss": sum.Critic, "train/actor_loss": sum.Actor}, err
		}}
	})
	if n := len(testengines.All(t)); updates != n*8 || numbers != n*698 {
		t.Errorf("%d updates, %d numbers", updates, numbers)
	}
}
