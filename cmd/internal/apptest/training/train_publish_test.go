package training

import (
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/agents/publish"
	"github.com/onnxrl/onnxrl/agents/run"
	"github.com/onnxrl/onnxrl/cmd/internal/apptest"
	"github.com/onnxrl/onnxrl/models/artifact"
	"github.com/onnxrl/onnxrl/runtime/longtest"
	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// blank writes the policy of a run with all weights 0, which gives all actions the same
// probability.
func blank(t *testing.T, run string) string {
	t.Helper()
	m, err := apptest.LoadModel(filepath.Join(run, publish.BestFile))
	if err != nil {
		t.Fatal(err)
	}
	m = m.Clone()
	for i, p := range m.Graph.Initializer {
		x, err := onnx.TensorOf(p)
		if err != nil {
			t.Fatal(err)
		}
		if x.DType() == tensor.Float32 {
			m.Graph.Initializer[i] = onnx.ProtoOf(p.Name, tensor.New(tensor.Float32, x.Shape()...))
		}
	}
	path := filepath.Join(t.TempDir(), "blank.onnx")
	if err := onnx.Save(path, m, onnx.SaveOptions{}); err != nil {
		t.Fatal(err)
	}
	return path
}

// improvements counts the validations of a run, the one before the first step aside, that were
// better than all before.
func improvements(t *testing.T, dir string) (n int) {
	t.Helper()
	best, first := math.Inf(-1), true
	for _, line := range apptest.TrainMetrics(t, dir) {
		text, ok := line["eval/sharpe"]
		if !ok {
			continue
		}
		// An undefined ratio is written as text, and wins nothing.
		if v, err := strconv.ParseFloat(text, 64); err == nil && v > best {
			best = v
			if !first {
				n++
			}
		}
		first = false
	}
	return n
}

// TestOnlyTheProvedIsPublished trains with a candidate at every improvement and one version at the
// end, and with a version at every improvement: the last of them is the same policy.
func TestOnlyTheProvedIsPublished(t *testing.T) {
	longtest.Slow(t)
	t.Parallel()
	// How often a policy improves depends on the last digits of the machine's arithmetic; of a few
	// seeds one improves twice.
	var each string
	var improved run.RunSummary
	seed := 1
	for ; ; seed++ {
		if seed > 12 {
			t.Fatal("no seed improves twice")
		}
		each = filepath.Join(t.TempDir(), "run")
		improved = apptest.TrainRuns(t, apptest.TrainYAML(t), "--out", each, "--set", "publish.when=improvements", "--set", fmt.Sprint("seed=", seed)).Runs[0]
		n := improvements(t, each)
		if got := len(apptest.VersionsIn(t, each)); got != max(n, 1) {
			t.Fatalf("seed %d: %d versions of a run that improved %d times", seed, got, n)
		}
		if n >= 2 {
			break
		}
	}
	once := filepath.Join(t.TempDir(), "run")
	s := apptest.TrainRuns(t, apptest.TrainYAML(t), "--out", once, "--set", fmt.Sprint("seed=", seed))
	if list := apptest.VersionsIn(t, once); len(list) != 1 || s.Runs[0].Published != list[0].String() || s.Runs[0].Unpublished != "" {
		t.Errorf("%d versions, %+v", len(list), s.Runs[0])
	}
	list := apptest.VersionsIn(t, each)
	if a, b := apptest.VersionsIn(t, once)[0].Manifest, list[len(list)-1].Manifest; improved.Published == "" || a.EnvStep != b.EnvStep && a.EnvStep != list[0].Manifest.EnvStep {
		t.Errorf("the best policies are of env steps %d and %d", a.EnvStep, b.EnvStep)
	}
	for _, dir := range []string{once, each} {
		if m, err := apptest.LoadModel(filepath.Join(dir, publish.BestFile)); err != nil || publish.IsCandidate(m) {
			t.Errorf("%s: the best policy of a finished run is a candidate, %v", dir, err)
		}
	}
	// Publishing the run again is the same version.
	text := apptest.Succeed(t, "models", "publish", once)
	if !strings.HasPrefix(text, s.Runs[0].Published) || len(apptest.VersionsIn(t, once)) != 1 {
		t.Errorf("published again as %s", text)
	}
}

// TestUndecidedPoliciesAreNotPublished trains one: the run ends well and says so, its policy can be
// evaluated and exported, and published with leave, into another store too.
func TestUndecidedPoliciesAreNotPublished(t *testing.T) {
	longtest.Slow(t)
	t.Parallel()
	dir, shared := filepath.Join(t.TempDir(), "run"), filepath.Join(t.TempDir(), "store")
	first := filepath.Join(t.TempDir(), "first")
	apptest.TrainRuns(t, apptest.TrainYAML(t, "total_env_steps: 1200", "total_env_steps: 200"), "--out", first)
	// Rates as small as these teach nothing.
	config := apptest.TrainYAML(t, "learning_rate: 0.003", "learning_rate: 1.0e-12", "total_env_steps: 1200", "total_env_steps: 200", "every_steps: 200", "every_steps: 40", "publish: {observations: 64, allow_ties: true}", "publish: {observations: 100}")
	r := apptest.Run(t, "train", "-q", config, "--out", dir, "--store", shared, "--init", blank(t, first))
	if r.Code != 0 || !strings.Contains(r.Out, "not published: ") || !strings.Contains(r.Out, "onnxrl models publish --allow-ties "+dir) || !strings.Contains(r.Err, "too many choices are nearly tied") {
		t.Fatalf("status %d\n%s%s", r.Code, r.Out, r.Err)
	}
	if n := len(apptest.VersionsIn(t, dir)); n != 0 {
		t.Errorf("%d versions", n)
	}
	best := filepath.Join(dir, publish.BestFile)
	m, err := apptest.LoadModel(best)
	if err != nil || !publish.IsCandidate(m) {
		t.Fatalf("the candidate: %v", err)
	}
	// It says that it was chosen among all five, wherever on the learning curve it was found.
	if past, err := publish.PastOf(m); err != nil || past.Trials == nil || past.Trials.Evaluations != 5 {
		t.Errorf("the candidate's record: %+v, %v", past.Trials, err)
	}
	out := filepath.Join(t.TempDir(), "x.onnx")
	if x := apptest.Decoded[struct{ Trained string }](t, apptest.Succeed(t, "export", "--json", "--allow-ties", dir, "--out", out, "--rows", "64")); x.Trained != "checkpoint" {
		t.Errorf("%+v", x)
	}
	if m, err := apptest.LoadModel(out); err != nil || publish.IsCandidate(m) {
		t.Errorf("what is exported is a candidate, %v", err)
	} else if text, _ := m.Meta("onnxrl.parity"); !strings.Contains(text, "of 96 rows") {
		t.Errorf("parity %q", text)
	}
	apptest.Refuse(t, []string{"models", "publish", best}, "is the candidate of a run")
	apptest.Refuse(t, []string{"models", "publish", dir}, "--allow-ties accepts them")
	apptest.Refuse(t, []string{"models", "publish", dir, "--name", "x"}, "the run says itself")
	apptest.Refuse(t, []string{"models", "publish", out, "--allow-ties"}, "--allow-ties is for runs")
	apptest.Succeed(t, "models", "publish", dir, "--allow-ties", "--alias", "prod", "--store", shared)
	list := apptest.VersionsIn(t, dir)
	if len(list) != 1 || list[0].Manifest.LearnerStep == 0 {
		t.Fatalf("%+v", list)
	}
	s, err := artifact.Open(shared, artifact.Options{MustExist: true})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for _, alias := range []string{"prod", "run", "latest"} {
		if v, err := s.Resolve(list[0].Manifest.Name + ":" + alias); err != nil || v.Digest != list[0].Digest {
			t.Errorf("%s: %v, %v", alias, v, err)
		}
	}
}

// TestPublishingCanBeOff trains by flag and by key: nothing is exported, and everything can be done
// later.
func TestPublishingCanBeOff(t *testing.T) {
	longtest.Slow(t)
	t.Parallel()
	for _, off := range [][]string{{"--no-publish"}, {"--set", "publish.when=never"}} {
		dir := filepath.Join(t.TempDir(), "run")
		s := apptest.TrainRuns(t, append([]string{apptest.TrainYAML(t), "--out", dir}, off...)...).Runs[0]
		if s.Stopped != "" || s.Published != "" || !strings.Contains(s.PublishWith, "onnxrl models publish "+dir) {
			t.Errorf("%q: %+v", off, s)
		}
		for _, name := range []string{publish.BestFile, publish.StoreDir} {
			if _, err := os.Stat(filepath.Join(dir, name)); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("%q: %s: %v", off, name, err)
			}
		}
		apptest.Succeed(t, "evaluate", "-q", "--no-report", dir)
		apptest.Succeed(t, "models", "publish", dir)
		if n := len(apptest.VersionsIn(t, dir)); n != 1 {
			t.Errorf("%q: %d versions", off, n)
		}
	}
}

// TestFinishedThoughTheProofFails trains in an environment that fails when observations for the
// proof are collected, the first two times: for the candidate and for the version.
func TestFinishedThoughTheProofFails(t *testing.T) {
	fake, err := filepath.Abs(filepath.Join("..", "..", "..", "..", "envs", "gymnasium", "testdata", "fake"))
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("PYTHONPATH", fake)
	t.Setenv("PYTHONDONTWRITEBYTECODE", "1")
	marks, dir := t.TempDir(), filepath.Join(t.TempDir(), "run")
	// No episode of training comes that far.
	config := apptest.Write(t, "late.yaml", fmt.Sprintf(`env: {kind: gymnasium, id: Rude-v0, workers: 1, kwargs: {how: raise, after: 60, times: 2, marks: %q}}
agent: {kind: ppo, n_steps: 8, batch_size: 8, hidden: [4]}
train: {num_envs: 2, total_env_steps: 64, threads: 1, validation: {every_steps: 0}}
publish: {observations: 200, allow_ties: true}
`, marks))
	args := []string{"train", config, "-q", "--engine", "portable", "--out", dir}
	if _, err := exec.LookPath("python3"); err != nil && os.Getenv("ONNXRL_PYTHON") == "" {
		// Package publish has the same test without Python.
		apptest.Refuse(t, args, "no Python interpreter")
		return
	}
	r := apptest.Run(t, args...)
	if r.Code != 0 || !strings.Contains(r.Err, "the wheel has come off") || !strings.Contains(r.Out, "not published") || !strings.Contains(r.Out, "onnxrl models publish "+dir) {
		t.Fatalf("exit status %d\n%s%s", r.Code, r.Out, r.Err)
	}
	if n := len(apptest.VersionsIn(t, dir)); n != 0 || !apptest.IsFile(filepath.Join(dir, run.FinishedFile)) {
		t.Errorf("%d versions of a finished run", n)
	}
	apptest.Succeed(t, "models", "publish", "--engine", "portable", dir)
	if n := len(apptest.VersionsIn(t, dir)); n != 1 {
		t.Errorf("%d versions", n)
	}
}
