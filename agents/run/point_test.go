package run

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The run to be resumed is found from any folder, and an error about a path that is no checkpoint
// lists those that are.
func TestPoint(t *testing.T) {
	run := filepath.Join(t.TempDir(), "run")
	for _, name := range []string{"ckpt-000000100", "ckpt-000000200"} {
		if err := os.MkdirAll(filepath.Join(run, CheckpointDir, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(run, ConfigFile), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	at := filepath.Join(run, CheckpointDir, "ckpt-000000100")
	for _, c := range []struct{ in, path, run, from string }{
		{"/", run, run, ""}, {"/", run + "/", run + "/", ""}, {"/", at, run, at}, {"/", at + "/", run, at}, {at, ".", "../..", "../../checkpoints/ckpt-000000100"},
		{run, "checkpoints/ckpt-000000200", ".", "checkpoints/ckpt-000000200"}, {run, ".", ".", ""}, {"/", "/none", "/none", ""},
	} {
		t.Chdir(c.in)
		if got, from, err := Point(c.path); err != nil || got != c.run || from != c.from {
			t.Errorf("%s in %s: run %q, checkpoint %q, %v", c.path, c.in, got, from, err)
		}
	}
	for _, path := range []string{filepath.Join(run, CheckpointDir), filepath.Join(run, CheckpointDir, "ckpt-000000300")} {
		if _, _, err := Point(path); err == nil || !strings.Contains(err.Error(), "ckpt-000000100, ckpt-000000200") {
			t.Errorf("%s: error %v", path, err)
		}
	}
}
