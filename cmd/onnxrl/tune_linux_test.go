package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"onnxrl/cmd/internal/tuning"
)

// tuneUntil runs a search and sends it a signal once its log has been written n times. It returns the exit status and the standard error.
func tuneUntil(t *testing.T, dir string, n int, sig os.Signal, args ...string) (int, string) {
	t.Helper()
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	next, stop := arrivals(t, dir, tuning.LogFile)
	defer stop()
	cmd := program(t, args...)
	var errw bytes.Buffer
	cmd.Stderr = &errw
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() {
		done <- cmd.Wait()
		stop()
	}()
	for range n {
		if !next() {
			<-done
			t.Fatalf("the search ended before its log was written %d times: %v\n%s", n, cmd.ProcessState, errw.String())
		}
	}
	if err := cmd.Process.Signal(sig); err != nil {
		t.Fatal(err)
	}
	<-done
	return cmd.ProcessState.ExitCode(), errw.String()
}

// A search that is stopped by SIGINT or killed, again and again, has the trials of one that never stopped.
func TestTuneResumeIsExact(t *testing.T) {
	config := tuneYAML(t)
	want := tunes(t, config, "--out", filepath.Join(t.TempDir(), "ref"))
	for name, sig := range map[string]os.Signal{"SIGINT": os.Interrupt, "SIGTERM": syscall.SIGTERM, "kill -9": os.Kill} {
		dir := filepath.Join(t.TempDir(), "search")
		// The log is written at the beginning, when a trial begins and when it ends.
		code, text := tuneUntil(t, dir, 8, sig, "tune", "-q", config, "--out", dir)
		switch {
		case sig == os.Kill && code != -1:
			t.Fatalf("a killed process has exit status %d", code)
		case sig != os.Kill && (code != exitInterrupted || !strings.Contains(text, "continue with: onnxrl tune --resume "+dir)):
			t.Fatalf("%s: exit status %d, expected %d\n%s", name, code, exitInterrupted, text)
		}
		if n := strings.Count(string(readBytes(t, filepath.Join(dir, tuning.LogFile))), "\n"); n < 3 || n > 9 {
			t.Errorf("%s: %d lines in the log", name, n)
		}
		sameTrials(t, name, tunes(t, "--resume", dir).Trials, want.Trials)
	}
}
