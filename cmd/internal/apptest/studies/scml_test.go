package studies

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/agents/scml"
	"github.com/onnxrl/onnxrl/agents/scml/curriculum"
	"github.com/onnxrl/onnxrl/cmd/internal/apptest"
	"github.com/onnxrl/onnxrl/runtime/longtest"
	"github.com/onnxrl/onnxrl/runtime/portable"
)

// smallCurriculum has all stages, all layers, and a pool that grows.
const smallCurriculum = `
seed: 5
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

// TestTrainSCMLBad refuses what does not fit before anything is played.
func TestTrainSCMLBad(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "small.yaml")
	if err := os.WriteFile(path, []byte(smallCurriculum), 0o600); err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(dir, "out")
	begin := []string{"train", "scml", path, "--engine", portable.Name, "--out", out}
	n := 0
	for _, test := range []struct {
		args []string
		want string
	}{
		{[]string{"train", "scml"}, "a document is needed"},
		{[]string{"train", "scml", "scml_goals", "--out", out}, "is an experiment; expected the document of a curriculum"},
		{[]string{"train", "scml", "--resume", dir}, "it holds no curriculum"},
		{[]string{"train", "scml", "--resume", filepath.Join(dir, "none")}, "it holds no curriculum"},
		{[]string{"train", "scml", path, "--resume", dir}, "takes neither another document nor edits"},
		{slices.Concat(begin, []string{"--workers", "0"}), "--workers 0: expected at least 1"},
		{slices.Concat(begin, []string{"--set", "rounds=0"}), "rounds: "},
		{slices.Concat(begin, []string{"--set", "pool.rivals=[penguin, nobody]"}), `pool.rivals[1]: no agent is called "nobody"`},
		{slices.Concat(begin, []string{"--set", "pool.reserve=[nowhere/agent]"}), `nowhere/agent" is neither an agent's name nor a directory`},
		{slices.Concat(begin, []string{"--set", "demonstrations.competitors=[penguin]"}), "demonstrations.competitors: 1, expected 2 or more"},
		{slices.Concat(begin, []string{"--set", "trial.days=[9]"}), "trial.days: is [9], expected the least and the most"},
		{slices.Concat(begin, []string{"--set", "trial.processes=[1]"}), "trial.processes[0]"},
		{slices.Concat(begin, []string{"--set", "evaluation.rivals=[]"}), "evaluation.rivals"},
		{slices.Concat(begin, []string{"--set", "manager.experiment.env={kind: scml_threads}"}), `manager.experiment.env.kind: is "scml_threads", expected scml_goals`},
		{slices.Concat(begin, []string{"--set", "manager.experiment.env.goal=5"}), "goal: is 5, expected 4 or 16"},
		{slices.Concat(begin, []string{"--set", "manager.experiment.agent.nonsense=5"}), "nonsense"},
		{slices.Concat(begin, []string{"--set", "manager.pretrain.env={kind: pendulum}"}), "follows from the layer: leave this key out"},
		{slices.Concat(begin, []string{"--set", "manager.pretrain.agent.nonsense=5"}), "nonsense"},
		{slices.Concat(begin, []string{"--set", "executor={}"}), "coordinator.experiment: it weighs what the executor changes, which has no experiment"},
		{slices.Concat(begin, []string{"--set", "demonstrations={}"}), "manager.pretrain: there is nothing to learn from"},
		{slices.Concat(begin, []string{"--set", "manager.round_steps=0"}), "manager.round_steps"},
		{slices.Concat(begin, []string{"--set", "manager.round_steps=31"}), "manager.round_steps: 31 env steps, fewer than the 32 after which the agent learns"},
		{slices.Concat(begin, []string{"--set", "coordinator.round_steps=255"}), "coordinator.round_steps: 255 env steps, fewer than the 256"},
		{slices.Concat(begin, []string{"--set", "manager.last_round=7"}), "manager.last_round: is 7, expected 0 or a round from 1 to 3"},
		{slices.Concat(begin, []string{"--set", "executor.first_round=3"}), "coordinator.first_round: is 2, and the executor, which it weighs, begins in round 3"},
		{slices.Concat(begin, []string{"--set", "executor.first_round=2", "--set", "manager.first_round=2"}), "rounds: no layer trains in round 1"},
	} {
		// Messages of documents show the place below.
		if r := apptest.Run(t, test.args...); r.Code == 0 || r.Out != "" || !strings.Contains(r.Err, test.want) {
			t.Errorf("%v: status %d\n%s\nexpected %q", test.args, r.Code, r.Err, test.want)
		}
		n++
	}
	if _, err := os.Stat(out); !os.IsNotExist(err) {
		t.Errorf("%s: %v, expected that nothing was written", out, err)
	}
	if n != 26 {
		t.Errorf("%d cases", n)
	}
}

// managerAlone leaves what is above the manager out of smallCurriculum, in fewer rounds.
var managerAlone = []string{"--set", "executor={}", "--set", "coordinator={}", "--set", "manager.last_round=0", "--set", "rounds=1"}

// TestTrainSCMLWorse: rounds after which the agent is worse than the baseline are rolled back, the
// first too, and what is published is the best of the trials: the baseline, without a layer.
func TestTrainSCMLWorse(t *testing.T) {
	longtest.Slow(t)
	path, to := smallDocument(t), filepath.Join(t.TempDir(), "training")
	args := slices.Concat([]string{"train", "scml", path, "--engine", portable.Name, "-q", "--out", to, "--set", "seed=3"}, managerAlone)
	s := apptest.Decode[curriculum.Summary](t, apptest.Succeed(t, append(args, "--json")...))
	if len(s.Rounds) != 1 || s.Best != -1 || s.Chosen != -1 {
		t.Fatalf("%+v", s)
	}
	if r := s.Rounds[0]; r.Decision != curriculum.RolledBack || r.Agent.Score >= r.Best.Score || r.Gain.Low != nil {
		t.Errorf("%+v", r)
	}
	d, err := scml.ReadDescription(s.Agent)
	if err != nil || d.Manager != "" || d.Executor != "" || d.Coordinator != "" {
		t.Errorf("%+v, %v", d, err)
	}
	agent, _ := s.Evaluation.Standing("agent")
	baseline, _ := s.Evaluation.Standing("baseline")
	if agent.Score != baseline.Score {
		t.Errorf("the published agent scores %v, the baseline %v", agent.Score, baseline.Score)
	}
	// The shipped form of this was an agent that lost to its baseline.
	apptest.Succeed(t, "export", s.Agent, "--format", "scml", "--engine", portable.Name, "--out", filepath.Join(t.TempDir(), "lita"))
}

// TestTrainSCMLNothing: a round whose only learner step has a learning rate of 0 is an error.
func TestTrainSCMLNothing(t *testing.T) {
	path, to := smallDocument(t), filepath.Join(t.TempDir(), "training")
	args := slices.Concat([]string{"train", "scml", path, "--engine", portable.Name, "-q", "--out", to}, managerAlone)
	args = append(args, "--set", "manager.round_steps=32", "--set", "manager.experiment.agent.learning_rate_schedule={kind: linear}")
	apptest.Refuse(t, args, "round 1: manager: this round has trained nothing", "a learning rate of 0")
}

// TestTrainSCMLElsewhere: the files of a published agent are the same in another directory, and after
// a resume; names and digests in them are of neither.
func TestTrainSCMLElsewhere(t *testing.T) {
	longtest.Nightly(t)
	path, dir := smallDocument(t), t.TempDir()
	one, two := filepath.Join(dir, "one"), filepath.Join(dir, "other", "place")
	for _, to := range []string{one, two} {
		apptest.Succeed(t, "train", "scml", path, "--engine", portable.Name, "-q", "--out", to, "--set", "coordinator={}", "--set", "rounds=2")
	}
	// The second is resumed: it has not got further than its first round.
	for _, name := range []string{curriculum.AgentDir, curriculum.EvaluationFile, "rounds/0002"} {
		if err := os.RemoveAll(filepath.Join(two, name)); err != nil {
			t.Fatal(err)
		}
	}
	log := filepath.Join(two, curriculum.RoundsFile)
	first, _, _ := strings.Cut(string(apptest.ReadBytes(t, log)), "\n")
	if err := os.WriteFile(log, []byte(first+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	apptest.Succeed(t, "train", "scml", "--resume", two, "--engine", portable.Name, "-q")
	for _, name := range []string{"manager.onnx", "executor.onnx", scml.DescriptionFile} {
		a, b := apptest.ReadBytes(t, filepath.Join(one, curriculum.AgentDir, name)), apptest.ReadBytes(t, filepath.Join(two, curriculum.AgentDir, name))
		if !bytes.Equal(a, b) {
			t.Errorf("%s differs between directories", name)
		}
		if strings.HasSuffix(name, ".onnx") && (!bytes.Contains(a, []byte("small-"+strings.TrimSuffix(name, ".onnx"))) || bytes.Contains(a, []byte("place"))) {
			t.Errorf("%s is called otherwise", name)
		}
	}
}

// smallDocument writes smallCurriculum to a file.
func smallDocument(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "small.yaml")
	if err := os.WriteFile(path, []byte(smallCurriculum), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
