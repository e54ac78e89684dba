package ppo

import (
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/agents"
	"github.com/onnxrl/onnxrl/agents/agenttest"
	"github.com/onnxrl/onnxrl/envs/classic"
	"github.com/onnxrl/onnxrl/envs/vector"
	"github.com/onnxrl/onnxrl/runtime/engine"
	"github.com/onnxrl/onnxrl/runtime/portable"
	"github.com/onnxrl/onnxrl/runtime/rng"
)

func cartpoles(t testing.TB, n int) *vector.Local {
	return agenttest.Vector(t, n, func() (*classic.Env, error) { return classic.NewCartPole(classic.CartPoleDefaults()) })
}

// made is an agent with its learner.
type made struct {
	agents.Agent
	learner *learner
}

// agentOf makes an agent for environments. changes edit its setup.
func agentOf(t testing.TB, c Config, v vector.Env, e engine.Compiler, threads int, changes ...func(*agents.Setup)) *made {
	t.Helper()
	m, err := NewMaker(c)
	if err != nil {
		t.Fatal(err)
	}
	a := agenttest.Agent(t, m, v, e, threads, changes...)
	return &made{a, a.Learner().(*learner)}
}

// TestBatchesFitIntoRollouts: a minibatch has no more samples than there are.
func TestBatchesFitIntoRollouts(t *testing.T) {
	for _, c := range []struct {
		batch  int
		length int
		want   string
	}{
		{20, 0, ""}, {21, 0, "agent.batch_size is 21, more than the 20 samples of a rollout: agent.n_steps is 10 and train.num_envs 2"},
		{24, 4, ""}, {25, 4, "more than the 24 samples"},
	} {
		config := Defaults()
		config.NSteps, config.BatchSize = 10, c.batch
		if c.length > 0 {
			config.Recurrent = Recurrent{LSTM, 4, 1, Separate, c.length}
		}
		m, err := NewMaker(config)
		if err != nil {
			t.Fatal(err)
		}
		a, err := m.New(t.Context(), agents.Setup{Spec: cartpoles(t, 2).Spec(), Envs: 2, Threads: 1, Engine: portable.New(), Key: rng.New(1)})
		if err == nil {
			err = a.Close()
		}
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%+v: error %v", c, err)
		}
	}
}

// updates takes several, and returns the metrics of the last.
func updates(t testing.TB, r *agenttest.Training, n int) agents.Metrics {
	t.Helper()
	for range n {
		r.Update(t)
	}
	return r.Last
}
