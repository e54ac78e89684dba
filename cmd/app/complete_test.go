package app

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestCompletion: the shell is told experiments, runs, engines, splits, formats and kinds.
func TestCompletion(t *testing.T) {
	t.Chdir(t.TempDir())
	run := filepath.Join("runs", "demo-1")
	if err := os.MkdirAll(run, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(run, "config.yaml"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args []string
		want []string
	}{
		{[]string{"train", ""}, []string{"qtmrl", "cartpole_ppo"}},
		{[]string{"evaluate", ""}, []string{run}},
		{[]string{"train", "--resume", ""}, []string{run}},
		{[]string{"train", "--engine", ""}, []string{"auto", "portable"}},
		{[]string{"evaluate", "x", "--split", ""}, []string{"train", "valid", "test"}},
		{[]string{"export", "x", "--format", ""}, []string{"onnx", "triton"}},
		{[]string{"config", "new", ""}, []string{"train", "serve"}},
		{[]string{"config", "new", "train", "--algo", ""}, []string{"ppo", "sac"}},
	} {
		r := inside(t, append([]string{"__complete"}, c.args...)...)
		lines := strings.Split(r.Out, "\n")
		for _, want := range c.want {
			if r.Code != 0 || !slices.Contains(lines, want) {
				t.Errorf("%v does not complete %q:\n%s", c.args, want, r.Out)
			}
		}
	}
}
