package training

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/agents/run"
	"github.com/onnxrl/onnxrl/cmd/internal/apptest"
	"github.com/onnxrl/onnxrl/models/checkpoint"
)

// TestDemoInterrupted stops the training by a signal: the state is saved, and the message says how
// to go on.
func TestDemoInterrupted(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "run")
	code, text := apptest.Interrupt(t, dir, 1, os.Interrupt, "demo", "--engine", "portable", "--out", dir, "-q")
	if code != apptest.Interrupted || !strings.Contains(text, "onnxrl train --resume "+dir) || !strings.Contains(text, "onnxrl evaluate "+dir) {
		t.Fatalf("exit status %d\n%s", code, text)
	}
	list, err := checkpoint.List(filepath.Join(dir, run.CheckpointDir))
	if err != nil || len(list) == 0 {
		t.Fatalf("checkpoints %+v, %v", list, err)
	}
}
