package publish

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/agents/experiment"
	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/runtime/engine/testengines"
	"github.com/onnxrl/onnxrl/runtime/longtest"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// breaking makes environments that do something before each step.
type breaking struct {
	envs.Factory
	before func() error
	made   int
}

func (b *breaking) New(s envs.Split, n int) (envs.Env, error) {
	b.made++
	e, err := b.Factory.New(s, n)
	return &broken{e, b}, err
}

type broken struct {
	envs.Env
	by *breaking
}

func (b *broken) Step(a *tensor.Tensor, ts *envs.TimeStep) error {
	if b.by.before != nil {
		if err := b.by.before(); err != nil {
			return err
		}
	}
	return b.Env.Step(a, ts)
}

// An environment that fails, or does not answer, while observations are recorded costs the
// publication and nothing else; the next one has a new environment.
func TestEnvironmentsThatFailInTheProof(t *testing.T) {
	longtest.Slow(t)
	c := document(t, "env: {kind: corridor, cells: 5}")
	c.Publish.When = experiment.AtEnd
	f := &breaking{Factory: open(t, c)}
	e := testengines.All(t)[0]
	dir := t.TempDir()
	p := publisher(t, c, f, e, dir)
	pol := policy(t, f)
	best := filepath.Join(dir, BestFile)
	candidate := func(at int64, want bool) {
		t.Helper()
		pol.EnvSteps = at
		if ref, err := p.Publish(t.Context(), pol); ref != "" || err != nil {
			t.Errorf("env step %d: %q, %v", at, ref, err)
		}
		if _, err := os.Stat(best); (err == nil) != want {
			t.Errorf("env step %d: a candidate: %v, expected %v", at, err == nil, want)
		}
	}
	candidate(1000, true)
	made := f.made
	f.before = func() error { return errors.New("the wheel has come off") }
	// The candidate of the older policy would be taken for the best one.
	candidate(2000, false)
	if _, err := p.Version(t.Context(), pol); !errors.Is(err, ErrObservations) || !strings.Contains(err.Error(), "the wheel has come off") {
		t.Errorf("error %v", err)
	}
	f.before = nil
	ref, err := p.Version(t.Context(), pol)
	if err != nil || ref == "" || f.made != made+2 {
		t.Errorf("the environment has recovered: %q, %v, made %d times", ref, err, f.made-made)
	}
	// A publication stays.
	f.before = func() error { return errors.New("the wheel has come off") }
	candidate(3000, true)

	// One that takes its time ends with ctx.
	ctx, cancel := context.WithCancel(t.Context())
	f.before = func() error { cancel(); return nil }
	if _, err := p.Version(ctx, pol); !errors.Is(err, context.Canceled) || errors.Is(err, errNoAnswer) {
		t.Errorf("error %v", err)
	}
	// One that does not come back is given up.
	hang := make(chan struct{})
	defer close(hang)
	ctx, cancel = context.WithCancel(t.Context())
	f.before = func() error { cancel(); <-hang; return nil }
	if _, err := p.Version(ctx, pol); !errors.Is(err, errNoAnswer) || !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
}
