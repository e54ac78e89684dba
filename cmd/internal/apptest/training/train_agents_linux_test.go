package training

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/cmd/internal/apptest"
	"github.com/onnxrl/onnxrl/runtime/longtest"
	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/sorted"
)

// MAPPO and IPPO in worlds of several agents, also of Python, and with a memory, are trained,
// stopped, continued bit for bit, published with proof, and evaluated. What is published has no
// input for what is central.
func TestTrainSeveralAgents(t *testing.T) {
	longtest.Nightly(t)
	rest := `
train: {num_envs: 12, total_env_steps: 2400, log_interval_steps: 120, threads: 1, checkpoint: {every_steps: 240}, validation: {every_steps: 960}}
eval: {episodes: 5}
publish: {observations: 64, allow_ties: true}
`
	configs := map[string]string{
		"mappo":          "seed: 1\nenv: {kind: cover, agents: 3, size: 4, failure: 0.05}\nagent: {kind: mappo, n_steps: 10, n_epochs: 3, hidden: [8]}",
		"ippo, a memory": "seed: 1\nenv: {kind: cover}\nagent: {kind: ippo, n_steps: 10, n_epochs: 3, hidden: [8], normalize_value: popart, recurrent: {kind: lstm, hidden: 6, length: 5}}\nwrappers: {normalize: {obs: true, reward: true}}",
	}
	want, tried := 2, 0
	if _, err := exec.LookPath("python3"); err == nil || os.Getenv("ONNXRL_PYTHON") != "" {
		var dirs []string
		for _, dir := range []string{"pettingzoo/testdata/worlds", "gymnasium/testdata/fake"} {
			abs, err := filepath.Abs(filepath.Join("..", "..", "..", "..", "envs", dir))
			if err != nil {
				t.Fatal(err)
			}
			dirs = append(dirs, abs)
		}
		t.Setenv("PYTHONPATH", strings.Join(dirs, string(os.PathListSeparator)))
		t.Setenv("PYTHONDONTWRITEBYTECODE", "1")
		configs["python"] = "seed: 1\nenv: {kind: pettingzoo, id: toyworlds, workers: 2, kwargs: {late: 1, masked: obs}}\nagent: {kind: mappo, n_steps: 10, n_epochs: 3, hidden: [8], recurrent: {kind: lstm, hidden: 6, length: 5}}"
		want++
	}
	for name, text := range sorted.All(configs) {
		config := apptest.Write(t, "run.yaml", text+rest)
		ref, dir := filepath.Join(t.TempDir(), "ref"), filepath.Join(t.TempDir(), "run")
		if sum := apptest.TrainRuns(t, config, "--out", ref); sum.Runs[0].Published == "" {
			t.Errorf("%s: nothing was published", name)
		}
		if code, text := apptest.Interrupt(t, dir, 4, os.Interrupt, "train", "-q", config, "--out", dir); code != apptest.Interrupted {
			t.Fatalf("%s: exit status %d\n%s", name, code, text)
		}
		apptest.TrainRuns(t, "--resume", dir)
		sameTraining(t, name, dir, ref)
		m, err := onnx.Load(filepath.Join(dir, "best.onnx"))
		if err != nil {
			t.Fatal(err)
		}
		inputs := 0
		for _, in := range m.Graph.Inputs() {
			if in.Name == "state" || strings.HasPrefix(in.Name, "all/") || strings.Contains(in.Name, "critic") {
				t.Errorf("%s: what is published has the input %q", name, in.Name)
			}
			inputs++
		}
		if inputs < 2 {
			t.Errorf("%s: %d inputs", name, inputs)
		}
		e := apptest.Decoded[episodesReport](t, apptest.Succeed(t, "evaluate", dir, "--json"))
		if len(e.Rows) != 1 || e.Rows[0].Episodes < 5*2 || e.Rows[0].MeanLength < 1 {
			t.Errorf("%s: %+v", name, e)
		}
		tried++
	}
	if tried != want {
		t.Errorf("%d worlds", tried)
	}
}
