package dqn

import (
	"testing"

	"github.com/onnxrl/onnxrl/agents"
	"github.com/onnxrl/onnxrl/agents/agenttest"
	"github.com/onnxrl/onnxrl/agents/offpolicy"
	"github.com/onnxrl/onnxrl/runtime/engine/testengines"
)

// TestUpdatesOfD3RLPy has updates of DiscreteCQL.
func TestUpdatesOfD3RLPy(t *testing.T) {
	updates, numbers := agenttest.UpdatesAgree(t, "testdata/d3rlpy.json", func(f *agenttest.Fixture) (agents.Maker, error) {
		c := CQLDefaults()
		f.Settings(&c.Settings)
		c.Tau, c.Hidden, c.ConservativeWeight, c.TargetUpdateInterval = 1, f.Options.Hidden, f.Options.ConservativeWeight, 2
		return NewMaker(c)
	}, func(a agents.Agent) agenttest.Updates {
		l := a.(*Agent).learner
		if l.ahead != 1 {
			t.Fatal(l.ahead, "batches at once")
		}
		return agenttest.Updates{Learner: &offpolicy.Learner{Batch: l.samples, Networks: &offpolicy.Networks{Specs: l.g.policy.Specs}, Params: l.params}, Learn: func() (agents.Metrics, error) {
			if err := l.evaluate(); err != nil {
				return nil, err
			}
			l.load(0)
			if err := l.train.Run(); err != nil {
				return nil, err
			}
			m := agents.Metrics{"train/loss": float64(l.loss[0])}
			err := l.descent.Step(m["train/loss"], 1)
			// d3rlpy's target network follows after the update.
			l.Updates++
			l.follow(l.Updates-1, l.Updates)
			return m, err
		}}
	})
	if n := len(testengines.All(t)); updates != n*8 || numbers != n*136 {
		t.Errorf("%d updates, %d numbers", updates, numbers)
	}
}
