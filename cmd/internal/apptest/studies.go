package apptest

import (
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/agents/tune"
	"github.com/onnxrl/onnxrl/runtime/sorted"
)

// AblationBase is an experiment that takes a moment: one asset, 400 bars, a network of a few
// hundred weights.
const AblationBase = `seed: 1
env:
  kind: trading
  window: 4
  data:
    synthetic: {kind: leading_indicator, seed: 1, bars: 400, move: 0.01, accuracy: 0.9}
    features: {indicators: {}, extra: [signal], prices: relative, volume: log}
    split: {train: [2000-01-03, 2000-12-31], valid: [2001-01-01, 2001-04-30], test: [2001-05-01, 2001-07-01]}
agent:
  kind: a2c
  encoder: {kind: timecnn, d_model: 8, n_layers: 1, pool: last}
  learning_rate: 0.001
  n_steps: 10
train:
  num_envs: 2
  total_env_steps: 400
  validation: {every_steps: 0}
  checkpoint: {every_steps: 40}
`

// AblationStudy varies AblationBase, its file base.yaml, in two factors.
const AblationStudy = `base: base.yaml
seeds: [1, 2]
metrics: [sharpe, total_return, turnover]
factors:
  window:
    "4": {env.window: 4}
    "8": {env.window: 8}
  entropy:
    "0.01": {agent.ent_coef: 0.01}
    "0": {agent.ent_coef: 0}
`

// AblationFiles writes a study and its base and returns the study's path.
func AblationFiles(t *testing.T, study, base string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range sorted.All(map[string]string{"study.yaml": study, "base.yaml": base}) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return filepath.Join(dir, "study.yaml")
}

// TuneYAML writes a search of eight short runs in a corridor. Pairs of edits replace parts of
// it. It returns the document's path.
func TuneYAML(t *testing.T, edits ...string) string {
	t.Helper()
	text := `seed: 1
env: {kind: corridor, cells: 6}
agent: {kind: a2c, n_steps: 5, hidden: [8]}
train: {num_envs: 2, total_env_steps: 400, threads: 1, validation: {every_steps: 100}}
eval: {episodes: 4, max_episode_steps: 30}
tune:
  trials: 8
  startup_trials: 3
  prune_after: 2
  metric: mean_length
  direction: minimize
  steps_per_trial: 300
  space:
    agent.learning_rate: {kind: loguniform, low: 1e-7, high: 0.1}
    agent.gamma: {kind: uniform, low: 0.8, high: 0.99}
    agent.hidden: {kind: categorical, choices: [[4], [8, 8]]}
    agent.n_steps: {kind: int, low: 2, high: 16, log: true}
    wrappers.time_limit: {kind: int, low: 20, high: 40}
`
	for i := 0; i < len(edits); i += 2 {
		if !strings.Contains(text, edits[i]) {
			t.Fatalf("nothing to replace: %q", edits[i])
		}
		text = strings.Replace(text, edits[i], edits[i+1], 1)
	}
	return Write(t, "search.yaml", text)
}

// Tunes runs onnxrl tune to its end and returns its summary.
func Tunes(t *testing.T, args ...string) tune.Summary {
	t.Helper()
	return Decode[tune.Summary](t, Succeed(t, append([]string{"tune", "-q", "--json"}, args...)...))
}

// SameTrials compares what was tried and what came of it, but not how long it took.
func SameTrials(t *testing.T, what string, got, want []tune.TrialSummary) {
	t.Helper()
	strip := func(list []tune.TrialSummary) []tune.TrialSummary {
		list = slices.Clone(list)
		for i := range list {
			list[i].Seconds = 0
		}
		return list
	}
	if len(want) == 0 || !reflect.DeepEqual(strip(got), strip(want)) {
		t.Errorf("%s: %+v\nexpected %+v", what, got, want)
	}
}
