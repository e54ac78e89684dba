package ppo

import (
	"testing"

	"github.com/onnxrl/onnxrl/agents"
	"github.com/onnxrl/onnxrl/agents/agenttest"
	"github.com/onnxrl/onnxrl/envs/classic"
	"github.com/onnxrl/onnxrl/envs/vector"
	"github.com/onnxrl/onnxrl/runtime/engine/testengines"
)

// identityConfig is that of Stable-Baselines3's test_identity.py.
func identityConfig() Config {
	c := Defaults()
	c.Gamma, c.LearningRate, c.NSteps, c.NEpochs = 0.4, 2e-3, 256, 4
	return c
}

func identities(t testing.TB, n int, change func(c *classic.IdentityConfig)) *vector.Local {
	return agenttest.Vector(t, n, func() (*classic.Env, error) {
		c := classic.IdentityDefaults()
		change(&c)
		return classic.NewIdentity(c)
	})
}

// TestLearnsIdentity has the thresholds and numbers of env steps of Stable-Baselines3's tests: at
// least 90 of 100 steps right after 1,200 env steps, in a box after 1,000.
func TestLearnsIdentity(t *testing.T) {
	n := 0
	for _, x := range []struct {
		name    string
		updates int
		env     func(c *classic.IdentityConfig)
		change  func(c *Config)
	}{
		{"discrete", 5, func(c *classic.IdentityConfig) {}, nil},
		{"multi-discrete", 5, func(c *classic.IdentityConfig) { c.Space, c.Dims = classic.SpaceMultiDiscrete, []int{2, 2} }, nil},
		{"multi-binary", 5, func(c *classic.IdentityConfig) { c.Space, c.Dims = classic.SpaceMultiBinary, []int{2} }, nil},
		{"box", 4, func(c *classic.IdentityConfig) { c.Space, c.Dims, c.Eps = classic.SpaceBox, []int{1}, 0.5 }, func(c *Config) { c.LearningRate, c.NEpochs = 1e-3, 10; c.Gamma = 0.99 }},
		// Nobody's test; the noise is the same for four steps, so there is less to be learnt from a
		// step.
		{"box, gSDE", 8, func(c *classic.IdentityConfig) { c.Space, c.Dims, c.Eps = classic.SpaceBox, []int{1}, 0.5 }, func(c *Config) {
			c.LearningRate, c.NEpochs, c.UseSDE, c.SDESampleFreq, c.LogStdInit = 1e-3, 10, true, 4, -2
		}},
	} {
		c := identityConfig()
		if x.change != nil {
			x.change(&c)
		}
		v := identities(t, 1, x.env)
		a := agentOf(t, c, v, testengines.Fastest(t), 1)
		updates(t, agenttest.NewTraining(t, a, v), x.updates)
		got := agenttest.Return(t, a, identities(t, 1, x.env), 20)
		t.Logf("%s: %.1f", x.name, got)
		if n++; got < 90 {
			t.Errorf("%s: the greedy policy is right in %.1f of 100 steps, expected 90", x.name, got)
		}
	}
	if n != 5 {
		t.Errorf("%d cases", n)
	}
}

func invalid(t testing.TB, n int, change func(c *classic.InvalidActionConfig)) *vector.Local {
	return agenttest.Vector(t, n, func() (*classic.Env, error) {
		c := classic.InvalidActionDefaults()
		change(&c)
		return classic.NewInvalidAction(c)
	})
}

// TestMasks has the thresholds of sb3-contrib's tests: where the mask leaves one action, a policy
// that has learnt nothing is right; with 15 of 70 left, one that has learnt from the two rollouts
// that 3,000 env steps take is right in 90 of 100.
func TestMasks(t *testing.T) {
	n := 0
	for _, x := range []struct {
		name    string
		updates int
		least   float64
		env     func(c *classic.InvalidActionConfig)
	}{
		{"one of 20 is left", 0, 99, func(c *classic.InvalidActionConfig) { c.Dims, c.Invalid = []int{20}, 19 }},
		{"heads", 0, 99, func(c *classic.InvalidActionConfig) {
			c.Space, c.Dims, c.Invalid = classic.SpaceMultiDiscrete, []int{2, 3}, 3
		}},
		{"bits", 0, 99, func(c *classic.InvalidActionConfig) {
			c.Space, c.Dims, c.Invalid = classic.SpaceMultiBinary, []int{3}, 3
		}},
		{"15 of 70 are left", 2, 90, func(c *classic.InvalidActionConfig) {}},
	} {
		c := Defaults()
		c.Gamma = 0.4
		v := invalid(t, 1, x.env)
		a := agentOf(t, c, v, testengines.Fastest(t), 1)
		updates(t, agenttest.NewTraining(t, a, v), x.updates)
		got := agenttest.Return(t, a, invalid(t, 1, x.env), 20)
		t.Logf("%s: %.1f", x.name, got)
		if n++; got < x.least {
			t.Errorf("%s: the greedy policy is right in %.1f of 100 steps, expected %g", x.name, got, x.least)
		}
	}
	if n != 4 {
		t.Errorf("%d cases", n)
	}
}

// TestLearnsCartPole trains with RL-Zoo's settings until the greedy policy balances for Gymnasium's
// 475 steps, which must be the case within 100,000 env steps. Whoever trains publishes the policy
// that was best in validation, so the first one that is good enough counts.
func TestLearnsCartPole(t *testing.T) {
	v := cartpoles(t, 8)
	a := agentOf(t, zoo(), v, testengines.Fastest(t), 1, func(s *agents.Setup) { s.TotalEnvSteps = 100_000 })
	r := agenttest.NewTraining(t, a, v)
	best := 0.0
	for r.Done*8 < 100_000 && best < 475 {
		updates(t, r, 39)
		got := agenttest.Return(t, a, cartpoles(t, 8), 16)
		t.Logf("after %d env steps: %.1f", r.Done*8, got)
		best = max(best, got)
	}
	if best < 475 {
		t.Errorf("the best greedy policy balances for %.1f steps, expected 475", best)
	}
}
