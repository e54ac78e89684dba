package app

import (
	"bytes"
	"maps"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/onnxrl/onnxrl/agents/run"
	"github.com/onnxrl/onnxrl/models/checkpoint"
)

// envFileSize limits the size of the files that the program may write: the kernel then refuses as a
// full disk does.
const envFileSize = "ONNXRL_TEST_FILE_SIZE"

func init() {
	n, err := strconv.ParseUint(os.Getenv(envFileSize), 10, 64)
	if err != nil {
		return
	}
	signal.Ignore(syscall.SIGXFSZ)
	if err := unix.Setrlimit(unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: n, Max: n}); err != nil {
		panic(err)
	}
}

// longRun is a run of 500 optimiser steps with a checkpoint every 10: long enough to be interrupted
// in many places. Adam's moments, a schedule, a shuffle, validation and the best weights are all
// part of the state.
func longRun(t *testing.T) []string {
	t.Helper()
	return fitArgs(mlpModel(t), csvFile(t, table(500)), "--epochs", "20", "--batch", "16", "--validation", "0.2", "--set", "checkpoint.every=10", "--set", "schedule={kind: cosine, warmup: 20}")
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
		t.Errorf("%s: the model file differs from that of the uninterrupted run; weights are equal: %v", what, maps.EqualFunc(weights(t, out), weights(t, refOut), slices.Equal))
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

// A run that is stopped by SIGINT, or killed again and again, and resumed, ends exactly as one that
// never stopped.
func TestFitResumeIsExact(t *testing.T) {
	args := longRun(t)
	refDir := filepath.Join(t.TempDir(), "ref")
	sum, refOut := fitted(t, append(slices.Clone(args), "--dir", refDir))
	if sum.Steps != 500 {
		t.Fatalf("the run has %d steps, expected 500", sum.Steps)
	}

	dir := filepath.Join(t.TempDir(), "run")
	code, text := interrupt(t, dir, 15, os.Interrupt, append(slices.Clone(args), "--dir", dir)...)
	if code != interruptedStatus || !strings.Contains(text, "--resume") {
		t.Fatalf("SIGINT: exit status %d, expected %d\n%s", code, interruptedStatus, text)
	}
	if code, text = interrupt(t, dir, 1, syscall.SIGTERM, "fit", "--resume", dir, "-q"); code != interruptedStatus {
		t.Fatalf("SIGTERM: exit status %d, expected %d\n%s", code, interruptedStatus, text)
	}
	resumed, out := fitted(t, []string{"fit", "--resume", dir, "-q"})
	if resumed.Steps != 500 {
		t.Errorf("the resumed run ended at step %d", resumed.Steps)
	}
	sameRun(t, "SIGINT and SIGTERM", out, dir, refOut, refDir)

	dir = filepath.Join(t.TempDir(), "killed")
	code, _ = interrupt(t, dir, 2, os.Kill, append(slices.Clone(args), "--dir", dir)...)
	for _, n := range []int{1, 5, 12} {
		if code != -1 {
			t.Fatalf("a killed process has exit status %d", code)
		}
		code, _ = interrupt(t, dir, n, os.Kill, "fit", "--resume", dir, "-q")
	}
	_, out = fitted(t, []string{"fit", "--resume", dir, "-q"})
	sameRun(t, "kill -9", out, dir, refOut, refDir)

	r := onnxrl(t, "fit", "-q", "--resume", checkpointPaths(t, dir)[0])
	if r.code != 0 || !strings.Contains(r.err, "the run goes back to step") {
		t.Fatalf("exit status %d\n%s", r.code, r.err)
	}
	_, out = fitted(t, []string{"fit", "--resume", dir, "-q"})
	sameRun(t, "from an older checkpoint", out, dir, refOut, refDir)
}

// latest is the step of the newest whole checkpoint of a run.
func latest(t *testing.T, dir string) int64 {
	t.Helper()
	c, err := checkpoint.Latest(filepath.Join(dir, run.CheckpointDir))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	return c.Step
}

// A disk that is full when a checkpoint or the result is written ends the run with an error that
// names the file, and everything written before stays good.
func TestFitFullDisk(t *testing.T) {
	args := longRun(t)
	full := func(bytes int, args ...string) (int, string) {
		t.Helper()
		cmd := program(t, args...)
		cmd.Env = append(cmd.Env, envFileSize+"="+strconv.Itoa(bytes))
		out, _ := cmd.CombinedOutput()
		return cmd.ProcessState.ExitCode(), string(out)
	}
	// A run is stopped, goes on while there is no room for checkpoints, and goes on again when
	// there is.
	refDir, dir := filepath.Join(t.TempDir(), "ref"), filepath.Join(t.TempDir(), "run")
	_, refOut := fitted(t, append(slices.Clone(args), "--dir", refDir))
	if code, text := interrupt(t, dir, 15, os.Interrupt, append(slices.Clone(args), "--dir", dir)...); code != interruptedStatus {
		t.Fatalf("SIGINT: exit status %d\n%s", code, text)
	}
	before := latest(t, dir)
	code, text := full(500, "fit", "--resume", dir, "-q")
	if code != 1 || !strings.Contains(text, "file too large") || !strings.Contains(text, "checkpoint of step "+strconv.FormatInt(before, 10)+" is kept") || !strings.Contains(text, "--resume "+dir) {
		t.Errorf("no room for a checkpoint: exit status %d\n%s", code, text)
	}
	if after := latest(t, dir); after != before {
		t.Errorf("the last checkpoint is of step %d, expected %d", after, before)
	}
	_, out := fitted(t, []string{"fit", "--resume", dir, "-q"})
	sameRun(t, "full disk", out, dir, refOut, refDir)

	// Metrics that outgrow the disk do not stop the training, but the program says from where on
	// they are lost.
	dir = filepath.Join(t.TempDir(), "metrics")
	code, text = full(16<<10, append(slices.Clone(args), "--dir", dir)...)
	if code != 1 || !strings.Contains(text, "metrics end before step") || !strings.Contains(text, run.MetricsFile) || latest(t, dir) != 500 {
		t.Errorf("no room for metrics: exit status %d, last checkpoint of step %d\n%s", code, latest(t, dir), text)
	}

	// The result is refused as a whole: an older file of that name stays.
	small := fitArgs(mlpModel(t), csvFile(t, table(40)), "--epochs", "1", "--out")
	path := write(t, "out.onnx", "old")
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
