package training

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/agents/publish"
	"github.com/onnxrl/onnxrl/cmd/internal/apptest"
	"github.com/onnxrl/onnxrl/runtime/sorted"
)

// Everything that stands between an environment and the network moves into the file that is
// published: it is evaluated like the policy in the checkpoint, in the environment as it is.
func TestTrainWrapped(t *testing.T) {
	t.Parallel()
	config := apptest.Write(t, "wrapped.yaml", `seed: 1
env: {kind: pendulum}
wrappers: {time_limit: 50, frame_stack: {frames: 3, initial: zero}, rescale_action: true, clip_action: true, normalize: {obs: true, reward: true}}
agent: {kind: ppo, n_steps: 32, batch_size: 64, n_epochs: 2, hidden: [8]}
train: {num_envs: 4, total_env_steps: 4000, log_interval_steps: 256, threads: 1, validation: {every_steps: 256}, stop: {max_episodes: 6}}
eval: {episodes: 8}
publish: {observations: 64}
`)
	dir := filepath.Join(t.TempDir(), "run")
	sum := apptest.TrainRuns(t, config, "--out", dir)
	if r := sum.Runs[0]; r.Stopped != "max episodes" || r.Episodes < 24 || r.Metric != "mean_reward" || r.EpisodeLength == nil || *r.EpisodeLength != 50 || !(*r.EpisodeReward < -100) || r.Published == "" {
		t.Errorf("%+v", r)
	}
	// Returns are raw, however rewards are scaled.
	last := apptest.TrainMetrics(t, dir)
	var rewards struct {
		Mean float64 `json:"rollout/ep_rew_mean"`
	}
	line := last[len(last)-2]
	if err := json.Unmarshal([]byte(`{"rollout/ep_rew_mean":`+line["rollout/ep_rew_mean"]+`}`), &rewards); err != nil || !(rewards.Mean < -100) {
		t.Errorf("%v, %v", line, err)
	}
	evaluate := func(args ...string) episodesOf {
		return apptest.Decoded[episodesReport](t, apptest.Succeed(t, append([]string{"evaluate", "--json", "--episodes", "10"}, args...)...)).Rows[0]
	}
	file := evaluate(dir)
	if err := os.Rename(filepath.Join(dir, publish.BestFile), filepath.Join(dir, "other.onnx")); err != nil {
		t.Fatal(err)
	}
	inside := evaluate(dir)
	if file.Episodes != 10 || inside.Episodes != 10 || math.Abs(file.MeanReward-inside.MeanReward) > 0.02*math.Abs(inside.MeanReward) || file.MinReward > file.MeanReward || file.MaxReward < file.MeanReward || file.MeanLength != 50 {
		t.Errorf("published %+v, in the checkpoint %+v", file, inside)
	}
	// A wrapper that does not fit is named before anything is trained.
	for says, edit := range sorted.All(map[string]string{
		"wrappers.rescale_action: rescale actions: the actions of cartpole": "env={kind: cartpole}",
		"wrappers.normalize.fields":                                         "wrappers.normalize.fields=[speed]",
		"wrappers.frame_stack.initial":                                      "wrappers.frame_stack.initial=ones",
	}) {
		r := apptest.Run(t, "train", "-q", config, "--set", edit, "--out", filepath.Join(t.TempDir(), "bad"))
		if r.Code != 1 || !strings.Contains(r.Err, says) {
			t.Errorf("%s: exit status %d, expected %q\n%s", edit, r.Code, says, r.Err)
		}
	}
	r := apptest.Run(t, "train", "-q", apptest.TrainYAML(t, "agent:", "wrappers: {time_limit: 5}\nagent:"), "--out", filepath.Join(t.TempDir(), "market"))
	if r.Code != 1 || !strings.Contains(r.Err, "the trading environment takes none but normalize") {
		t.Errorf("exit status %d\n%s", r.Code, r.Err)
	}
}

// A market's agent may learn from scaled rewards and normalised portfolios; its file takes raw
// ones.
func TestTrainNormalizedMarket(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "run")
	sum := apptest.TrainRuns(t, apptest.TrainYAML(t, "agent:", "wrappers: {normalize: {obs: true, reward: true}}\nagent:"), "--out", dir, "--set", "train.total_env_steps=400")
	if sum.Runs[0].Published == "" || math.IsNaN(sum.Runs[0].Validation["sharpe"]) {
		t.Errorf("%+v", sum.Runs[0])
	}
	apptest.Succeed(t, "evaluate", dir, "--no-report", "--set", "eval.bootstrap.samples=20")
	apptest.Refuse(t, []string{"evaluate", dir, "--episodes", "3"}, "--episodes", "one run through the split")
}
