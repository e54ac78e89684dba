package a2c

import (
	"testing"

	"github.com/onnxrl/onnxrl/agents"
	"github.com/onnxrl/onnxrl/agents/agenttest"
	"github.com/onnxrl/onnxrl/models/layer"
	"github.com/onnxrl/onnxrl/runtime/engine/testengines"
)

// TestOrthoInit compares first parameters with the gains of the package comment.
func TestOrthoInit(t *testing.T) {
	agenttest.OrthoInit(t, layer.Gain(qtmrl().Activation), func(ortho bool) agents.Agent {
		c := qtmrl()
		c.OrthoInit, c.Hidden, c.Encoders = ortho, []int{32, 32}, Separate
		return agent(t, c, corridors(t, 1), testengines.Fastest(t), 1)
	})
}
