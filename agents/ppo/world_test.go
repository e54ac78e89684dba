package ppo

import (
	"testing"

	"onnxrl/agents"
	"onnxrl/agents/agenttest"
	"onnxrl/envs/classic"
	"onnxrl/envs/vector"
	"onnxrl/runtime/engine"
)

func cartpoles(t testing.TB, n int) *vector.Local {
	return agenttest.Vector(t, n, func() (*classic.Env, error) { return classic.NewCartPole(classic.CartPoleDefaults()) })
}

// agentOf makes an agent for environments. changes edit its setup.
func agentOf(t testing.TB, c Config, v vector.Env, e engine.Compiler, threads int, changes ...func(*agents.Setup)) *Agent {
	t.Helper()
	m, err := NewMaker(c)
	if err != nil {
		t.Fatal(err)
	}
	return agenttest.Agent(t, m, v, e, threads, changes...).(*Agent)
}

// updates takes several, and returns the metrics of the last.
func updates(t testing.TB, r *agenttest.Training, n int) agents.Metrics {
	t.Helper()
	for range n {
		r.Update(t)
	}
	return r.Last
}
