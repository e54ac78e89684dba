package apptest

import (
	"path/filepath"
	"testing"

	"github.com/onnxrl/onnxrl/agents/experiment"
	"github.com/onnxrl/onnxrl/agents/experiment/kinds"
	"github.com/onnxrl/onnxrl/agents/publish"
	"github.com/onnxrl/onnxrl/agents/served"
	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/envs/market/trading"
	"github.com/onnxrl/onnxrl/runtime/portable"
	"github.com/onnxrl/onnxrl/runtime/rng"
)

// TestRange opens the environment of a document at the beginning of its test range, with its first
// step, and the best policy of a run of it.
func TestRange(t *testing.T, doc, run string) (*served.Actor, *trading.Env, *envs.TimeStep) {
	t.Helper()
	cfg, _, err := experiment.Load(doc, nil)
	if err != nil {
		t.Fatal(err)
	}
	_, f, _, err := kinds.All().Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	a, err := publish.OpenActor(t.Context(), filepath.Join(run, publish.BestFile), f, envs.Test, portable.New(), 1)
	if err != nil {
		t.Fatal(err)
	}
	e, err := f.New(envs.Test, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := a.Close(); err != nil {
			t.Error(err)
		}
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	})
	ts := envs.NewTimeStep(e.Spec())
	if err := e.Reset(rng.New(1), ts); err != nil {
		t.Fatal(err)
	}
	return a, e.(*trading.Env), ts
}
