package ppo

import (
	"math"
	"testing"

	"github.com/onnxrl/onnxrl/agents"
	"github.com/onnxrl/onnxrl/agents/agenttest"
	"github.com/onnxrl/onnxrl/runtime/engine/testengines"
)

// TestOrthoInit compares first parameters with the gains of the package comment.
func TestOrthoInit(t *testing.T) {
	agenttest.OrthoInit(t, math.Sqrt2, func(ortho bool) agents.Agent {
		c := Defaults()
		c.OrthoInit, c.Hidden = ortho, []int{32, 32}
		return agentOf(t, c, cartpoles(t, 1), testengines.Fastest(t), 1)
	})
}
