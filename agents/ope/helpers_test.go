package ope

import (
	"testing"

	"github.com/onnxrl/onnxrl/agents/agenttest"
	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/envs/vector"
)

// frameOf is a batch of one row.
func frameOf(t *testing.T, spec envs.Spec) *vector.Batch {
	t.Helper()
	f, err := vector.NewFrame(spec, 1, false)
	if err != nil {
		t.Fatal(err)
	}
	agenttest.Closing(t, f)
	return f.Batch()
}
