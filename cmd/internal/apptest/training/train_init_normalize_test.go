package training

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/agents/run"
	"github.com/onnxrl/onnxrl/cmd/internal/apptest"
	"github.com/onnxrl/onnxrl/envs/vector"
	"github.com/onnxrl/onnxrl/models/checkpoint"
)

// A run that begins with the parameters of another one goes on from the statistics of normalisation
// that belong to them, where both mean the same, and says what it does not take.
func TestTrainInitNormalized(t *testing.T) {
	t.Parallel()
	config := apptest.Write(t, "normalized.yaml", `seed: 1
env: {kind: pendulum}
wrappers: {normalize: {obs: true, reward: true}}
agent: {kind: ppo, n_steps: 32, batch_size: 64, n_epochs: 1, hidden: [4]}
train: {num_envs: 4, total_env_steps: 2048, log_interval_steps: 256, threads: 1, validation: {every_steps: 0}}
publish: {observations: 64}
`)
	statistics := func(dir string) (s vector.Statistics) {
		c, err := checkpoint.Latest(filepath.Join(dir, run.CheckpointDir))
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if err := c.Reader().JSON("normalize", &s); err != nil {
			t.Fatal(err)
		}
		return s
	}
	first := filepath.Join(t.TempDir(), "first")
	apptest.TrainRuns(t, config, "--out", first)
	was := statistics(first)
	begin := func(from string, args ...string) (apptest.Result, string) {
		dir := filepath.Join(t.TempDir(), "second")
		r := apptest.Run(t, append([]string{"train", "-q", config, "--out", dir, "--init", from, "--set", "train.total_env_steps=256"}, args...)...)
		if r.Code != 0 {
			t.Fatalf("exit status %d\n%s", r.Code, r.Err)
		}
		return r, dir
	}
	r, second := begin(first)
	now := statistics(second)
	if !(was.Obs[0].Count > 2000) || now.Obs[0].Count < was.Obs[0].Count+256 || now.Obs[0].Count > was.Obs[0].Count+264 || !(now.Return.Count >= was.Return.Count+256) {
		t.Errorf("%v observations and %v returns, after %v and %v", now.Obs[0].Count, now.Return.Count, was.Obs[0].Count, was.Return.Count)
	}
	var l run.Lineage
	if err := run.ReadJSON(filepath.Join(second, run.LineageFile), &l); err != nil || l.Init == nil || !strings.Contains(l.Init.Statistics, "observation (3 elements") || !strings.Contains(l.Init.Statistics, "returns") {
		t.Errorf("%+v, %v", l.Init, err)
	}
	n := 0
	says := func(r apptest.Result, words ...string) {
		t.Helper()
		for _, w := range words {
			if n++; !strings.Contains(r.Err, w) {
				t.Errorf("expected %q\n%s", w, r.Err)
			}
		}
	}
	says(r, "normalisation goes on from the statistics of observation (3 elements, 2", "), returns\n")
	if n++; strings.Contains(r.Err, "not taken") {
		t.Error(r.Err)
	}
	// Each seed of a group begins with them; that is said once.
	r, group := begin(first, "--seeds", "3,4")
	for _, seed := range []string{"seed-3", "seed-4"} {
		if s := statistics(filepath.Join(group, seed)); s.Obs[0].Count < was.Obs[0].Count+256 {
			t.Errorf("%s: %v observations", seed, s.Obs[0].Count)
		}
	}
	if n++; strings.Count(r.Err, "normalisation goes on") != 1 {
		t.Error(r.Err)
	}
	r, dir := begin(first, "--set", "wrappers.normalize.gamma=0.9")
	says(r, "goes on from the statistics of observation (3 elements", "not taken: returns: are discounted by 0.99 there and 0.9 here")
	if s := statistics(dir); s.Return.Count > 300 {
		t.Errorf("%v returns", s.Return.Count)
	}
	r, _ = begin(first, "--set", "wrappers.normalize={}")
	says(r, "not taken: observation: is not normalised here; returns: rewards are not scaled here")
	r, _ = begin(first, "--partial", "--set", "wrappers.frame_stack.frames=2")
	says(r, "not taken: wrappers.frame_stack is {Frames:0 Initial:first Flat:true} there and {Frames:2 Initial:first Flat:true} here")
	published, err := filepath.Glob(filepath.Join(first, "*.onnx"))
	if err != nil || len(published) == 0 {
		t.Fatalf("%q, %v", published, err)
	}
	r, _ = begin(published[0])
	says(r, "not taken: a file has no running statistics")
	raw := filepath.Join(t.TempDir(), "raw")
	apptest.TrainRuns(t, config, "--out", raw, "--set", "wrappers.normalize={}", "--set", "train.total_env_steps=256")
	r, _ = begin(raw)
	says(r, "not taken: it normalised nothing")
	if n != 10 {
		t.Errorf("%d checks", n)
	}
}
