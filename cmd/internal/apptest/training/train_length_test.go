package training

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/cmd/internal/apptest"
)

// A run that takes more env steps than it was asked for says so, once for all seeds; one whose
// minibatches are larger than its rollouts does not begin, and leaves nothing.
func TestTrainWholeRollouts(t *testing.T) {
	t.Parallel()
	config := apptest.Write(t, "whole.yaml", `env: {kind: corridor, cells: 4}
agent: {kind: ppo, n_steps: 20, batch_size: 20, n_epochs: 1, hidden: [4]}
train: {num_envs: 2, total_env_steps: 100, threads: 1, validation: {every_steps: 0}}
publish: {observations: 16, allow_ties: true}
`)
	const says = "train.total_env_steps is 100: the run takes 120, a whole number of rollouts"
	for _, c := range []struct {
		name string
		args []string
		want int
	}{
		{"one seed", nil, 1}, {"two seeds", []string{"--seeds", "1,2"}, 1}, {"a whole number", []string{"--set", "train.total_env_steps=120"}, 0},
		{"dqn", []string{"--set", "agent={kind: dqn, train_freq: 5, learning_starts: 20, hidden: [4]}", "--set", "train.total_env_steps=100"}, 0},
		{"dqn, not whole", []string{"--set", "agent={kind: dqn, train_freq: 6, learning_starts: 20, hidden: [4]}", "--set", "train.total_env_steps=100"}, -1},
	} {
		dir := filepath.Join(t.TempDir(), "run")
		r := apptest.Run(t, append([]string{"train", config, "--out", dir}, c.args...)...)
		want, n := says, c.want
		if n < 0 {
			want, n = "train.total_env_steps is 100: the run takes 108", 1
		}
		if r.Code != 0 || strings.Count(r.Err, want) != n {
			t.Errorf("%s: exit status %d, said %d times, expected %d\n%s", c.name, r.Code, strings.Count(r.Err, want), n, r.Err)
		}
	}
	dir := filepath.Join(t.TempDir(), "run")
	apptest.Refuse(t, []string{"train", "-q", config, "--out", dir, "--set", "agent.batch_size=41"}, "agent.batch_size is 41, more than the 40 samples of a rollout: agent.n_steps is 20 and train.num_envs 2")
	if _, err := os.Stat(dir); err == nil {
		t.Error("a run that did not begin has left its directory")
	}
}

// The last line of progress and the table say the same of env steps, return and loss.
func TestTrainLastLineIsTheTable(t *testing.T) {
	t.Parallel()
	config := apptest.TrainYAML(t)
	r := apptest.Run(t, "train", config, "--out", filepath.Join(t.TempDir(), "run"))
	var line string
	for l := range strings.Lines(r.Err) {
		if strings.HasPrefix(l, "train ") {
			line = l
		}
	}
	rows := strings.Split(r.Out, "\n")
	if r.Code != 0 || len(rows) < 2 {
		t.Fatalf("exit status %d\n%s%s", r.Code, r.Out, r.Err)
	}
	columns := strings.Fields(rows[1])
	// seed, env steps, episodes, env steps per second, loss, episode reward.
	for _, want := range []string{" " + columns[1] + "/" + columns[1] + " env steps", "loss=" + columns[4] + " ", "episode reward=" + columns[5]} {
		if !strings.Contains(line+" ", want) {
			t.Errorf("the last line of progress does not say %q:\n%s%s", want, line, r.Out)
		}
	}
}
