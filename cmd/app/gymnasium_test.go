package app

import (
	"archive/zip"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/agents/run"
	"github.com/onnxrl/onnxrl/cmd/internal/apptest"
	"github.com/onnxrl/onnxrl/runtime/longtest"
	"github.com/onnxrl/onnxrl/runtime/sorted"
	"github.com/onnxrl/onnxrl/runtime/tensor/npy"
)

// A fault of an environment of Python ends a run with an error that names environment, step, field
// and what was expected; package gymnasium's TestBadAnswers has all of them. Without a Python the
// program says that.
func TestTrainBadPythonEnvironments(t *testing.T) {
	fake, err := filepath.Abs(filepath.Join("..", "..", "envs", "gymnasium", "testdata", "fake"))
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("PYTHONPATH", fake)
	t.Setenv("PYTHONDONTWRITEBYTECODE", "1")
	dir := t.TempDir()
	train := func(env string) []string {
		path := filepath.Join(dir, "run.yaml")
		text := "seed: 1\nenv: " + env + "\nagent: {kind: ppo, n_steps: 8, batch_size: 8, hidden: [4]}\ntrain: {num_envs: 2, total_env_steps: 64, threads: 1, validation: {every_steps: 0}}\n"
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return []string{"train", path, "-q", "--engine", "portable", "--out", filepath.Join(dir, "run")}
	}
	if _, err := exec.LookPath("python3"); err != nil && os.Getenv("ONNXRL_PYTHON") == "" {
		apptest.Refuse(t, train("{kind: gymnasium, id: Walk-v0, python: python3}"), "no Python interpreter")
		return
	}
	r := apptest.Run(t, train(`{kind: gymnasium, id: Rude-v0, workers: 1, kwargs: {how: "nan observation"}}`)...)
	if want := "step Rude-v0: environment 0, step 3 of episode 0: observation \"observation\": element 0 is NaN, expected a finite number\n"; r.Code != 1 || !strings.Contains(r.Err, want) {
		t.Errorf("exit status %d, and it is not said that %s:\n%s", r.Code, want, r.Err)
	}
}

// TestConfigCheckPython: a document is asked of Python where there is one: whether there is such an
// environment, and whether the agent fits its spaces. What the machine lacks is no problem of the
// document.
func TestConfigCheckPython(t *testing.T) {
	if _, err := exec.LookPath("python3"); err != nil && os.Getenv("ONNXRL_PYTHON") == "" {
		t.Skip("there is no Python")
	}
	fake, err := filepath.Abs(filepath.Join("..", "..", "envs", "gymnasium", "testdata", "fake"))
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("PYTHONPATH", fake)
	t.Setenv("PYTHONDONTWRITEBYTECODE", "1")
	cases := 0
	check := func(env, agent string) (configReport, int) {
		cases++
		r := apptest.Run(t, "config", "check", apptest.Write(t, "run.yaml", "env: "+env+"\nagent: {kind: "+agent+"}\n"), "--json")
		return apptest.Decode[configReport](t, r.Out), r.Code
	}
	if r, code := check("{kind: gymnasium, id: Walk-v0}", "ppo"); code != 0 || !r.OK || len(r.Unchecked) > 0 {
		t.Errorf("%d %+v", code, r)
	}
	for text, want := range sorted.All(map[string][]string{
		"{kind: gymnasium, id: Wolk-v0}/ppo":                          {"env.id", "Wolk-v0", "close ids are Walk-v0"},
		"{kind: gymnasium, id: \"nowhere:Walk-v0\"}/ppo":              {"env.id", "No module named 'nowhere'"},
		"{kind: pettingzoo, id: nowhere.v3}/mappo":                    {"env.id", "nowhere.v3 cannot be imported"},
		"{kind: gymnasium, id: Walk-v0}/td3":                          {"", "td3 does not fit gymnasium"},
		"{kind: gymnasium, id: Walk-v0, python: /no/such/python}/ppo": {"env.python", "no Python interpreter"},
	}) {
		env, agent, _ := strings.Cut(text, "}/")
		r, code := check(env+"}", agent)
		if code != 1 || len(r.Problems) != 1 || r.Problems[0].Path != want[0] {
			t.Errorf("%s: status %d, %+v", text, code, r)
			continue
		}
		for _, w := range want[1:] {
			apptest.Says(t, r.Problems[0].Message, w)
		}
	}
	lacks := func(env, want string) {
		t.Helper()
		if r, code := check(env, "ppo"); code != 0 || !r.OK || len(r.Unchecked) != 1 || !strings.Contains(r.Unchecked[0], want) {
			t.Errorf("%s: status %d, %+v", env, code, r)
		}
	}
	lacks("{kind: gymnasium, id: Rude-v0, kwargs: {how: bare}}", "the environment needs Python with gymnasium: gymnasium: open Rude-v0: DependencyNotInstalled: the wheel")
	t.Setenv("PYTHONPATH", t.TempDir())
	lacks("{kind: gymnasium, id: Walk-v0}", "no usable package gymnasium")
	t.Setenv("ONNXRL_PYTHON", "/no/such/python")
	lacks("{kind: gymnasium, id: Walk-v0}", "no Python interpreter")
	lacks("{kind: gymnasium, id: Walk-v0, python: \"\"}", "no Python interpreter")
	if cases != 10 {
		t.Errorf("%d cases", cases)
	}
}

// A published run is exported where its environment is not: without a Python, and without the
// package that has it.
func TestExportNeedsNoEnvironment(t *testing.T) {
	longtest.Slow(t)
	fake, err := filepath.Abs(filepath.Join("..", "..", "envs", "gymnasium", "testdata", "fake"))
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("PYTHONDONTWRITEBYTECODE", "1")
	const short = "seed: 1\ntrain: {num_envs: 2, total_env_steps: 256, threads: 1, validation: {every_steps: 128}}\neval: {episodes: 2}\npublish: {observations: 100, allow_ties: true}\n"
	own := apptest.Trained(t, exportVariants["masked choices"].document+short)
	replaceIn(t, filepath.Join(own, run.ConfigFile), "kind: invalid_action", "kind: elsewhere")
	type machine struct{ what, dir, python, path, says string }
	machines := []machine{{"no such environment", own, "", "", "elsewhere"}}
	if _, err := exec.LookPath("python3"); err == nil || os.Getenv("ONNXRL_PYTHON") != "" {
		t.Setenv("PYTHONPATH", fake)
		dir := apptest.Trained(t, "env: {kind: gymnasium, id: Walk-v0, workers: 1}\nagent: {kind: ppo, n_steps: 16, batch_size: 16, n_epochs: 1, hidden: [4]}\n"+short)
		machines = append(machines, machine{"no Python", dir, filepath.Join(t.TempDir(), "python"), fake, "env.python: gymnasium"}, machine{"no package", dir, os.Getenv("ONNXRL_PYTHON"), t.TempDir(), "env.python: gymnasium"})
	}
	cases := 0
	for _, on := range machines {
		what, dir := on.what, on.dir
		t.Setenv("ONNXRL_PYTHON", on.python)
		t.Setenv("PYTHONPATH", on.path)
		// TestExportForms has the others.
		for _, form := range []string{"oci", "python"} {
			out := filepath.Join(t.TempDir(), form)
			r := apptest.Run(t, "export", dir, "--format", form, "--out", out, "--rows", "64", "--json")
			if r.Code != 0 || !strings.Contains(r.Err, "without the environment, parity is checked on the observations that were recorded") {
				t.Fatalf("%s, %s: status %d\n%s", what, form, r.Code, r.Err)
			}
			x := apptest.Decode[exportResult](t, r.Out)
			if x.Observations != "golden and made up" || x.Trained != "file" || x.Rows != 64 || x.Parity.MaxError > 1e-5 {
				t.Errorf("%s, %s: %+v", what, form, x)
			}
			if form == "python" {
				rows := recordedRowsOf(t, out)
				if v := apptest.VersionsIn(t, dir)[0]; rows != v.Manifest.Golden.Rows {
					t.Errorf("%d recorded rows, the version has %d golden ones", rows, v.Manifest.Golden.Rows)
				}
			}
			cases++
		}
		// A field that is asked for by name must be there.
		out := filepath.Join(t.TempDir(), "x.onnx")
		if r := apptest.Run(t, "export", dir, "--config", filepath.Join(dir, run.ConfigFile), "--out", out); r.Code != 1 || !strings.Contains(r.Err, on.says) || apptest.IsFile(out) {
			t.Errorf("%s: status %d\n%s", what, r.Code, r.Err)
		}
	}
	if cases != 2*len(machines) {
		t.Errorf("%d cases", cases)
	}
}

// recordedRowsOf is the number of rows of a Python folder.
func recordedRowsOf(t *testing.T, folder string) int {
	t.Helper()
	z, err := zip.OpenReader(filepath.Join(folder, "recorded.npz"))
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	f, err := z.File[0].Open()
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	b, err := io.ReadAll(f)
	if err != nil {
		t.Fatal(err)
	}
	x, err := npy.Decode(b)
	if err != nil {
		t.Fatal(err)
	}
	return x.Shape()[0]
}

// replaceIn edits a file.
func replaceIn(t *testing.T, path, old, text string) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(b), old) {
		t.Fatalf("%s has no %q:\n%s", path, old, b)
	}
	if err := os.WriteFile(path, []byte(strings.Replace(string(b), old, text, 1)), 0o644); err != nil {
		t.Fatal(err)
	}
}
