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

// TestWalkforwardResumes stops a study by SIGINT, and kills it; resumed, with another number of
// runs at a time, it gives the tables of one that was never stopped.
func TestWalkforwardResumes(t *testing.T) {
	longtest.Nightly(t)
	t.Parallel()
	study := apptest.AblationFiles(t, strings.Replace(walkStudy, "seeds:", "warm_start: last\nseeds:", 1), strings.Replace(walkBase, "total_env_steps: 120", "total_env_steps: 400", 1))
	ref := filepath.Join(t.TempDir(), "ref")
	apptest.Succeed(t, walkArgs(study, ref, "--parallel", "1")...)
	stopped := 0
	for _, c := range []struct {
		run         string
		checkpoints int
		sig         os.Signal
		code        int
	}{
		{"2000-11-01/seed-1", 3, os.Interrupt, 130},
		{"2001-02-01/seed-2", 2, syscall.SIGKILL, -1},
	} {
		out := filepath.Join(t.TempDir(), "out")
		args := walkArgs(study, out)
		code, errs := apptest.Interrupt(t, filepath.Join(out, filepath.FromSlash(c.run)), c.checkpoints, c.sig, args...)
		if code != c.code {
			t.Errorf("%s: exit status %d, expected %d\n%s", c.run, code, c.code, errs)
		}
		if c.code == 130 && !strings.Contains(errs, "cells judged; the same command goes on") {
			t.Errorf("%s: %s", c.run, errs)
		}
		if _, err := os.Stat(filepath.Join(out, filepath.FromSlash(c.run), "finished.json")); err == nil {
			t.Errorf("%s is finished: nothing was stopped", c.run)
			continue
		}
		stopped++
		apptest.Succeed(t, args...)
		sameWalk(t, out, ref)
	}
	if stopped != 2 {
		t.Errorf("%d of 2 studies were stopped in the middle", stopped)
	}
}
