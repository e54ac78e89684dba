package a2c

import (
	"math"
	"testing"
	"time"

	"github.com/onnxrl/onnxrl/agents"
	"github.com/onnxrl/onnxrl/agents/agenttest"
	"github.com/onnxrl/onnxrl/envs/classic"
	"github.com/onnxrl/onnxrl/runtime/engine/testengines"
)

// TestIdentityAsStableBaselines3 has the steps and the bar of Stable-Baselines3's own tests
// (tests/test_identity.py): 90 of 100 on average over 20 episodes, with its defaults but for a
// discount of 0.4 and the learning rates below. Its present tests take 1200 env steps in discrete
// spaces and 2000 in a box, earlier ones took 3000. Four bits are learnt by neither side in 1200
// (of 26 seeds of Stable-Baselines3, 4 come to 90), so they have 3000 here.
func TestIdentityAsStableBaselines3(t *testing.T) {
	for _, c := range []struct {
		name   string
		steps  int
		lr     float64
		change func(c *classic.IdentityConfig)
	}{
		{"discrete", 1200, 2e-3, func(c *classic.IdentityConfig) { c.Dims = []int{4} }},
		{"multi-discrete", 1200, 2e-3, func(c *classic.IdentityConfig) { c.Space, c.Dims = classic.SpaceMultiDiscrete, []int{4, 4} }},
		{"multi-binary", 3000, 7e-4, func(c *classic.IdentityConfig) { c.Space, c.Dims = classic.SpaceMultiBinary, []int{4} }},
		{"box", 2000, 1e-3, func(c *classic.IdentityConfig) { c.Space, c.Dims, c.Eps = classic.SpaceBox, []int{1}, 0.5 }},
	} {
		config := Defaults()
		config.Gamma, config.LearningRate, config.CriticLearningRate, config.LogStdInit = 0.4, c.lr, c.lr, -0.5
		v := identities(t, 1, c.change)
		a := agent(t, config, v, testengines.Fastest(t), 1)
		r := agenttest.NewTraining(t, a, v)
		for r.Done < c.steps {
			r.Update(t)
		}
		got := agenttest.Return(t, a, identities(t, 1, c.change), 20)
		t.Logf("%s: %g", c.name, got)
		if got < 90 {
			t.Errorf("%s: the mean return is %g after %d env steps, expected at least 90", c.name, got, c.steps)
		}
	}
}

// TestScheduleOfARun: a linear schedule without steps of its own takes as long as the run, and
// holds its first value where that is not known.
func TestScheduleOfARun(t *testing.T) {
	n := 0
	// The last rollout is taken whole.
	for _, total := range []int64{0, 4 * 2 * 16, 5*2*16 - 1} {
		c := quick()
		c.LearningRateSchedule.Kind = "linear"
		v := corridors(t, 2)
		r := agenttest.NewTraining(t, agent(t, c, v, testengines.Fastest(t), 1, func(s *agents.Setup) { s.TotalEnvSteps = total }), v)
		for i := range 5 {
			m := r.Update(t)
			left := 1.0
			if total > 0 {
				left = max(0, 1-float64(i)/float64((total+31)/32))
			}
			if n++; math.Abs(m["train/learning_rate"]-left*c.LearningRate) > 1e-12 || math.Abs(m["train/learning_rate_critic"]-left*c.CriticLearningRate) > 1e-12 {
				t.Errorf("of %d env steps: learning rates %g and %g, expected %g of the first ones", total, m["train/learning_rate"], m["train/learning_rate_critic"], left)
			}
		}
	}
	if n != 15 {
		t.Errorf("%d comparisons", n)
	}
}

// TestProfile: a learner tells where its time goes.
func TestProfile(t *testing.T) {
	now := time.Unix(0, 0)
	p := agents.NewProfile(func() time.Time { now = now.Add(time.Second); return now })
	v := corridors(t, 2)
	r := agenttest.NewTraining(t, agent(t, quick(), v, testengines.Fastest(t), 1, func(s *agents.Setup) { s.Profile = p }), v)
	for range 3 {
		r.Update(t)
	}
	for _, phase := range []agents.Phase{agents.Sampling, agents.Gradient, agents.Optimising} {
		if spent, calls := p.Spent(phase); spent != 3*time.Second || calls != 3 {
			t.Errorf("%v: %v in %d calls", phase, spent, calls)
		}
	}
}
