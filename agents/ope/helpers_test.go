package ope

import (
	"testing"

	"github.com/onnxrl/onnxrl/agents/agenttest"
	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/envs/vector"
	"github.com/onnxrl/onnxrl/runtime/rng"
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

// streamOf is a stream of a seed.
func streamOf(seed uint64) *rng.Stream { return rng.New(seed).Stream() }
