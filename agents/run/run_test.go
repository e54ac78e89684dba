package run_test

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/onnxrl/onnxrl/agents/experiment"
	"github.com/onnxrl/onnxrl/agents/experiment/kinds"
	"github.com/onnxrl/onnxrl/agents/run"
	"github.com/onnxrl/onnxrl/agents/train"
	"github.com/onnxrl/onnxrl/configs"
	"github.com/onnxrl/onnxrl/runtime/portable"
)

const corridor = `
env: {kind: corridor, cells: 5}
agent: {kind: ppo, rollout_steps: 25, batch_size: 25, n_epochs: 1, hidden: [4]}
train: {num_envs: 2, total_env_steps: 400, log_interval_steps: 50, threads: 1, validation: {every_steps: 200}}
eval: {episodes: 2}
publish: {when: never}
`

func document(t *testing.T, sets ...string) experiment.Config {
	t.Helper()
	doc, err := configs.Parse("corridor.yaml", []byte(corridor))
	if err == nil {
		err = doc.Set(sets...)
	}
	if err != nil {
		t.Fatal(err)
	}
	c := experiment.Defaults()
	if err := doc.Decode(&c); err != nil {
		t.Fatal(err)
	}
	return c
}

// text is a document as jobs have it.
func text(t testing.TB, c experiment.Config) string {
	t.Helper()
	s, err := c.YAML()
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// trained trains the document of the test, or that of a run which is resumed, and returns an error
// of opening it or of training.
func trained(ctx context.Context, t *testing.T, j run.Job, o run.Options) (run.Summary, error) {
	t.Helper()
	o.Engine = portable.New()
	defer o.Engine.Close()
	var p *run.Plan
	var err error
	if j.Resume != "" {
		p, err = run.Open(ctx, kinds.All(), "", j, o)
	} else {
		j.Name, j.Config = "corridor", text(t, document(t))
		p, err = run.New(ctx, kinds.All(), j, o)
	}
	if err != nil {
		return run.Summary{}, err
	}
	defer func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	}()
	return p.Train(ctx)
}

// metrics reads what a run has recorded, without what is of the clock.
func metrics(t *testing.T, dir string) (lines []map[string]any) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, run.MetricsFile))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		var m map[string]any
		if err := json.Unmarshal([]byte(line), &m); err != nil {
			t.Fatal(err)
		}
		maps.DeleteFunc(m, func(k string, _ any) bool { return strings.HasPrefix(k, "time") || k == "wall_time" })
		lines = append(lines, m)
	}
	return lines
}

// Two seeds that are interrupted and resumed have the metrics of those that never stopped.
func TestInterruptedSeedsGoOn(t *testing.T) {
	whole, stopped := filepath.Join(t.TempDir(), "whole"), filepath.Join(t.TempDir(), "stopped")
	j, o := run.Job{Dir: whole, Seeds: []uint64{3, 4}}, run.Options{Parallel: 2}
	sum, err := trained(t.Context(), t, j, o)
	if err != nil || len(sum.Runs) != 2 || len(sum.Unfinished) > 0 {
		t.Fatalf("%+v, %v", sum, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var begun, ended atomic.Int32
	j.Dir = stopped
	o.Hooks = run.Hooks{
		Begin: func(*run.Run) { begun.Add(1) },
		Progress: func(_ *run.Run, p train.Progress) {
			if p.EnvSteps >= 150 {
				cancel()
			}
		},
		End: func(r *run.Run, res train.Result) error {
			if ended.Add(1); res.Stopped != train.Interrupted || r.Config().Seed != r.Seed() {
				t.Errorf("seed %d of %d: %q", r.Seed(), r.Config().Seed, res.Stopped)
			}
			return nil
		},
	}
	if sum, err = trained(ctx, t, j, o); err != nil || len(sum.Unfinished) != 2 || begun.Load() == 0 || begun.Load() != ended.Load() {
		t.Fatalf("%d begun, %d ended, %+v, %v", begun.Load(), ended.Load(), sum, err)
	}
	if sum, err = trained(t.Context(), t, run.Job{Resume: stopped}, run.Options{}); err != nil || len(sum.Runs) != 2 || len(sum.Unfinished) > 0 {
		t.Fatalf("%+v, %v", sum, err)
	}
	for _, seed := range []string{"seed-3", "seed-4"} {
		got, want := metrics(t, filepath.Join(stopped, seed)), metrics(t, filepath.Join(whole, seed))
		if len(want) < 8 || !slices.EqualFunc(got, want, func(a, b map[string]any) bool { return reflect.DeepEqual(a, b) }) {
			t.Errorf("%s: %v, expected %v", seed, got, want)
		}
	}
}

func TestRefusals(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	if _, err := run.New(t.Context(), kinds.All(), run.Job{Dir: dir}, run.Options{}); err == nil || !strings.Contains(err.Error(), "Options.Engine") {
		t.Errorf("no engine: %v", err)
	}
	if _, err := trained(t.Context(), t, run.Job{Resume: dir}, run.Options{}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("nothing to resume: %v", err)
	}
	if _, err := trained(t.Context(), t, run.Job{Dir: dir}, run.Options{}); err != nil {
		t.Fatal(err)
	}
	if _, err := trained(t.Context(), t, run.Job{Dir: dir}, run.Options{}); !errors.Is(err, run.ErrExists) {
		t.Errorf("a directory with a run: %v", err)
	}
	for _, c := range []struct {
		j    run.Job
		says string
	}{
		{run.Job{Resume: dir, Sets: []string{"agent.gamma=0.5"}}, "agent.gamma"},
		{run.Job{Resume: dir, Sets: []string{"train.total_env_steps=200"}}, "train.total_env_steps"},
		{run.Job{Resume: dir, Seeds: []uint64{1}}, "seeds"},
		{run.Job{Resume: dir, Dir: dir + "2"}, "continues in its own directory"},
	} {
		if _, err := trained(t.Context(), t, c.j, run.Options{}); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%+v: %v", c.j, err)
		}
	}
}
