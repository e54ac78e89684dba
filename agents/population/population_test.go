package population

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/onnxrl/onnxrl/agents/evolve"
	"github.com/onnxrl/onnxrl/agents/experiment/kinds"
	"github.com/onnxrl/onnxrl/agents/run"
	"github.com/onnxrl/onnxrl/runtime/portable"
	"github.com/onnxrl/onnxrl/runtime/sorted"
)

var documents = map[string]string{
	"expert.yaml": `
seed: 4
env: {kind: pendulum}
wrappers: {time_limit: 20, skill: {dim: 4}}
agent: {kind: sac, hidden: [8], learning_starts: 20, buffer_size: 200, batch_size: 8, diversity: {kind: diayn, features: [action], hidden: [8]}}
train: {num_envs: 2, total_env_steps: 80, threads: 1}
eval: {episodes: 2}
publish: {observations: 64}
`,
	"population.yaml": `
experts:
  base: expert.yaml
  population: 2
  interval_steps: 40
  generations: 4
  every: 2
  strategy: {kind: mf_pbt, variant: owner}
  diversity: {threshold: 1, patience: 3}
  probe: 16
  space:
    agent.learning_rate: {kind: loguniform, low: 1.0e-4, high: 1.0e-2}
router:
  interval_steps: 24
  every: 2
  experiment:
    seed: 5
    env: {kind: meta, segment: 4, diversity: {kl_coef: 0.1, usage_coef: 0.01}}
    agent: {kind: ppo, n_steps: 8, batch_size: 8, n_epochs: 1, hidden: [8]}
    train: {num_envs: 2, total_env_steps: 80, threads: 1}
    eval: {episodes: 2}
    publish: {observations: 64, allow_ties: true}
`,
}

// written writes the documents, that of the population edited by pairs of old and new text.
func written(t *testing.T, edits ...string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range sorted.All(documents) {
		if name == "population.yaml" {
			text = strings.NewReplacer(edits...).Replace(text)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return filepath.Join(dir, "population.yaml")
}

// trained trains a population, or goes on with it; one that has ended is published.
func trained(ctx context.Context, t *testing.T, path string, o Options) (sum Summary, err error) {
	t.Helper()
	e := portable.New()
	defer e.Close()
	o.Kinds, o.Run.Engine = kinds.All(), e
	p, err := Open(ctx, path, o)
	if err != nil {
		return sum, err
	}
	defer func() { err = errors.Join(err, p.Close()) }()
	if _, err := p.Begin(); err != nil {
		return sum, err
	}
	if err := p.Train(ctx); err != nil {
		return sum, err
	}
	return p.Publish(ctx)
}

// outcome is what depends on all bits of a population: the log of its experts and the state of the
// router after its turns.
func outcome(t *testing.T, dir string) (text string) {
	t.Helper()
	files := []string{filepath.Join(dir, ExpertsDir, evolve.LogFile)}
	found, err := filepath.Glob(filepath.Join(dir, RouterDir, "turn-*", run.CheckpointDir, "*", "arrays.safetensors"))
	if err != nil || len(found) != 2 {
		t.Fatal(found, err)
	}
	for _, path := range append(files, found...) {
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		text += string(b)
	}
	return text
}

// TestPopulation: the router has its turns over the experts as they are then, and is published; a
// population that was stopped again and again ends with the same bits.
func TestPopulation(t *testing.T) {
	t.Run("apart", func(t *testing.T) { population(t, 0) })
	t.Run("shared", func(t *testing.T) { population(t, 40, "probe: 16", "probe: 16\n  replay: {capacity: 400}") })
}

// population trains one that is edited. Each time that it is stopped it had taken so many more
// steps than the time before.
func population(t *testing.T, more int, edits ...string) {
	path, dir := written(t, edits...), t.TempDir()
	whole := filepath.Join(dir, "whole")
	var turns atomic.Int64
	sum, err := trained(t.Context(), t, path, Options{Dir: whole, Turned: func(Summary) { turns.Add(1) }})
	if err != nil {
		t.Fatal(err)
	}
	if len(sum.Router) != 2 || sum.Router[0].Decisions != 32 || sum.Router[1].Decisions != 48 || !sum.Router[1].Score.Defined() || turns.Load() != 6 {
		t.Errorf("%+v after %d turns", sum.Router, turns.Load())
	}
	if sum.Experts.Restarts != 1 || sum.Experts.Generations != 4 || sum.Experts.EnvSteps != 2*4*40 {
		t.Errorf("%+v", sum.Experts)
	}
	if _, err := os.Stat(sum.Published); err != nil {
		t.Error(err)
	}
	published, err := filepath.Glob(filepath.Join(whole, ExpertsDir, "generation-*", "member-*", "best.onnx"))
	if err != nil || len(published) != 4 {
		t.Errorf("%v, %v: expected the experts of two turns", published, err)
	}

	parts, stops := filepath.Join(dir, "parts"), 0
	o, again := Options{Dir: parts, Parallel: 1}, Summary{}
	for err = context.Canceled; errors.Is(err, context.Canceled) && stops < 100; stops++ {
		ctx, cancel := context.WithCancel(t.Context())
		var taken atomic.Int64
		o.Steps = func(n int64) {
			if taken.Add(n) >= int64(31+more*stops) {
				cancel()
			}
		}
		again, err = trained(ctx, t, path, o)
		cancel()
		path, o.Dir, o.Resume = "", "", parts
	}
	if err != nil {
		t.Fatal(err)
	}
	if stops < 4 || outcome(t, parts) != outcome(t, whole) || !reflect.DeepEqual(again.Router, sum.Router) {
		t.Errorf("after %d stops it is another population: %t, %+v, expected %+v", stops, outcome(t, parts) != outcome(t, whole), again.Router, sum.Router)
	}
}

// TestRefusals: nothing is written before the documents fit.
func TestRefusals(t *testing.T) {
	n := 0
	for old, c := range sorted.All(map[string][2]string{
		"population: 2":       {"population: 1", "experts.population: must be at least 2"},
		"base: expert.yaml":   {"base: none.yaml", "none.yaml"},
		"kind: meta,":         {"kind: pendulum,", `router.experiment: env.kind: "pendulum", expected meta`},
		"generations: 4":      {"generations: 5", "router.every: is 2, and the 5 generations of experts are no multiple of it"},
		"interval_steps: 24":  {"interval: 24", "unknown key"},
		"agent.learning_rate": {"agent.learning", "space.agent.learning: the experiment has no such key"},
	}) {
		dir := filepath.Join(t.TempDir(), "population")
		if _, err := trained(t.Context(), t, written(t, old, c[0]), Options{Dir: dir}); err == nil || !strings.Contains(err.Error(), c[1]) {
			t.Errorf("%s: %v", c[0], err)
		}
		if _, err := os.Stat(dir); err == nil {
			t.Errorf("%s: there is a directory", c[0])
		}
		n++
	}
	if n != 6 {
		t.Errorf("%d refusals", n)
	}
	expert := filepath.Join(filepath.Dir(written(t)), "expert.yaml")
	if _, err := trained(t.Context(), t, expert, Options{}); err == nil || !strings.Contains(err.Error(), "it has no experts") {
		t.Error(err)
	}
}
