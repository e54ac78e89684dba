package studies

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/onnxrl/onnxrl/agents/evolve"
	"github.com/onnxrl/onnxrl/agents/population"
	"github.com/onnxrl/onnxrl/agents/publish"
	"github.com/onnxrl/onnxrl/agents/run"
	"github.com/onnxrl/onnxrl/cmd/internal/apptest"
	"github.com/onnxrl/onnxrl/runtime/longtest"
	"github.com/onnxrl/onnxrl/runtime/portable"
	"github.com/onnxrl/onnxrl/runtime/rng"
	"github.com/onnxrl/onnxrl/runtime/sorted"
)

// populationKills is how often TestPopulationKilledOften kills the program.
const populationKills = 4

// TestPopulationKilled kills train population at a random moment, with members in flight, and goes
// on: experts and routers end with the bits of a population that nobody killed. One that has ended
// before it is killed gives way to another, until so many are.
func TestPopulationKilled(t *testing.T) {
	longtest.Slow(t)
	t.Parallel()
	populationKilled(t, 1)
}

// TestPopulationKilledOften kills more often.
func TestPopulationKilledOften(t *testing.T) {
	longtest.Nightly(t)
	t.Parallel()
	populationKilled(t, longtest.Times(t, populationKills))
}

func populationKilled(t *testing.T, kills int) {
	t.Helper()
	dir := t.TempDir()
	for name, text := range sorted.All(map[string]string{"expert.yaml": `
seed: 4
env: {kind: pendulum}
wrappers: {time_limit: 20, skill: {dim: 4}}
agent: {kind: sac, hidden: [8], learning_starts: 20, buffer_size: 200, batch_size: 8, diversity: {kind: diayn, features: [action], hidden: [8]}}
train: {num_envs: 2, total_env_steps: 80, threads: 1}
eval: {episodes: 2}
publish: {observations: 64}
`, "population.yaml": `
experts:
  base: expert.yaml
  population: 2
  interval_steps: 200
  generations: 4
  every: 2
  strategy: {kind: mf_pbt, variant: owner}
  diversity: {threshold: 1, patience: 3}
  probe: 16
  space: {agent.learning_rate: {kind: loguniform, low: 1.0e-4, high: 1.0e-2}}
router:
  interval_steps: 48
  every: 2
  population: 2
  space: {agent.learning_rate: {kind: loguniform, low: 1.0e-4, high: 1.0e-3}}
  experiment:
    seed: 5
    env: {kind: meta, segment: 4, diversity: {kl_coef: 0.1, usage_coef: 0.01}}
    agent: {kind: ppo, n_steps: 8, batch_size: 8, n_epochs: 1, hidden: [8]}
    train: {num_envs: 2, total_env_steps: 80, threads: 1}
    eval: {episodes: 2}
    publish: {observations: 64, allow_ties: true}
`}) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	begin := func(to string) []string {
		return []string{"train", "population", filepath.Join(dir, "population.yaml"), "--engine", portable.Name, "--parallel", "2", "-q", "--out", to}
	}
	whole := filepath.Join(dir, "whole")
	at := time.Now()
	if text, err := apptest.Program(t, begin(whole)...).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	took := time.Since(at)
	want := populationBits(t, whole)
	k, runs := killing{t: t, left: kills, took: took, moments: rng.New(1).Stream()}, 0
	for ; k.left > 0; runs++ {
		to := filepath.Join(dir, fmt.Sprintf("killed-%d", runs))
		k.run(func() []string {
			if population.Holds(to) {
				return []string{"train", "population", "--resume", to, "--engine", portable.Name, "--parallel", "2", "-q"}
			}
			return begin(to)
		})
		if got := populationBits(t, to); got != want {
			t.Fatalf("population %d is another:\n%s\nexpected\n%s", runs, got, want)
		}
	}
	t.Logf("%d kills of %d populations, one of which takes %v", kills, runs, took.Round(time.Millisecond))
}

// populationBits are the logs of a population's experts and routers, and the digests of the states
// of its routers and the names of what it has published.
func populationBits(t *testing.T, dir string) string {
	t.Helper()
	text := string(apptest.ReadBytes(t, filepath.Join(dir, population.ExpertsDir, evolve.LogFile))) + string(apptest.ReadBytes(t, filepath.Join(dir, population.RouterDir, evolve.LogFile)))
	states, err := filepath.Glob(filepath.Join(dir, population.RouterDir, "generation-*", "member-*", run.CheckpointDir, "*", "arrays.safetensors"))
	if err != nil || len(states) != 4 {
		t.Fatal(states, err)
	}
	for _, path := range states {
		text += fmt.Sprintf("%x\n", sha256.Sum256(apptest.ReadBytes(t, path)))
	}
	models, err := filepath.Glob(filepath.Join(dir, population.RouterDir, "generation-0001", "member-*", publish.WholeDir, publish.BestFile))
	if err != nil || len(models) != 1 {
		t.Fatal(models, err)
	}
	inside, err := filepath.Rel(dir, models[0])
	if err != nil {
		t.Fatal(err)
	}
	return text + inside
}
