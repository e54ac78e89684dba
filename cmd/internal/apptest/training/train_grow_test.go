package training

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/cmd/internal/apptest"
	"github.com/onnxrl/onnxrl/runtime/sorted"
)

// A run that grows says what that changes, and its schedules follow the new length.
func TestTrainGrows(t *testing.T) {
	t.Parallel()
	config := apptest.Write(t, "grow.yaml", `env: {kind: corridor, cells: 4}
agent: {kind: ppo, n_steps: 20, batch_size: 20, n_epochs: 1, hidden: [4], learning_rate: 0.01, learning_rate_schedule: {kind: linear}}
train: {num_envs: 1, total_env_steps: 200, log_interval_steps: 20, threads: 1, validation: {every_steps: 0}}
publish: {observations: 16, allow_ties: true}
`)
	dir := filepath.Join(t.TempDir(), "run")
	apptest.TrainRuns(t, config, "--out", dir)
	r := apptest.Run(t, "train", "-q", "--resume", dir, "--set", "train.total_env_steps=400")
	if r.Code != 0 || !strings.Contains(r.Err, "grows from 200 to 400 env steps") || !strings.Contains(r.Err, "agent.learning_rate_schedule") {
		t.Fatalf("exit status %d\n%s", r.Code, r.Err)
	}
	rates := map[string]string{}
	for _, l := range apptest.TrainMetrics(t, dir) {
		rates[l["step"]] = l["train/learning_rate"]
	}
	// As with Stable-Baselines3, the rollout that ends at env step n is learnt from at the rate of
	// env step n.
	for step, want := range sorted.All(map[string]string{"20": "0.009", "200": "0", "220": "0.0045", "400": "0"}) {
		if !strings.HasPrefix(rates[step], want) {
			t.Errorf("the learning rate of env step %s is %s, expected %s", step, rates[step], want)
		}
	}
	if again := apptest.Run(t, "train", "-q", "--resume", dir); again.Code != 0 || strings.Contains(again.Err, "grows") {
		t.Errorf("exit status %d\n%s", again.Code, again.Err)
	}
}
