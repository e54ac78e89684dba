package run_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/agents/experiment/kinds"
	"github.com/onnxrl/onnxrl/agents/run"
	"github.com/onnxrl/onnxrl/agents/train"
	"github.com/onnxrl/onnxrl/models/checkpoint"
	"github.com/onnxrl/onnxrl/runtime/portable"
)

// interval trains one, and returns it with the path of its checkpoint.
func interval(ctx context.Context, t *testing.T, i run.Job, h run.Hooks) (run.Result, string, error) {
	t.Helper()
	e := portable.New()
	defer e.Close()
	if i.Config == "" {
		i.Config = text(t, document(t))
	}
	r, err := i.Train(ctx, kinds.All(), run.Options{Engine: e, Hooks: h})
	return r, filepath.Join(i.Dir, r.Checkpoint), err
}

// manifest is what a checkpoint holds, with the digest of its arrays.
func manifest(t *testing.T, path string) checkpoint.Manifest {
	t.Helper()
	c, err := checkpoint.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	return c.Manifest
}

// TestIntervals: intervals of a run, each in a directory of its own, of which one was interrupted
// and another is trained twice, are as one that never stopped.
func TestIntervals(t *testing.T) {
	dir := t.TempDir()
	whole, end, err := interval(t.Context(), t, run.Job{Dir: filepath.Join(dir, "whole")}, run.Hooks{})
	if err != nil || whole.Stopped != "" || whole.EnvSteps != 400 {
		t.Fatalf("%+v, %v", whole, err)
	}
	var lines []map[string]any
	from, n := "", 0
	for k, steps := range []int64{101, 90, 0} {
		i := run.Job{Dir: filepath.Join(dir, string(rune('a'+k))), Checkpoint: from, EnvSteps: steps}
		if k == 1 {
			ctx, cancel := context.WithCancel(t.Context())
			if _, _, err := interval(ctx, t, i, run.Hooks{Progress: func(*run.Run, train.Progress) { cancel() }}); !errors.Is(err, context.Canceled) {
				t.Errorf("interrupted: %v", err)
			}
			cancel()
		}
		r, path, err := interval(t.Context(), t, i, run.Hooks{})
		if err != nil || steps > 0 != (r.Stopped == train.Paused) {
			t.Fatalf("%+v, %v", r, err)
		}
		again, _, err := interval(t.Context(), t, i, run.Hooks{Begin: func(*run.Run) { t.Error("it is trained again") }})
		if err != nil || !reflect.DeepEqual(again, r) {
			t.Errorf("again: %+v, %v; expected %+v", again, err, r)
		}
		lines, from = append(lines, metrics(t, i.Dir)...), path
		n++
	}
	if got, want := manifest(t, from), manifest(t, end); !reflect.DeepEqual(got.Files, want.Files) || !reflect.DeepEqual(got.Sections, want.Sections) {
		t.Errorf("the intervals end with %s, expected %s", got.Sections, want.Sections)
	}
	if want := metrics(t, filepath.Join(dir, "whole")); n != 3 || len(want) < 8 || !reflect.DeepEqual(lines, want) {
		t.Errorf("%d intervals: %v, expected %v", n, lines, want)
	}
}

// TestIntervalEdits goes on from a checkpoint with another document: as an interval, which needs no
// run around the checkpoint, and as a run in a new directory. Lineage says what has changed.
func TestIntervalEdits(t *testing.T) {
	dir := t.TempDir()
	_, from, err := interval(t.Context(), t, run.Job{Dir: filepath.Join(dir, "first"), EnvSteps: 100}, run.Hooks{})
	if err != nil {
		t.Fatal(err)
	}
	sets := []string{"agent.ent_coef=0.01", "agent.gamma=0.9"}
	seeded := document(t)
	seeded.Seed = 5
	r, edited, err := interval(t.Context(), t, run.Job{Config: text(t, document(t, sets...)), Dir: filepath.Join(dir, "edited"), Checkpoint: from}, run.Hooks{})
	if err != nil {
		t.Fatal(err)
	}
	if _, other, err := interval(t.Context(), t, run.Job{Dir: filepath.Join(dir, "other"), Checkpoint: from, Config: text(t, seeded)}, run.Hooks{}); err != nil || reflect.DeepEqual(manifest(t, other).Files, manifest(t, edited).Files) {
		t.Errorf("another seed: %v", err)
	}
	branch := filepath.Join(dir, "branch")
	if _, err := trained(t.Context(), t, run.Job{Resume: from, Dir: branch, Sets: sets}, run.Options{}); err != nil {
		t.Fatal(err)
	}
	if got, want := manifest(t, filepath.Join(branch, r.Checkpoint)), manifest(t, edited); !reflect.DeepEqual(got.Files, want.Files) {
		t.Errorf("the branch ends with %v, expected %v", got, want)
	}
	for _, name := range []string{"edited", "branch"} {
		var l run.Lineage
		if err := run.ReadJSON(filepath.Join(dir, name, run.LineageFile), &l); err != nil {
			t.Fatal(err)
		}
		if l.Continues != from || len(l.ContinuesSHA256) != 64 || !slices.Equal(l.Changes, []string{"agent.gamma: 0.99 -> 0.9", "agent.ent_coef: 0.0 -> 0.01"}) || !strings.Contains(l.Config, "gamma: 0.9\n") {
			t.Errorf("%s: %+v", name, l)
		}
	}
	// The branch is a run like any other: what it was branched with is its document.
	if _, err := trained(t.Context(), t, run.Job{Resume: branch, Sets: []string{"agent.gamma=0.8"}}, run.Options{}); err == nil || !strings.Contains(err.Error(), "agent.gamma: 0.9 -> 0.8") {
		t.Errorf("changed again: %v", err)
	}

	n := 0
	for _, c := range []struct {
		i    run.Job
		says string
	}{
		{run.Job{Dir: filepath.Join(dir, "no"), Checkpoint: from, Config: text(t, document(t, "agent.hidden=[5]"))}, "expected F32[5"},
		{run.Job{Dir: filepath.Join(dir, "no"), Checkpoint: from, Config: text(t, document(t, "train.num_envs=3"))}, "expected 3"},
		{run.Job{Dir: filepath.Join(dir, "no"), Checkpoint: filepath.Join(dir, "none"), EnvSteps: 1}, "manifest.json is missing"},
		{run.Job{Dir: filepath.Join(dir, "edited"), Checkpoint: from, Config: text(t, document(t, sets[:1]...))}, "agent.gamma: 0.9 -> 0.99"},
		{run.Job{Dir: filepath.Join(dir, "edited"), Checkpoint: edited, Config: text(t, document(t, sets...))}, "and not from one of"},
		{run.Job{Checkpoint: from, EnvSteps: -1}, "no negative EnvSteps"},
	} {
		if _, _, err := interval(t.Context(), t, c.i, run.Hooks{}); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%+v: %v", c.i, err)
		}
		if run.Holds(filepath.Join(dir, "no")) {
			t.Errorf("%+v: it is a run", c.i)
		}
		n++
	}
	// Without a directory nothing is kept, and the rest is the same.
	e, evaluated := portable.New(), 0
	plan, err := run.New(t.Context(), kinds.All(), run.Job{Name: "corridor", Config: text(t, document(t))}, run.Options{Engine: e})
	if err != nil {
		t.Fatal(err)
	}
	defer plan.Close()
	t.Chdir(t.TempDir())
	unkept, err := run.Job{Config: text(t, document(t, sets...)), Checkpoint: from}.Train(t.Context(), kinds.All(), run.Options{
		Engine: e, Factory: plan.Factory(), Hooks: run.Hooks{Evaluated: func(*run.Run, int64, map[string]float64) error { evaluated++; return nil }},
	})
	list, lerr := os.ReadDir(".")
	if err := errors.Join(err, lerr, e.Close()); err != nil || len(list) > 0 || unkept.Checkpoint != "" || !reflect.DeepEqual(unkept.Train, r.Train) || !reflect.DeepEqual(unkept.Validation, r.Validation) || evaluated != 2 {
		t.Errorf("without a directory: %+v, %d evaluations, %v in it, %v; expected %+v", unkept, evaluated, list, err, r)
	}
	no := filepath.Join(dir, "no branch")
	if _, err := trained(t.Context(), t, run.Job{Resume: from, Dir: no, Sets: []string{"agent.hidden=[5]"}}, run.Options{}); err == nil || run.Holds(no) {
		t.Errorf("a branch of other shapes: %v", err)
	}
	if n != 6 {
		t.Errorf("%d refusals", n)
	}
}
