package training

import (
	"bytes"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/agents/publish"
	"github.com/onnxrl/onnxrl/agents/run"
	"github.com/onnxrl/onnxrl/cmd/internal/apptest"
	"github.com/onnxrl/onnxrl/models/artifact"
	"github.com/onnxrl/onnxrl/models/checkpoint"
	"github.com/onnxrl/onnxrl/runtime/longtest"
	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/sorted"
)

// newest returns the arrays of the newest checkpoint of a run: parameters, moments, environments,
// the best parameters.
func newest(t *testing.T, dir string) []byte {
	t.Helper()
	c, err := checkpoint.Latest(filepath.Join(dir, run.CheckpointDir))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	return apptest.ReadBytes(t, filepath.Join(c.Path, "arrays.safetensors"))
}

// unrecorded is a published model without the record of how many runs it is one of, which is
// another for one seed of several than for that seed alone.
func unrecorded(t *testing.T, path string) []byte {
	t.Helper()
	m, err := onnx.Load(path)
	if err != nil {
		t.Fatal(err)
	}
	if past, err := publish.PastOf(m); err != nil || past.Trials == nil {
		t.Fatalf("%s: %+v, %v", path, past, err)
	}
	m.SetMeta("onnxrl.trials", "")
	text, err := onnx.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// sameTraining compares a run with one that was never stopped: all arrays of the state, the
// published model, and every line of metrics.
func sameTraining(t *testing.T, what, dir, ref string) {
	t.Helper()
	if !bytes.Equal(newest(t, dir), newest(t, ref)) {
		t.Errorf("%s: the state at the end differs", what)
	}
	if a, b := unrecorded(t, filepath.Join(dir, publish.BestFile)), unrecorded(t, filepath.Join(ref, publish.BestFile)); !bytes.Equal(a, b) {
		t.Errorf("%s: the published model differs", what)
	}
	a, b := apptest.TrainMetrics(t, dir), apptest.TrainMetrics(t, ref)
	if len(a) != len(b) || len(a) < 20 {
		t.Errorf("%s: %d lines of metrics, expected %d", what, len(a), len(b))
		return
	}
	for i := range a {
		if !maps.Equal(a[i], b[i]) {
			t.Errorf("%s: line %d of the metrics is\n%v, expected\n%v", what, i+1, a[i], b[i])
			return
		}
	}
}

func TestTrain(t *testing.T) {
	longtest.Slow(t)
	t.Parallel()
	config, dir := apptest.TrainYAML(t), filepath.Join(t.TempDir(), "run")
	sum := apptest.TrainRuns(t, config, "--out", dir)
	if len(sum.Runs) != 1 || len(sum.Unfinished) != 0 || sum.Dir != dir {
		t.Fatalf("%+v", sum)
	}
	r := sum.Runs[0]
	if r.Seed != 1 || r.EnvSteps != 1200 || r.LearnerSteps != 60 || r.Episodes != 60 || r.Stopped != "" || r.Threads != 1 || r.Metric != "sharpe" || r.BestEnvSteps == 0 || r.Published == "" {
		t.Errorf("%+v", r)
	}
	// The best of six evaluations is at least as good as the last; the standard deviation of one
	// run is unknown.
	if !(r.Validation["sharpe"] >= r.Last["sharpe"]) || sum.Validation["sharpe"].N != 1 || sum.Validation["sharpe"].Std != nil || *sum.Validation["sharpe"].Mean != r.Validation["sharpe"] {
		t.Errorf("validation %+v", sum.Validation)
	}
	lines := apptest.TrainMetrics(t, dir)
	for _, tag := range []string{"train/loss", "train/entropy", "rollout/ep_rew_mean", "rollout/ep_len_mean", "rollout/reward_mean", "time/total_timesteps"} {
		if _, ok := lines[len(lines)-2][tag]; !ok {
			t.Errorf("the metrics have no %s: %v", tag, lines[len(lines)-2])
		}
	}
	if lines[0]["step"] != "0" || lines[0]["eval/sharpe"] == "" || lines[1]["step"] != "60" {
		t.Errorf("the metrics begin with %v and %v", lines[0], lines[1])
	}
	for _, name := range []string{run.ConfigFile, run.SourcesFile, run.LineageFile, run.FinishedFile, publish.BestFile, publish.StoreDir, run.TensorBoardDir} {
		if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
			t.Error(err)
		}
	}
	var l run.Lineage
	if err := run.ReadJSON(filepath.Join(dir, run.LineageFile), &l); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(l.Seeds, []uint64{1}) || len(l.ConfigSHA256) != 64 || len(l.Sources["data_sha256"]) != 64 || l.Engine == "" || l.Platform == "" || l.Threads != 1 || l.Program.Version == "" || l.Name != "tiny" {
		t.Errorf("%+v", l)
	}
	// The effective configuration is the recipe, from any folder; without --out a run has the first
	// free number.
	folder := t.TempDir()
	for _, want := range []string{"config-1", "config-2"} {
		cmd := apptest.Program(t, "train", "-q", filepath.Join(dir, run.ConfigFile))
		cmd.Dir = folder
		if text, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(text), "run directory "+filepath.Join("runs", want)) {
			t.Fatalf("%v\n%s", err, text)
		}
	}
	if !bytes.Equal(newest(t, dir), newest(t, filepath.Join(folder, "runs", "config-1"))) {
		t.Error("the effective configuration gives another result")
	}
	// A finished run is left alone.
	again := apptest.TrainRuns(t, "--resume", dir)
	if again.Runs[0].EnvSteps != 1200 || again.Runs[0].Seconds != r.Seconds || len(apptest.TrainMetrics(t, dir)) != len(lines) {
		t.Errorf("resumed when finished: %+v", again)
	}
}

func TestTrainOutput(t *testing.T) {
	longtest.Slow(t)
	t.Parallel()
	r := apptest.Run(t, "train", apptest.TrainYAML(t), "--out", filepath.Join(t.TempDir(), "run"))
	if r.Code != 0 || strings.ContainsAny(r.Err, "\r\x1b") || !strings.Contains(r.Err, "train 100% 1200/1200 env steps") || !strings.Contains(r.Err, "loss=") || !strings.Contains(r.Err, "entropy=") || !strings.Contains(r.Err, "val sharpe=") {
		t.Errorf("exit status %d, standard error\n%s", r.Code, r.Err)
	}
	for _, want := range []string{"seed ", "best sharpe", "validation, best policy", "total return", "max drawdown", "published ", "run directory "} {
		if !strings.Contains(r.Out, want) {
			t.Errorf("the table does not say %q:\n%s", want, r.Out)
		}
	}
	text := apptest.Succeed(t, "train", "-q", "--json", apptest.TrainYAML(t), "--out", filepath.Join(t.TempDir(), "run"))
	if got := apptest.Keys(t, text); !slices.Equal(got, []string{"dir", "runs", "validation"}) {
		t.Errorf("keys %v", got)
	}
}

// TestTrainLearnsFromDefaults: A2C's defaults solve CartPole, whose episodes end after 500 steps;
// those of random actions last for 22.
func TestTrainLearnsFromDefaults(t *testing.T) {
	longtest.Nightly(t)
	t.Parallel()
	config := apptest.Write(t, "cartpole.yaml", `seed: 1
env: {kind: cartpole}
agent: {kind: a2c}
train: {total_env_steps: 100000}
publish: {observations: 16, allow_ties: true}
`)
	sum := apptest.TrainRuns(t, config, "--engine", "portable", "--out", filepath.Join(t.TempDir(), "run"))
	if got := sum.Validation["mean_reward"]; got.N != 1 || got.Mean == nil || *got.Mean < 450 {
		t.Errorf("the best policy has a mean return of %+v, expected nearly 500", got)
	}
}

// Several seeds: each is what it is alone, at once or one after the other, and the summary is over
// all of them.
func TestTrainSeeds(t *testing.T) {
	longtest.Slow(t)
	t.Parallel()
	config := apptest.TrainYAML(t)
	one, several, parallel := filepath.Join(t.TempDir(), "one"), filepath.Join(t.TempDir(), "several"), filepath.Join(t.TempDir(), "parallel")
	apptest.TrainRuns(t, config, "--out", one, "--set", "seed=43")
	sum := apptest.TrainRuns(t, config, "--out", several, "--seeds", "42,43,44")
	apptest.TrainRuns(t, config, "--out", parallel, "--set", "seeds=[42, 43, 44]", "--parallel", "3")
	sameTraining(t, "seed 43 of several", filepath.Join(several, "seed-43"), one)
	var sharpe []float64
	for i, seed := range []string{"seed-42", "seed-43", "seed-44"} {
		sameTraining(t, seed+" in parallel", filepath.Join(parallel, seed), filepath.Join(several, seed))
		sharpe = append(sharpe, sum.Runs[i].Validation["sharpe"])
	}
	if sharpe[0] == sharpe[1] || sharpe[1] == sharpe[2] {
		t.Errorf("seeds have the same result: %v", sharpe)
	}
	mean := (sharpe[0] + sharpe[1] + sharpe[2]) / 3
	var squares float64
	for _, x := range sharpe {
		squares += (x - mean) * (x - mean)
	}
	got := sum.Validation["sharpe"]
	if got.N != 3 || math.Abs(*got.Mean-mean) > 1e-12 || math.Abs(*got.Std-math.Sqrt(squares/2)) > 1e-12 {
		t.Errorf("mean and deviation %g, %g of %v", *got.Mean, *got.Std, sharpe)
	}
	var written run.Summary
	if err := run.ReadJSON(filepath.Join(several, run.SummaryFile), &written); err != nil || len(written.Runs) != 3 || *written.Validation["sharpe"].Mean != *got.Mean {
		t.Errorf("%s: %+v, %v", run.SummaryFile, written, err)
	}
	again := apptest.TrainRuns(t, "--resume", several)
	if len(again.Runs) != 3 || again.Runs[2].Seconds != sum.Runs[2].Seconds {
		t.Errorf("finished seeds were trained again: %+v", again)
	}
	apptest.Refuse(t, []string{"train", config, "--out", several, "--seeds", "1,2"}, "holds a run already", "--resume")
	// A seed that is missing is trained, and nothing else.
	if err := os.RemoveAll(filepath.Join(several, "seed-43")); err != nil {
		t.Fatal(err)
	}
	again = apptest.TrainRuns(t, "--resume", several)
	if again.Runs[0].Seconds != sum.Runs[0].Seconds || again.Runs[1].Seconds == sum.Runs[1].Seconds {
		t.Errorf("%+v", again.Runs)
	}
	sameTraining(t, "seed 43, trained later", filepath.Join(several, "seed-43"), one)
}

func TestTrainResumeChanges(t *testing.T) {
	longtest.Slow(t)
	t.Parallel()
	config, dir := apptest.TrainYAML(t, "sharpe}", "sharpe, patience: 50}"), filepath.Join(t.TempDir(), "run")
	apptest.TrainRuns(t, config, "--out", dir)
	apptest.Refuse(t, []string{"train", config, "--out", dir}, "holds a run already", "--resume "+dir, "another --out")
	apptest.Refuse(t, []string{"train", "--resume", dir, "--set", "agent.gamma=0.5", "--set", "train.num_envs=2", "--set", "env.fee_rate=0.1", "--set", "train.total_env_steps=600"},
		"configuration has changed", "agent.gamma: 0.96 -> 0.5", "train.num_envs: 4 -> 2", "env.fee_rate: 0.0005 -> 0.1", "train.total_env_steps: 1200 -> 600")
	// An edit of the file counts like one of the command line.
	path := filepath.Join(dir, run.ConfigFile)
	text := string(apptest.ReadBytes(t, path))
	if err := os.WriteFile(path, []byte(strings.Replace(text, "ent_coef: 0.05", "ent_coef: 0.07", 1)), 0o644); err != nil {
		t.Fatal(err)
	}
	apptest.Refuse(t, []string{"train", "--resume", dir}, "agent.ent_coef: 0.05 -> 0.07")
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	// A run may grow, and be saved and logged at other times; what it has become is then its
	// configuration.
	sum := apptest.TrainRuns(t, "--resume", dir, "--set", "train.total_env_steps=1300", "--set", "train.checkpoint.every_steps=30", "--set", "train.log_interval_steps=20")
	if sum.Runs[0].EnvSteps != 1300 || !strings.Contains(string(apptest.ReadBytes(t, path)), "total_env_steps: 1300") {
		t.Errorf("%+v", sum.Runs[0])
	}
	apptest.Refuse(t, []string{"train", "--resume", dir, "--set", "train.total_env_steps=1200"}, "train.total_env_steps: 1300 -> 1200")
	c, err := valueIn(t, path, "env.data.source.path")
	if err != nil {
		t.Fatal(err)
	}
	rows := apptest.ReadBytes(t, c)
	if err := os.WriteFile(c, bytes.Replace(rows, []byte("2020-03-01,A,"), []byte("2020-03-01,A,1"), 1), 0o644); err != nil {
		t.Fatal(err)
	}
	apptest.Refuse(t, []string{"train", "--resume", dir}, "the data has changed since the run was started")
}

// valueIn reads a text of a document.
func valueIn(t *testing.T, path, key string) (string, error) {
	t.Helper()
	var l run.Lineage
	if err := run.ReadJSON(filepath.Join(filepath.Dir(path), run.LineageFile), &l); err != nil {
		return "", err
	}
	for line := range strings.Lines(l.Config) {
		if k, v, ok := strings.Cut(strings.TrimSpace(line), ": "); ok && strings.HasSuffix(key, "."+k) {
			return v, nil
		}
	}
	return "", fmt.Errorf("%s is not in the configuration", key)
}

func TestTrainBadInput(t *testing.T) {
	t.Parallel()
	out := filepath.Join(t.TempDir(), "run")
	cases := []struct {
		what string
		args []string
		says []string
	}{
		{"a misspelt key", []string{apptest.TrainYAML(t, "n_steps:", "n_step:")}, []string{"tiny.yaml:14", "n_step", "n_steps"}},
		{"a misspelt key of train", []string{apptest.TrainYAML(t, "num_envs:", "envs:")}, []string{"tiny.yaml:23", "train", "envs"}},
		{"a missing part", []string{apptest.TrainYAML(t, "kind: a2c", "gae_lambda: 0.9")}, []string{"tiny.yaml:11", "kind"}},
		{"an unknown algorithm", []string{apptest.TrainYAML(t, "kind: a2c", "kind: a3c")}, []string{"tiny.yaml:11", "a3c", "a2c"}},
		{"an unknown environment", []string{apptest.TrainYAML(t, "kind: trading", "kind: tradng")}, []string{"tiny.yaml:3", "tradng", "trading"}},
		{"a misspelt edit", []string{apptest.TrainYAML(t), "--set", "train.totl=3"}, []string{"--set train.totl=3", "totl"}},
		{"an unknown metric", []string{apptest.TrainYAML(t, "metric: sharpe", "metric: sharp")}, []string{"train.validation.metric", `"sharp"`, "max_drawdown", "sharpe, total_return"}},
		{"a missing file", []string{filepath.Join(t.TempDir(), "none.yaml")}, []string{"none.yaml"}},
		{"data that are not there", []string{apptest.TrainYAML(t, "source: {path: ", "source: {path: /nowhere")}, []string{"/nowhere"}},
		{"seeds that are none", []string{apptest.TrainYAML(t), "--seeds", "1,x"}, []string{"--seeds", "1,x", "42,43,44"}},
		{"a seed given twice", []string{apptest.TrainYAML(t), "--seeds", "1,1"}, []string{"--seeds", "1 is given twice"}},
		{"nothing", nil, []string{"a configuration is needed"}},
		{"nothing to resume", []string{"--resume", t.TempDir()}, []string{"it holds no run", run.ConfigFile}},
		{"no runs at once", []string{apptest.TrainYAML(t), "--parallel", "0"}, []string{"--parallel 0"}},
		{"--partial alone", []string{apptest.TrainYAML(t), "--partial"}, []string{"--init"}},
		{"parameters that are not there", []string{apptest.TrainYAML(t), "--init", filepath.Join(t.TempDir(), "none.onnx")}, []string{"init ", "none.onnx"}},
		{"no validation split", []string{apptest.TrainYAML(t, "valid: [2020-07-01, 2020-08-31], ", "")}, []string{"valid"}},
	}
	for _, c := range cases {
		args := append([]string{"train", "-q"}, c.args...)
		if len(c.args) > 0 && !slices.Contains(c.args, "--resume") {
			args = append(args, "--out", out)
		}
		r := apptest.Run(t, args...)
		if r.Code != 1 || !strings.Contains(r.Err, "onnxrl: ") || r.Out != "" {
			t.Errorf("%s: exit status %d, expected 1 and an error\n%s%s", c.what, r.Code, r.Out, r.Err)
		}
		for _, s := range c.says {
			if !strings.Contains(r.Err, s) {
				t.Errorf("%s: the error does not say %q:\n%s", c.what, s, r.Err)
			}
		}
		if _, err := os.Stat(filepath.Join(out, run.ConfigFile)); err == nil {
			t.Errorf("%s: there is a run", c.what)
		}
	}
	if len(cases) != 17 {
		t.Errorf("%d cases", len(cases))
	}
	// A run that failed before it began is not in the way.
	apptest.TrainRuns(t, apptest.TrainYAML(t), "--out", out, "--set", "train.total_env_steps=100")
}

// The agent is the same whether or not it is evaluated and published meanwhile.
func TestTrainEvaluationDisturbsNothing(t *testing.T) {
	longtest.Slow(t)
	t.Parallel()
	config := apptest.TrainYAML(t)
	agent := func(args ...string) map[string][]float32 {
		dir := filepath.Join(t.TempDir(), "run")
		apptest.TrainRuns(t, append([]string{config, "--out", dir}, args...)...)
		c, err := checkpoint.Latest(filepath.Join(dir, run.CheckpointDir))
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		r, out := c.Reader().Scope("agent"), map[string][]float32{}
		for _, name := range r.Names() {
			if _, isArray := r.Shape(name); !isArray {
				continue
			}
			v, _, err := r.Float32s(name)
			if err != nil {
				t.Fatal(err)
			}
			out[name] = v
		}
		return out
	}
	often, never := agent(), agent("--set", "train.validation.every_steps=0")
	if len(often) < 20 || !maps.EqualFunc(often, never, slices.Equal) {
		t.Errorf("%d arrays, equal %v", len(often), maps.EqualFunc(often, never, slices.Equal))
	}
}

// A run can begin with what another one has learnt, or with the file that it published; a part
// needs to be asked for.
func TestTrainInit(t *testing.T) {
	longtest.Slow(t)
	t.Parallel()
	config, dir := apptest.TrainYAML(t), filepath.Join(t.TempDir(), "run")
	apptest.TrainRuns(t, config, "--out", dir)
	best := filepath.Join(dir, publish.BestFile)
	second := filepath.Join(t.TempDir(), "second")
	r := apptest.Run(t, "train", "-q", config, "--out", second, "--init", best, "--set", "train.total_env_steps=20", "--set", "agent.learning_rate=1e-12")
	if r.Code != 0 || !strings.Contains(r.Err, "copied") || !strings.Contains(r.Err, " 0 new") {
		t.Fatalf("exit status %d\n%s", r.Code, r.Err)
	}
	// With steps that do not count, the policy is the one it began with.
	before, after := apptest.Weights(t, best), apptest.Weights(t, filepath.Join(second, publish.BestFile))
	same := 0
	for name, w := range sorted.All(before) {
		for i := range w {
			if math.Abs(float64(w[i]-after[name][i])) > 1e-6 {
				t.Fatalf("%s[%d] is %g, expected %g", name, i, after[name][i], w[i])
			}
			same++
		}
	}
	if same < 100 {
		t.Errorf("%d weights were compared", same)
	}
	var l run.Lineage
	if err := run.ReadJSON(filepath.Join(second, run.LineageFile), &l); err != nil || l.Init == nil || l.Init.Ref != best || len(l.Init.SHA256) != 64 || !strings.Contains(l.Init.Summary, "copied") {
		t.Errorf("%+v, %v", l.Init, err)
	}
	// A publication descends from what its run began with: from the file that a run published,
	// and from the run.
	published := apptest.VersionsIn(t, dir)
	if v := apptest.VersionsIn(t, second); len(v) == 0 || len(published) == 0 || !slices.Contains(v[0].Manifest.Parents, l.Init.Parent) || !slices.ContainsFunc(published, func(v artifact.Version) bool { return v.Digest == l.Init.Parent }) {
		t.Errorf("%d versions descend from %q, of %d", len(v), l.Init.Parent, len(published))
	}
	fourth := filepath.Join(t.TempDir(), "fourth")
	apptest.TrainRuns(t, config, "--out", fourth, "--init", dir, "--set", "train.total_env_steps=20")
	var from run.Lineage
	if err := run.ReadJSON(filepath.Join(fourth, run.LineageFile), &from); err != nil || from.Init == nil || from.Init.Parent != l.Init.Parent {
		t.Errorf("%+v descends from something else than %q, %v", from.Init, l.Init.Parent, err)
	}
	// Another network shares some of the parameters.
	other := apptest.TrainYAML(t, "n_layers: 1", "n_layers: 2, padding: causal")
	third := filepath.Join(t.TempDir(), "third")
	r = apptest.Run(t, "train", "-q", other, "--out", third, "--init", dir)
	if r.Code != 1 || !strings.Contains(r.Err, "not every parameter") || !strings.Contains(r.Err, "--partial") || !strings.Contains(r.Err, "encoder.conv1") {
		t.Errorf("exit status %d\n%s", r.Code, r.Err)
	}
	r = apptest.Run(t, "train", "-q", other, "--out", third, "--init", dir, "--partial", "--set", "train.total_env_steps=100", "--seeds", "5,6")
	if r.Code != 0 || strings.Count(r.Err, " copied from ") != 1 {
		t.Errorf("exit status %d\n%s", r.Code, r.Err)
	}
	// A seed that is begun when its group is resumed begins with the same.
	ref := newest(t, filepath.Join(third, "seed-6"))
	if err := os.RemoveAll(filepath.Join(third, "seed-6")); err != nil {
		t.Fatal(err)
	}
	apptest.TrainRuns(t, "--resume", third)
	if !bytes.Equal(newest(t, filepath.Join(third, "seed-6")), ref) {
		t.Error("the seed began with something else")
	}
	apptest.Refuse(t, []string{"train", "--resume", third, "--init", dir}, "--init is where a run begins")
	apptest.Refuse(t, []string{"train", other, "--init", dir, "--init-map", "x"}, `--init-map "x": expected FROM=TO`)
}
