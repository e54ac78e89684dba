package train_test

import (
	"bytes"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/agents"
	"github.com/onnxrl/onnxrl/agents/train"
	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/models/checkpoint"
	"github.com/onnxrl/onnxrl/runtime/portable"
	"github.com/onnxrl/onnxrl/runtime/rng"
)

// unsaved hides that environments can be saved.
type unsaved struct{ envs.Factory }

func (f unsaved) New(s envs.Split, i int) (envs.Env, error) {
	e, err := f.Factory.New(s, i)
	return struct{ envs.Env }{e}, err
}

// TestUnsavedEnvironments: a run whose environments cannot be saved is saved without them, says so
// once, and goes on in new episodes.
func TestUnsavedEnvironments(t *testing.T) {
	var log bytes.Buffer
	dir := t.TempDir()
	open := func(m *maker, total int64) *train.Trainer {
		cfg := small()
		cfg.TotalEnvSteps = total
		tr, err := train.New(t.Context(), unsaved{factory(t)}, m, agents.Setup{Engine: portable.New(), Key: rng.New(3)}, cfg, train.Hooks{Log: slog.New(slog.NewTextHandler(&log, nil))})
		if err != nil {
			t.Fatal(err)
		}
		return tr
	}
	store, err := checkpoint.OpenStore(dir, checkpoint.Options{KeepLast: 3})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	first := open(&maker{rollout: 20}, 200)
	if _, err := first.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	for step := range int64(2) {
		if _, err := store.Save(checkpoint.Meta{Kind: "train", Step: step}, first); err != nil {
			t.Fatal(err)
		}
	}
	if n := strings.Count(log.String(), "level=WARN"); n != 1 || !strings.Contains(log.String(), "begins new episodes") {
		t.Errorf("%d warnings after two checkpoints: %s", n, log.String())
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	var weights [2][]float32
	for i := range weights {
		m := &maker{rollout: 20}
		second := open(m, 400)
		c, err := checkpoint.Latest(dir)
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(c.Load(second), c.Close()); err != nil {
			t.Fatal(err)
		}
		r, err := second.Run(t.Context())
		if err != nil || r.EnvSteps != 400 || r.Taken != 200 {
			t.Errorf("the resumed run ends with %+v, %v", r, err)
		}
		weights[i] = slices.Clone(m.made.params.View("weight").Float32s())
		if err := second.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if !slices.Equal(weights[0], weights[1]) {
		t.Errorf("the same checkpoint leads to %v and %v", weights[0], weights[1])
	}
	if n := strings.Count(log.String(), "could not be saved"); n != 2 {
		t.Errorf("resuming twice is told %d times: %s", n, log.String())
	}
}
