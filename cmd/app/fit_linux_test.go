package app

import (
	"bytes"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/onnxrl/onnxrl/agents/run"
	"github.com/onnxrl/onnxrl/cmd/internal/apptest"
	"github.com/onnxrl/onnxrl/runtime/longtest"
)

// longRun is a run of 25 optimiser steps an epoch with a checkpoint every 10: 20 epochs are long
// enough to be interrupted in many places. Adam's moments, a schedule, a shuffle, validation and the
// best weights are all part of the state.
func longRun(t *testing.T, epochs int) []string {
	t.Helper()
	return apptest.FitArgs(apptest.MLPModel(t), apptest.CSVFile(t, apptest.Table(500)), "--epochs", strconv.Itoa(epochs), "--batch", "16", "--validation", "0.2", "--set", "checkpoint.every=10", "--set", "schedule={kind: cosine, warmup: 20}")
}

// sameRun compares a resumed run with an uninterrupted one: the written file byte for byte, and
// every line of metrics.
func sameRun(t *testing.T, what, out, dir, refOut, refDir string) {
	t.Helper()
	got, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	want, err := os.ReadFile(refOut)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s: the model file differs from that of the uninterrupted run; weights are equal: %v", what, maps.EqualFunc(apptest.Weights(t, out), apptest.Weights(t, refOut), slices.Equal))
	}
	a, b := metricsOf(t, dir), metricsOf(t, refDir)
	if len(a) != len(b) {
		t.Errorf("%s: %d lines of metrics, expected %d", what, len(a), len(b))
		return
	}
	for i := range a {
		if !maps.Equal(a[i], b[i]) {
			t.Errorf("%s: line %d of the metrics is %v, expected %v", what, i+1, a[i], b[i])
			return
		}
	}
}

// A run that is stopped by SIGINT, or killed, and resumed, ends exactly as one that never stopped.
func TestFitResumeIsExact(t *testing.T) {
	longtest.Slow(t)
	t.Parallel()
	resumes(t, 6, 5)
}

// TestFitResumesWhereverItIsKilled kills a run again and again.
func TestFitResumesWhereverItIsKilled(t *testing.T) {
	longtest.Nightly(t)
	resumes(t, 20, 15, 1, 5, 12)
}

// resumes stops a run of so many epochs by SIGINT at its nth checkpoint and SIGTERM, and kills
// another, which is then killed when it has written so many checkpoints more, for each of kills.
func resumes(t *testing.T, epochs, n int, kills ...int) {
	t.Helper()
	args, steps := longRun(t, epochs), int64(25*epochs)
	refDir := filepath.Join(t.TempDir(), "ref")
	sum, refOut := fitted(t, append(slices.Clone(args), "--dir", refDir))
	if sum.Steps != steps {
		t.Fatalf("the run has %d steps, expected %d", sum.Steps, steps)
	}

	dir := filepath.Join(t.TempDir(), "run")
	code, text := apptest.Interrupt(t, dir, n, os.Interrupt, append(slices.Clone(args), "--dir", dir)...)
	if code != apptest.Interrupted || !strings.Contains(text, "--resume") {
		t.Fatalf("SIGINT: exit status %d, expected %d\n%s", code, apptest.Interrupted, text)
	}
	if code, text = apptest.Interrupt(t, dir, 1, syscall.SIGTERM, "fit", "--resume", dir, "-q"); code != apptest.Interrupted {
		t.Fatalf("SIGTERM: exit status %d, expected %d\n%s", code, apptest.Interrupted, text)
	}
	resumed, out := fitted(t, []string{"fit", "--resume", dir, "-q"})
	if resumed.Steps != steps {
		t.Errorf("the resumed run ended at step %d", resumed.Steps)
	}
	sameRun(t, "SIGINT and SIGTERM", out, dir, refOut, refDir)

	dir = filepath.Join(t.TempDir(), "killed")
	code, _ = apptest.Interrupt(t, dir, 2, os.Kill, append(slices.Clone(args), "--dir", dir)...)
	for _, n := range kills {
		if code != -1 {
			t.Fatalf("a killed process has exit status %d", code)
		}
		code, _ = apptest.Interrupt(t, dir, n, os.Kill, "fit", "--resume", dir, "-q")
	}
	if code != -1 {
		t.Fatalf("a killed process has exit status %d", code)
	}
	_, out = fitted(t, []string{"fit", "--resume", dir, "-q"})
	sameRun(t, "kill -9", out, dir, refOut, refDir)

	r := apptest.Run(t, "fit", "-q", "--resume", apptest.CheckpointPaths(t, dir)[0])
	if r.Code != 0 || !strings.Contains(r.Err, "the run goes back to step") {
		t.Fatalf("exit status %d\n%s", r.Code, r.Err)
	}
	_, out = fitted(t, []string{"fit", "--resume", dir, "-q"})
	sameRun(t, "from an older checkpoint", out, dir, refOut, refDir)
}

// A disk that is full when a checkpoint or the result is written ends the run with an error that
// names the file, and everything written before stays good.
func TestFitFullDisk(t *testing.T) {
	longtest.Nightly(t)
	t.Parallel()
	args := longRun(t, 20)
	full := func(bytes int, args ...string) (int, string) {
		t.Helper()
		cmd := apptest.Program(t, args...)
		cmd.Env = append(cmd.Env, apptest.EnvFileSize+"="+strconv.Itoa(bytes))
		out, _ := cmd.CombinedOutput()
		return cmd.ProcessState.ExitCode(), string(out)
	}
	// A run is stopped, goes on while there is no room for checkpoints, and goes on again when
	// there is.
	refDir, dir := filepath.Join(t.TempDir(), "ref"), filepath.Join(t.TempDir(), "run")
	_, refOut := fitted(t, append(slices.Clone(args), "--dir", refDir))
	if code, text := apptest.Interrupt(t, dir, 15, os.Interrupt, append(slices.Clone(args), "--dir", dir)...); code != apptest.Interrupted {
		t.Fatalf("SIGINT: exit status %d\n%s", code, text)
	}
	before := apptest.LatestStep(t, dir)
	code, text := full(500, "fit", "--resume", dir, "-q")
	if code != 1 || !strings.Contains(text, "file too large") || !strings.Contains(text, "checkpoint of step "+strconv.FormatInt(before, 10)+" is kept") || !strings.Contains(text, "--resume "+dir) {
		t.Errorf("no room for a checkpoint: exit status %d\n%s", code, text)
	}
	if after := apptest.LatestStep(t, dir); after != before {
		t.Errorf("the last checkpoint is of step %d, expected %d", after, before)
	}
	_, out := fitted(t, []string{"fit", "--resume", dir, "-q"})
	sameRun(t, "full disk", out, dir, refOut, refDir)

	// Metrics that outgrow the disk do not stop the training, but the program says from where on
	// they are lost.
	dir = filepath.Join(t.TempDir(), "metrics")
	code, text = full(16<<10, append(slices.Clone(args), "--dir", dir)...)
	if code != 1 || !strings.Contains(text, "metrics end before step") || !strings.Contains(text, run.MetricsFile) || apptest.LatestStep(t, dir) != 500 {
		t.Errorf("no room for metrics: exit status %d, last checkpoint of step %d\n%s", code, apptest.LatestStep(t, dir), text)
	}

	// The result is refused as a whole: an older file of that name stays.
	small := apptest.FitArgs(apptest.MLPModel(t), apptest.CSVFile(t, apptest.Table(40)), "--epochs", "1", "--out")
	path := apptest.Write(t, "out.onnx", "old")
	if code, text := full(300, append(small, path)...); code != 1 || !strings.Contains(text, "out.onnx") || !strings.Contains(text, "file too large") {
		t.Errorf("exit status %d\n%s", code, text)
	}
	if old, err := os.ReadFile(path); err != nil || string(old) != "old" {
		t.Errorf("the older file is %q, %v", old, err)
	}
	if left, err := os.ReadDir(filepath.Dir(path)); err != nil || len(left) != 1 {
		t.Errorf("files left behind: %v, %v", left, err)
	}
}
