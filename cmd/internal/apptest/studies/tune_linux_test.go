package studies

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/onnxrl/onnxrl/agents/tune"
	"github.com/onnxrl/onnxrl/cmd/internal/apptest"
	"github.com/onnxrl/onnxrl/runtime/longtest"
	"github.com/onnxrl/onnxrl/runtime/sorted"
)

// A search that is stopped by SIGINT or killed, again and again, has the trials of one that never
// stopped.
func TestTuneResumeIsExact(t *testing.T) {
	longtest.Slow(t)
	t.Parallel()
	config := apptest.TuneYAML(t)
	want := apptest.Tunes(t, config, "--out", filepath.Join(t.TempDir(), "ref"))
	for name, sig := range sorted.All(map[string]os.Signal{"SIGINT": os.Interrupt, "SIGTERM": syscall.SIGTERM, "kill -9": os.Kill}) {
		dir := filepath.Join(t.TempDir(), "search")
		// The log is appended to when a trial begins and when it ends.
		code, text := apptest.Signalled(t, filepath.Join(dir, tune.LogFile), 8, sig, "tune", "-q", config, "--out", dir)
		switch {
		case sig == os.Kill && code != -1:
			t.Fatalf("a killed process has exit status %d", code)
		case sig != os.Kill && (code != apptest.Interrupted || !strings.Contains(text, "continue with: onnxrl tune --resume "+dir)):
			t.Fatalf("%s: exit status %d, expected %d\n%s", name, code, apptest.Interrupted, text)
		}
		if n := strings.Count(string(apptest.ReadBytes(t, filepath.Join(dir, tune.LogFile))), "\n"); n < 7 || n > 9 {
			t.Errorf("%s: %d lines in the log", name, n)
		}
		apptest.SameTrials(t, name, apptest.Tunes(t, "--resume", dir).Trials, want.Trials)
	}
}
