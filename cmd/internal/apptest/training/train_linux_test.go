package training

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/onnxrl/onnxrl/agents/run"
	"github.com/onnxrl/onnxrl/cmd/internal/apptest"
	"github.com/onnxrl/onnxrl/runtime/longtest"
	"github.com/onnxrl/onnxrl/runtime/rng"
	"github.com/onnxrl/onnxrl/runtime/sorted"
)

// A run that is stopped by SIGINT, or killed again and again, and resumed, ends exactly as one that
// never stopped.
func TestTrainResumeIsExact(t *testing.T) {
	longtest.Nightly(t)
	t.Parallel()
	config, ref := apptest.TrainYAML(t), filepath.Join(t.TempDir(), "ref")
	apptest.TrainRuns(t, config, "--out", ref)

	dir := filepath.Join(t.TempDir(), "run")
	code, text := apptest.Interrupt(t, dir, 4, os.Interrupt, "train", "-q", config, "--out", dir)
	if code != apptest.Interrupted || !strings.Contains(text, "continue with: onnxrl train --resume "+dir) {
		t.Fatalf("SIGINT: exit status %d, expected %d\n%s", code, apptest.Interrupted, text)
	}
	if code, text = apptest.Interrupt(t, dir, 1, syscall.SIGTERM, "train", "--resume", dir, "-q"); code != apptest.Interrupted {
		t.Fatalf("SIGTERM: exit status %d, expected %d\n%s", code, apptest.Interrupted, text)
	}
	at := apptest.LatestStep(t, dir)
	sum := apptest.TrainRuns(t, "--resume", dir)
	if sum.Runs[0].EnvSteps != 1200 || at < 300 || at >= 1200 {
		t.Errorf("stopped at env step %d and ended at %d", at, sum.Runs[0].EnvSteps)
	}
	sameTraining(t, "SIGINT and SIGTERM", dir, ref)

	dir = filepath.Join(t.TempDir(), "killed")
	code, _ = apptest.Interrupt(t, dir, 2, os.Kill, "train", "-q", config, "--out", dir)
	for _, n := range []int{1, 3, 2} {
		if code != -1 {
			t.Fatalf("a killed process has exit status %d", code)
		}
		code, _ = apptest.Interrupt(t, dir, n, os.Kill, "train", "--resume", dir, "-q")
	}
	apptest.TrainRuns(t, "--resume", dir)
	sameTraining(t, "kill -9", dir, ref)
}

// killAtWrite runs onnxrl and kills it when its metrics have been written to n times, or a few
// times more, wherever it then is: in a rollout, an evaluation, a publication or a checkpoint.
func killAtWrite(t *testing.T, dir string, n int, args ...string) {
	t.Helper()
	size := func() int64 {
		info, err := os.Stat(filepath.Join(dir, run.MetricsFile))
		if err != nil {
			return 0
		}
		return info.Size()
	}
	before := size()
	cmd := apptest.Program(t, args...)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		// A process that ends before is as good as one that is killed.
		_ = cmd.Wait()
		close(done)
	}()
	for looks := time.NewTicker(time.Millisecond); n > 0; {
		select {
		case <-done:
			n = 0
		case <-looks.C:
			if now := size(); now != before {
				before = now
				n--
			}
		}
	}
	if err := cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		t.Fatal(err)
	}
	<-done
}

// A run that is killed at random moments, most of them not after a checkpoint, loses nothing but
// time.
func TestTrainKilledAnywhere(t *testing.T) {
	longtest.Nightly(t)
	t.Parallel()
	config, ref, dir := apptest.TrainYAML(t), filepath.Join(t.TempDir(), "ref"), filepath.Join(t.TempDir(), "run")
	apptest.TrainRuns(t, config, "--out", ref)
	s := rng.New(3).Split("kills").Stream()
	begun := 0
	for range 8 {
		if run.Holds(dir) {
			begun++
			killAtWrite(t, dir, 1+s.IntN(12), "train", "-q", "--resume", dir)
		} else {
			killAtWrite(t, dir, 1+s.IntN(12), "train", "-q", config, "--out", dir)
		}
	}
	if begun < 3 {
		t.Errorf("the run was resumed %d times", begun)
	}
	apptest.TrainRuns(t, "--resume", dir)
	sameTraining(t, "killed anywhere", dir, ref)
}

// Stopped seeds go on where they were, and those that were not begun are.
func TestTrainSeedsResume(t *testing.T) {
	longtest.Nightly(t)
	t.Parallel()
	config, ref := apptest.TrainYAML(t), filepath.Join(t.TempDir(), "ref")
	seeds := []string{"7", "8"}
	apptest.TrainRuns(t, config, "--out", ref, "--seeds", "7,8")
	for what, c := range sorted.All(map[string]struct {
		sig      os.Signal
		parallel string
		code     int
	}{"SIGINT in the first": {os.Interrupt, "1", apptest.Interrupted}, "SIGINT in both": {os.Interrupt, "2", apptest.Interrupted}, "kill -9 in both": {os.Kill, "2", -1}}) {
		dir := filepath.Join(t.TempDir(), "run")
		code, text := apptest.Interrupt(t, filepath.Join(dir, "seed-7"), 4, c.sig, "train", "-q", config, "--out", dir, "--seeds", "7,8", "--parallel", c.parallel)
		if code != c.code || c.code > 0 && !strings.Contains(text, "continue with: onnxrl train --resume "+dir) {
			t.Fatalf("%s: exit status %d\n%s", what, code, text)
		}
		sum := apptest.TrainRuns(t, "--resume", dir, "--parallel", c.parallel)
		if len(sum.Runs) != 2 || len(sum.Unfinished) != 0 {
			t.Errorf("%s: %+v", what, sum)
		}
		for _, s := range seeds {
			sameTraining(t, what+", seed "+s, filepath.Join(dir, "seed-"+s), filepath.Join(ref, "seed-"+s))
		}
	}
}

// A full disk ends the run with an error that says how to go on, and the checkpoints before stay
// good.
func TestTrainFullDisk(t *testing.T) {
	longtest.Nightly(t)
	t.Parallel()
	config, ref, dir := apptest.TrainYAML(t), filepath.Join(t.TempDir(), "ref"), filepath.Join(t.TempDir(), "run")
	apptest.TrainRuns(t, config, "--out", ref)
	if code, text := apptest.Interrupt(t, dir, 4, os.Interrupt, "train", "-q", config, "--out", dir); code != apptest.Interrupted {
		t.Fatalf("SIGINT: exit status %d\n%s", code, text)
	}
	before := apptest.LatestStep(t, dir)
	full := func(bytes int, args ...string) (int, string) {
		t.Helper()
		cmd := apptest.Program(t, args...)
		cmd.Env = append(cmd.Env, apptest.EnvFileSize+"="+strconv.Itoa(bytes))
		out, _ := cmd.CombinedOutput()
		return cmd.ProcessState.ExitCode(), string(out)
	}
	code, text := full(1000, "train", "--resume", dir, "-q")
	if code != 1 || !strings.Contains(text, "file too large") || !strings.Contains(text, "checkpoint of step "+strconv.FormatInt(before, 10)+" is kept") || !strings.Contains(text, "onnxrl train --resume "+dir) {
		t.Errorf("exit status %d\n%s", code, text)
	}
	if after := apptest.LatestStep(t, dir); after != before {
		t.Errorf("the last checkpoint is of step %d, expected %d", after, before)
	}
	apptest.TrainRuns(t, "--resume", dir)
	sameTraining(t, "full disk", dir, ref)

	// A run that cannot write its first checkpoint has not begun.
	none := filepath.Join(t.TempDir(), "none")
	if code, text := full(1000, "train", config, "-q", "--out", none); code != 1 || !strings.Contains(text, "file too large") || strings.Contains(text, "--resume") {
		t.Errorf("exit status %d\n%s", code, text)
	}
	apptest.TrainRuns(t, config, "--out", none)
	sameTraining(t, "after a start that failed", none, ref)
}
