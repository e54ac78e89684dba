package gymnasium_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/onnxrl/onnxrl/configs"
	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/envs/gymnasium"
	"github.com/onnxrl/onnxrl/runtime/longtest"
)

// TestOpenErrors: every way in which environments cannot be opened says what to do.
func TestOpenErrors(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string, mode os.FileMode) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
		return path
	}
	silent := write("silent", "#!/bin/sh\necho I am no Python >&2\nexit 3\n", 0o755)
	stubborn := write("stubborn", "#!/bin/sh\nexec sleep 1000\n", 0o755)
	plain := write("plain", "no program", 0o644)
	cases := []struct {
		name   string
		change func(*gymnasium.Config)
		want   []string
	}{
		{"no id", func(c *gymnasium.Config) { c.ID = "" }, []string{"id: required"}},
		{"an id that is nearly one", func(c *gymnasium.Config) { c.ID = "Wolk-v0" }, []string{"Wolk-v0", "doesn't exist", "close ids are Walk-v0"}},
		{"an id like no other", func(c *gymnasium.Config) { c.ID = "Zzz" }, []string{"9 ids are registered", "PACKAGE:ID"}},
		{"a package that there is not", func(c *gymnasium.Config) { c.ID = "no_such_package:Walk-v0" }, []string{"No module named 'no_such_package'"}},
		{"arguments that it does not take", func(c *gymnasium.Config) { c.Kwargs = map[string]any{"height": 2} }, []string{"TypeError", "height"}},
		{"an environment that cannot be made", func(c *gymnasium.Config) { c.ID, c.Kwargs = "Rude-v0", map[string]any{"how": "unmade"} }, []string{"toys.py", "RuntimeError: cannot be made", "for two reasons"}},
		{"no such interpreter", func(c *gymnasium.Config) { c.Python = filepath.Join(dir, "none") }, []string{"no Python interpreter", "none"}},
		{"an interpreter that cannot be run", func(c *gymnasium.Config) { c.Python = plain }, []string{"permission denied"}},
		{"another program", func(c *gymnasium.Config) { c.Python = silent }, []string{"has ended: exit status 3", "I am no Python"}},
		{"a program that does not answer", func(c *gymnasium.Config) { c.Python, c.StartTimeout = stubborn, 100*time.Millisecond }, []string{"did not answer in time"}},
		{"a key of info without a mask", func(c *gymnasium.Config) { c.MaskInfo = "valid" }, nil},
	}
	for _, c := range cases[:longtest.Cases(t, len(cases), 3)] {
		cfg := config("Walk-v0", nil)
		c.change(&cfg)
		f, err := gymnasium.Open(t.Context(), cfg)
		if c.want == nil {
			if err != nil {
				t.Errorf("%s: %v", c.name, err)
				continue
			}
			// The mask is missed when there should be one.
			e, err := f.New(envs.Train, 0)
			if err != nil {
				t.Fatal(err)
			}
			if err := e.Reset(rootKey, envs.NewTimeStep(e.Spec())); err == nil || !strings.Contains(err.Error(), `no mask under 'valid'`) {
				t.Errorf("%s: %v", c.name, err)
			}
			if err := e.Close(); err != nil {
				t.Error(err)
			}
			f.Close()
			continue
		}
		if err == nil {
			t.Errorf("%s: no error", c.name)
			f.Close()
			continue
		}
		for _, want := range c.want {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %q is not said: %v", c.name, want, err)
			}
		}
		if strings.Contains(err.Error(), "onnxrl worker") {
			t.Errorf("%s: the traceback shows the worker's own frames: %v", c.name, err)
		}
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := gymnasium.Open(ended, config("Walk-v0", nil)); !errors.Is(err, context.Canceled) {
		t.Errorf("when nobody wants it any more: %v", err)
	}
}

// TestWithoutPython: the error says what is missing and how it may be named. It is the one test
// here that needs no Python.
func TestWithoutPython(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	t.Setenv("ONNXRL_PYTHON", "")
	if _, err := gymnasium.Open(t.Context(), config("Walk-v0", nil)); err == nil || !strings.Contains(err.Error(), "there is no python3 on the path") {
		t.Errorf("without Python: %v", err)
	}
	t.Setenv("ONNXRL_PYTHON", "/no/such/python")
	if _, err := gymnasium.Open(t.Context(), config("Walk-v0", nil)); err == nil || !strings.Contains(err.Error(), "$ONNXRL_PYTHON") {
		t.Errorf("with a wrong $ONNXRL_PYTHON: %v", err)
	}
}

// TestMissingPackage: the error says how to install it.
func TestMissingPackage(t *testing.T) {
	dir, err := filepath.Abs(filepath.Join("testdata", "missing"))
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("PYTHONPATH", dir)
	if _, err := gymnasium.Open(t.Context(), config("Walk-v0", nil)); err == nil || !strings.Contains(err.Error(), "-m pip install gymnasium") {
		t.Errorf("without the package: %v", err)
	}
}

// TestKind opens environments from documents. Mistakes are errors with their place.
func TestKind(t *testing.T) {
	for _, c := range []struct{ yaml, want string }{
		{"env: {kind: gymnasium, id: Walk-v0, workers: 2, kwargs: {end: 4, start: 0}, info: [wind], timeout: 5s, max_restarts: 0}", ""},
		{"env: {kind: gymnasium}", "env.id: required"},
		{"env: {kind: gymnasium, id: Wolk-v0}", "run.yaml:1:28: env.id: "},
		{"env: {kind: gymnasium, id: Walk-v0, python: /no/python}", "run.yaml:1:45: env.python: "},
		{"env: {kind: gymnasium, id: Walk-v0, workers: -1, max_restarts: -1, timeout: 0s, start_timeout: -1s, info: [a, a]}", "env.start_timeout: must be positive"},
		{"env: {kind: gymnasium, id: Walk-v0, worker: 2}", `did you mean "workers"?`},
	} {
		d, err := configs.Parse("run.yaml", []byte(c.yaml))
		if err != nil {
			t.Fatal(err)
		}
		var run struct {
			Env configs.Kinded `yaml:"env"`
		}
		if err := d.Decode(&run); err != nil {
			t.Fatal(err)
		}
		f, err := envs.Open(t.Context(), []envs.Kind{gymnasium.Kind}, run.Env)
		if c.want != "" {
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s: %q is not said: %v", c.yaml, c.want, err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", c.yaml, err)
			continue
		}
		// The recorded document of the run opens the same.
		text, err := configs.Marshal(f.Config())
		if err != nil {
			t.Fatal(err)
		}
		again, err := configs.Parse("effective.yaml", text)
		if err != nil {
			t.Fatal(err)
		}
		read := gymnasium.Defaults()
		if err := again.Decode(&read); err != nil || !reflect.DeepEqual(read, f.Config()) {
			t.Errorf("%s: written out and read again it is %+v, %v", c.yaml, read, err)
		}
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	}
}
