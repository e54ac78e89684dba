package training

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/cmd/internal/apptest"
	"github.com/onnxrl/onnxrl/runtime/longtest"
	"github.com/onnxrl/onnxrl/runtime/sorted"
)

// User-supplied policies, which PyTorch exported by the recipe of package agents/network: one for a
// market, and one with a memory. They are trained, stopped, continued bit for bit, published with
// proof, and evaluated.
func TestTrainOwnPolicies(t *testing.T) {
	longtest.Slow(t)
	t.Parallel()
	own := func(name string) string {
		path, err := filepath.Abs(filepath.Join("testdata", name))
		if err != nil {
			t.Fatal(err)
		}
		return "policy: {kind: file, path: " + path + "}"
	}
	n := 0
	for name, config := range sorted.All(map[string]string{
		"a market": apptest.TrainYAML(t, "  learning_rate", "  "+own("policy_trader.onnx")+"\n  learning_rate"),
		"a memory": apptest.Write(t, "gru.yaml", `seed: 1
env: {kind: cartpole}
agent: {kind: ppo, n_steps: 16, batch_size: 32, n_epochs: 2, hidden: [8], recurrent: {length: 8}, `+own("policy_gru.onnx")+`}
train: {num_envs: 4, total_env_steps: 2048, log_interval_steps: 64, threads: 1, checkpoint: {every_steps: 128}, validation: {every_steps: 512}}
eval: {episodes: 5}
publish: {observations: 64, allow_ties: true}
`),
	}) {
		ref, dir := filepath.Join(t.TempDir(), "ref"), filepath.Join(t.TempDir(), "run")
		if sum := apptest.TrainRuns(t, config, "--out", ref); sum.Runs[0].Published == "" {
			t.Errorf("%s: nothing was published", name)
		}
		if code, text := apptest.Interrupt(t, dir, 4, os.Interrupt, "train", "-q", config, "--out", dir); code != apptest.Interrupted {
			t.Fatalf("%s: exit status %d\n%s", name, code, text)
		}
		apptest.TrainRuns(t, "--resume", dir)
		sameTraining(t, name, dir, ref)
		apptest.Succeed(t, "evaluate", dir, "--no-report", "--set", "eval.bootstrap.samples=20")
		n++
	}
	if n != 2 {
		t.Errorf("%d policies", n)
	}
	// One that was made for something else names both sides.
	r := apptest.Run(t, "train", "-q", apptest.TrainYAML(t, "  learning_rate", "  "+own("policy_gru.onnx")+"\n  learning_rate"), "--out", filepath.Join(t.TempDir(), "misfit"))
	if r.Code != 1 || !strings.Contains(r.Err, `policy_gru.onnx has an input "obs"`) || !strings.Contains(r.Err, "window [4 2 7]") {
		t.Errorf("exit status %d\n%s", r.Code, r.Err)
	}
}
