package studies

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/onnxrl/onnxrl/cmd/internal/apptest"
	"github.com/onnxrl/onnxrl/runtime/longtest"
)

// TestAblateResumes stops a study by SIGINT, and kills it, at two places; resumed, it gives the
// tables of one that was never stopped.
func TestAblateResumes(t *testing.T) {
	longtest.Nightly(t)
	t.Parallel()
	study := apptest.AblationFiles(t, apptest.AblationStudy, strings.NewReplacer("every_steps: 40", "every_steps: 20", "total_env_steps: 400", "total_env_steps: 160").Replace(apptest.AblationBase))
	ref := filepath.Join(t.TempDir(), "ref")
	apptest.Succeed(t, ablateArgs(study, ref, "--calibrate", "0")...)
	stopped := 0
	for _, c := range []struct {
		run         string
		checkpoints int
		sig         os.Signal
		code        int
	}{
		{"window=8/seed-2", 3, os.Interrupt, 130},
		{"base/seed-2", 2, syscall.SIGKILL, -1},
	} {
		out := filepath.Join(t.TempDir(), "out")
		args := ablateArgs(study, out, "--calibrate", "0")
		code, errs := apptest.Interrupt(t, filepath.Join(out, filepath.FromSlash(c.run)), c.checkpoints, c.sig, args...)
		if code != c.code {
			t.Errorf("%s: exit status %d, expected %d\n%s", c.run, code, c.code, errs)
		}
		if c.code == 130 && !strings.Contains(errs, "runs finished; the same command goes on") {
			t.Errorf("%s: %s", c.run, errs)
		}
		if log, err := os.ReadFile(filepath.Join(out, "outcomes.jsonl")); err == nil && strings.Contains(string(log), c.run) {
			t.Errorf("%s is finished: nothing was stopped", c.run)
			continue
		}
		stopped++
		apptest.Succeed(t, args...)
		for _, f := range []string{"ablation.csv", "summary.csv", "factors.csv", "summary.md"} {
			if apptest.ReadText(t, out, f) != apptest.ReadText(t, ref, f) {
				t.Errorf("%s: %s differs from that of the study that was never stopped", c.run, f)
			}
		}
	}
	if stopped != 2 {
		t.Errorf("%d of 2 studies were stopped in the middle", stopped)
	}
}
