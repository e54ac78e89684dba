package ppo

import (
	"testing"

	"github.com/onnxrl/onnxrl/agents/agenttest"
	"github.com/onnxrl/onnxrl/envs"
)

func headsOf(s envs.Space) []int {
	switch s := s.(type) {
	case envs.Discrete:
		return []int{s.N}
	case envs.MultiDiscrete:
		return s.N
	case envs.MultiBinary:
		list := make([]int, s.N)
		for i := range list {
			list[i] = 2
		}
		return list
	}
	return nil
}

// spec describes a toy with a vector and, beside it, something discrete.
func spec(action envs.Space, masked bool) envs.Spec {
	return envs.Spec{
		Name: "toy", Observation: envs.Dict{{Name: "x", Space: envs.Unbounded(3)}, {Name: "k", Space: envs.Discrete{N: 2}}},
		Action: action, Masked: masked, Reward: envs.Range{Low: -100, High: 100}, Random: true,
	}
}

// windows describes a toy whose observations are windows of 8 rows with 3 features, of so many
// assets, out of a table of 60 rows.
func windows(t testing.TB, assets int, action envs.Space, masked bool) envs.Spec {
	s := spec(action, masked)
	shape := []int{3}
	if assets > 0 {
		shape = []int{assets, 3}
	}
	s.Observation = envs.Dict{{Name: "window", Space: envs.Unbounded(append([]int{8}, shape...)...), Window: agenttest.Window(t, append([]int{60}, shape...)...)}}
	if assets > 0 {
		s.Observation = append(s.Observation, envs.Field{Name: "position", Space: envs.Unbounded(assets)})
	}
	return s
}
