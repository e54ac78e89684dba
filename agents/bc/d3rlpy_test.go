package bc

import (
	"testing"

	"github.com/onnxrl/onnxrl/agents"
	"github.com/onnxrl/onnxrl/agents/agenttest"
	"github.com/onnxrl/onnxrl/agents/offline"
	"github.com/onnxrl/onnxrl/agents/offline/offlinetest"
	"github.com/onnxrl/onnxrl/agents/offpolicy"
	"github.com/onnxrl/onnxrl/runtime/engine/testengines"
)

// TestUpdatesOfD3RLPy has updates of BC and of DiscreteBC.
func TestUpdatesOfD3RLPy(t *testing.T) {
	sets := map[int]*offline.Dataset{}
	for _, n := range []int{0, 4} {
		sets[n] = offlinetest.Dataset(t, agenttest.Spec(n, false), 3)
	}
	actions := 0
	updates, numbers := agenttest.UpdatesAgree(t, "testdata/d3rlpy.json", func(f *agenttest.Fixture) (agents.Maker, error) {
		c := Defaults()
		var s offpolicy.Settings
		f.Settings(&s)
		c.LearningRate, c.BatchSize, c.Hidden, c.Beta = s.LearningRate, s.BatchSize, f.Options.Hidden, f.Options.Beta
		actions = f.Options.Actions
		return NewMaker(c)
	}, func(a agents.Agent) agenttest.Updates {
		l := a.Learner().(*learner)
		return agenttest.Updates{Learner: &l.Learner, Learn: func() (agents.Metrics, error) {
			l.sum = 0
			err := l.learn(1, agents.Stopwatch{})
			return agents.Metrics{"train/loss": l.sum}, err
		}}
	}, func(s *agents.Setup) { offlinetest.Setup(t, sets[actions], agenttest.Spec(actions, false))(s) })
	if n := len(testengines.All(t)); updates != n*16 || numbers != n*252 {
		t.Errorf("%d updates, %d numbers", updates, numbers)
	}
}
