package studies

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/onnxrl/onnxrl/agents/run"
	"github.com/onnxrl/onnxrl/agents/scml/curriculum"
	"github.com/onnxrl/onnxrl/cmd/internal/apptest"
	"github.com/onnxrl/onnxrl/runtime/portable"
	"github.com/onnxrl/onnxrl/runtime/rng"
)

// scmlKills is how often TestTrainSCMLKilled kills the program; $ONNXRL_SCML_KILLS asks for more.
const scmlKills = 4

// smallCurriculum has all stages, all layers, and a pool that grows.
const smallCurriculum = `
seed: 3
demonstrations: {competitors: [penguin, as0], configs: 2, processes: [2, 3], days: [8, 10]}
manager:
  pretrain:
    agent: {kind: bc, hidden: [8], batch_size: 16}
    train: {total_env_steps: 40, log_interval_steps: 20, validation: {every_steps: 20}, checkpoint: {every_steps: 20, keep_last: 1}}
    eval: {episodes: 2}
  experiment:
    seed: 1
    env: {kind: scml_goals, goal: 4, days: [8, 10]}
    agent: {kind: ppo, n_steps: 16, batch_size: 16, n_epochs: 1, central: true, hidden: [8]}
    train: {num_envs: 2, threads: 1, validation: {every_steps: 32}, checkpoint: {every_steps: 32, keep_last: 1}}
    eval: {episodes: 2}
    publish: {observations: 64}
  round_steps: 64
  last_round: 2
executor:
  pretrain:
    agent: {kind: bc, encoder: {kind: mlp, hidden: [8]}, hidden: [8], batch_size: 16, bounds: limits, bounds_penalty: 0.1}
    train: {total_env_steps: 40, log_interval_steps: 20, validation: {every_steps: 40}, checkpoint: {every_steps: 20, keep_last: 1}}
    eval: {episodes: 1}
  experiment:
    seed: 2
    env: {kind: scml_threads, days: [8, 10]}
    agent: {kind: mappo, n_steps: 16, batch_size: 64, n_epochs: 1, encoder: {kind: mlp, hidden: [8]}, hidden: [8]}
    train: {num_envs: 16, threads: 1, validation: {every_steps: 256}, checkpoint: {every_steps: 256, keep_last: 1}}
    eval: {episodes: 1}
    publish: {observations: 64}
  round_steps: 512
coordinator:
  experiment:
    seed: 3
    env: {kind: scml_threads, action: weights, days: [8, 10]}
    agent: {kind: mappo, n_steps: 16, batch_size: 64, n_epochs: 1, encoder: {kind: mlp, hidden: [8]}, hidden: [8]}
    train: {num_envs: 16, threads: 1, validation: {every_steps: 256}, checkpoint: {every_steps: 256, keep_last: 1}}
    eval: {episodes: 1}
    publish: {observations: 64}
  round_steps: 512
  first_round: 2
rounds: 3
pool: {rivals: [penguin, baseline], reserve: [as0], selves: 1}
trial: {configs: 2, per_world: 2, processes: [2, 3], days: [8, 10]}
evaluation: {configs: 2, per_world: 2, processes: [2, 3], days: [8, 10], rivals: [penguin]}
`

// TestTrainSCMLKilled kills train scml at random moments and goes on: rounds, states and the agent
// end with the bits of a training that nobody killed. One that has ended before it is killed gives
// way to another, until so many are.
func TestTrainSCMLKilled(t *testing.T) {
	t.Parallel()
	kills := kills(t, "ONNXRL_SCML_KILLS", scmlKills)
	dir := t.TempDir()
	path := filepath.Join(dir, "small.yaml")
	if err := os.WriteFile(path, []byte(smallCurriculum), 0o600); err != nil {
		t.Fatal(err)
	}
	begin := func(to string) []string {
		return []string{"train", "scml", path, "--engine", portable.Name, "-q", "--out", to}
	}
	// All are in the same place: worlds that are saved name the agents in them by their
	// directories.
	to := filepath.Join(dir, "training")
	at := time.Now()
	if text, err := apptest.Program(t, begin(to)...).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	took := time.Since(at)
	want := curriculumBits(t, to)
	k, runs := killing{t: t, left: kills, took: took, moments: rng.New(1).Stream()}, 0
	for ; k.left > 0; runs++ {
		if err := os.RemoveAll(to); err != nil {
			t.Fatal(err)
		}
		k.run(func() []string {
			if curriculum.Holds(to) {
				return []string{"train", "scml", "--resume", to, "--engine", portable.Name, "-q"}
			}
			return begin(to)
		})
		for i, got := range curriculumBits(t, to) {
			if got != want[i] {
				t.Fatalf("training %d is another:\n%s\nexpected\n%s", runs, got, want[i])
			}
		}
	}
	t.Logf("%d kills of %d trainings, one of which takes %v", kills, runs, took.Round(time.Millisecond))
}

// curriculumBits are the logs of a training, the digests of the states of its layers and what its
// agent is made of: the files of this say when they were made.
func curriculumBits(t *testing.T, dir string) (list []string) {
	t.Helper()
	states, err := filepath.Glob(filepath.Join(dir, "rounds", "*", "*", run.CheckpointDir, "*", "arrays.safetensors"))
	pretrained, e := filepath.Glob(filepath.Join(dir, "pretrain", "*", run.CheckpointDir, "*", "arrays.safetensors"))
	if err != nil || e != nil || len(states) < 3 || len(pretrained) < 1 {
		t.Fatal(states, pretrained, err, e)
	}
	for _, path := range slices.Concat(pretrained, states) {
		list = append(list, fmt.Sprintf("%s %x", filepath.Base(filepath.Dir(path)), sha256.Sum256(apptest.ReadBytes(t, path))))
	}
	for _, name := range []string{curriculum.RoundsFile, curriculum.EvaluationFile, curriculum.AgentDir + "/agent.json"} {
		list = append(list, string(apptest.ReadBytes(t, filepath.Join(dir, name))))
	}
	return list
}
