package training

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/cmd/internal/apptest"
	"github.com/onnxrl/onnxrl/runtime/longtest"
)

// TestTiny trains the smallest shipped market on every engine: it learns, chooses a policy by
// validation, publishes it with proof, and its evaluation has what tests of evaluations need: a policy
// that trades, buy-and-hold, and one rule beside.
func TestTiny(t *testing.T) {
	longtest.Slow(t)
	t.Parallel()
	engines := 0
	for _, engine := range apptest.Engines() {
		dir := filepath.Join(t.TempDir(), engine)
		r := apptest.TrainRuns(t, "tiny", "--engine", engine, "--out", dir).Runs[0]
		if r.EnvSteps != 200 || r.Metric != "sharpe" || r.BestEnvSteps == 0 || r.Published == "" {
			t.Errorf("%s: %+v", engine, r)
		}
		e := evaluates(t, dir, "--engine", engine, "--no-report")
		if len(e.Rows) != 3 || e.Rows[0].Metrics["sharpe"] == nil || *e.Rows[0].Metrics["turnover"] == 0 || e.Verdict.InSample || e.LookAhead {
			t.Errorf("%s: %+v", engine, e)
		}
		engines++
	}
	if engines != len(apptest.Engines()) || engines == 0 {
		t.Errorf("%d engines", engines)
	}
}

// TestTrialsBelow: every run on the same data below the directory that is evaluated, or that --among
// names, is a trial of the verdict, however deep it lies and whatever its configuration; runs on other
// data are none. A directory that holds a publication and no run, as that of a router with its experts
// does, is evaluated by its model.
func TestTrialsBelow(t *testing.T) {
	longtest.Slow(t)
	t.Parallel()
	dir := t.TempDir()
	run := filepath.Join(dir, "run")
	train := func(to string, sets ...string) {
		args := []string{"tiny", "--engine", "portable", "--out", to, "--set", "publish.when=never"}
		for _, s := range sets {
			args = append(args, "--set", s)
		}
		apptest.TrainRuns(t, args...)
	}
	apptest.TrainRuns(t, "tiny", "--engine", "portable", "--out", run)
	train(filepath.Join(dir, "others", "a"), "seed=6")
	train(filepath.Join(dir, "others", "deep", "b"), "agent.learning_rate=0.02")
	train(filepath.Join(dir, "others", "c"), "env.data.synthetic.seed=4")
	bare := []string{"--engine", "portable", "--no-report"}
	for _, c := range []struct {
		target string
		among  string
		trials int
		says   string
	}{
		{run, "", 1, "One run of this configuration; "},
		{run, dir, 3, "One run of this configuration, 2 other runs on the same data below " + dir + "; "},
		{filepath.Join(run, "best.onnx"), filepath.Join(dir, "others"), 3, ", 2 other runs on the same data below "},
	} {
		args := append([]string{c.target}, bare...)
		if c.among != "" {
			args = append(args, "--among", c.among)
		}
		if e := evaluates(t, args...); e.Deflated.Trials != c.trials || !strings.Contains(e.Counted, c.says) {
			t.Errorf("%s among %s: %d trials, %q", c.target, c.among, e.Deflated.Trials, e.Counted)
		}
	}
	// Below the run itself nobody asks.
	if err := os.Rename(filepath.Join(dir, "others", "a"), filepath.Join(run, "again")); err != nil {
		t.Fatal(err)
	}
	if e := evaluates(t, append([]string{run}, bare...)...); e.Deflated.Trials != 2 || !strings.Contains(e.Counted, ", one other run on the same data below "+run) {
		t.Errorf("%d trials, %q", e.Deflated.Trials, e.Counted)
	}

	whole := filepath.Join(dir, "whole")
	if err := os.Mkdir(whole, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"config.yaml", "best.onnx"} {
		text, err := os.ReadFile(filepath.Join(run, name))
		if err == nil {
			err = os.WriteFile(filepath.Join(whole, name), text, 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	got, want := evaluates(t, whole, "--engine", "portable"), evaluates(t, append([]string{filepath.Join(whole, "best.onnx")}, bare...)...)
	if *got.Rows[0].Metrics["total_return"] != *want.Rows[0].Metrics["total_return"] || got.Deflated.Trials != 1 {
		t.Errorf("%+v, expected %+v", got.Rows[0], want.Rows[0])
	}
	if _, err := os.Stat(filepath.Join(whole, "report", "test", "report.html")); err != nil {
		t.Error(err)
	}
}
