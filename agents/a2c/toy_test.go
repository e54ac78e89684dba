package a2c

import (
	"testing"

	"github.com/onnxrl/onnxrl/agents/agenttest"
	"github.com/onnxrl/onnxrl/envs"
)

// flatToy has two vectors and two heads.
func flatToy() envs.Spec {
	return envs.Spec{
		Name: "toy", Observation: envs.Dict{{Name: "x", Space: envs.Unbounded(3)}, {Name: "y", Space: envs.Unbounded(2)}},
		Action: envs.MultiDiscrete{N: []int{2, 3}}, Masked: true, Reward: envs.Range{Low: -100, High: 100}, Random: true,
	}
}

// windowToy has windows of 8 rows of 3 assets with 4 features out of a table of 60 rows.
func windowToy(t testing.TB) envs.Spec {
	s := flatToy()
	s.Observation = envs.Dict{{Name: "window", Space: envs.Unbounded(8, 3, 4), Window: agenttest.Window(t, 60, 3, 4)}, {Name: "position", Space: envs.Unbounded(3)}}
	s.Action = envs.MultiDiscrete{N: []int{3, 3, 3}}
	return s
}
