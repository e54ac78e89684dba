package training

import (
	"math"
	"path/filepath"
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/agents/run"
	"github.com/onnxrl/onnxrl/agents/tune"
	"github.com/onnxrl/onnxrl/cmd/internal/apptest"
	"github.com/onnxrl/onnxrl/runtime/longtest"
	"github.com/onnxrl/onnxrl/runtime/onnx"
)

// TestUndefinedSharpe: a policy whose orders never come to a trade wins no validation, and nothing
// that is printed of it is a number that it does not have.
func TestUndefinedSharpe(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "run")
	text := apptest.Succeed(t, "train", "-q", apptest.Write(t, "tiny.yaml", apptest.TinyMarket), "--out", dir, "--set", "env.initial_cash=10", "--set", "env.execution.lot=100")
	if !strings.Contains(text, "seed 7 has no best policy: no validation had a defined sharpe") || !strings.Contains(text, "published ") {
		t.Errorf("trained:\n%s", text)
	}
	var s run.RunSummary
	if err := run.ReadJSON(filepath.Join(dir, run.FinishedFile), &s); err != nil || s.BestEnvSteps != 0 || s.Validation != nil || !math.IsNaN(s.Last["sharpe"]) {
		t.Errorf("%+v, %v", s, err)
	}
	if text = apptest.Succeed(t, "evaluate", dir, "--no-report"); strings.Contains(text, "NaN") || !strings.Contains(text, "It has no Sharpe ratio") || !strings.Contains(text, "Sharpe –, volatility") {
		t.Errorf("evaluated:\n%s", text)
	}
}

// TestEvaluateTuned: the runs of a configuration that a search has found are evaluated as the best
// of all of its trials, and so are their files.
func TestEvaluateTuned(t *testing.T) {
	longtest.Slow(t)
	t.Parallel()
	dir, search := filepath.Join(t.TempDir(), "run"), filepath.Join(t.TempDir(), "search")
	space := apptest.TinyMarket + "tune:\n  trials: 4\n  steps_per_trial: 100\n  pruner: none\n  space:\n    agent.learning_rate: {kind: loguniform, low: 0.001, high: 0.05}\n"
	apptest.Succeed(t, "tune", "-q", apptest.Write(t, "tiny.yaml", space), "--out", search)
	apptest.Succeed(t, "train", "-q", filepath.Join(search, tune.BestFile), "--out", dir, "--seeds", "1,2")
	e := evaluates(t, dir, "--no-report")
	if e.Deflated.Trials != 6 || *e.Deflated.Variance <= 0 || !strings.Contains(e.Counted, "2 runs of this configuration and 4 configurations of the search") {
		t.Errorf("%d trials, %s", e.Deflated.Trials, e.Counted)
	}
	if one := evaluates(t, filepath.Join(dir, "seed-1", "artifacts")+"//best:best", "--no-report"); one.Deflated.Trials != 6 || *one.Deflated.Variance <= 0 {
		t.Errorf("%d trials, %s", one.Deflated.Trials, one.Counted)
	}
}

// TestEvaluateSeenData: a range that the policy learnt from stays one, whatever the splits are
// called when it is evaluated.
func TestEvaluateSeenData(t *testing.T) {
	longtest.Slow(t)
	t.Parallel()
	dir := apptest.Trained(t, apptest.TinyMarket)
	moved := []string{"--no-report", "--set", "env.data.split.train=[2000-01-03, 2000-03-31]", "--set", "env.data.split.valid=[2000-04-03, 2000-05-31]", "--set", "env.data.split.test=[2000-06-01, 2000-12-29]"}
	check := func(target string) {
		t.Helper()
		e := evaluates(t, append([]string{target}, moved...)...)
		if len(e.Seen) != 2 || !strings.Contains(e.Seen[0], "was trained on a part of these data, 2000-06-01 to 2000-10-") || !strings.Contains(e.Seen[1], "chosen by its results on a part of these data, 2000-11-01 to 2000-12-29") || !e.Verdict.InSample {
			t.Errorf("%s: %q", target, e.Seen)
		}
	}
	best := filepath.Join(dir, "best.onnx")
	check(dir)
	check(best)
	check(filepath.Join(dir, "artifacts") + "//tiny:best")
	// Of a file without a record the run's own configuration tells.
	m, err := onnx.Load(best)
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"trained_on", "chosen_on", "trials"} {
		m.SetMeta("onnxrl."+key, "")
	}
	if err := onnx.Save(best, m, onnx.SaveOptions{}); err != nil {
		t.Fatal(err)
	}
	check(best)
	check(dir)
}

// TestEvaluateLookAhead: statistics of all rows mark verdict, table, JSON and report; a model that
// scales by them is marked even where the configuration that it is evaluated with has others.
func TestEvaluateLookAhead(t *testing.T) {
	longtest.Slow(t)
	t.Parallel()
	dir, config := filepath.Join(t.TempDir(), "run"), apptest.Write(t, "tiny.yaml", apptest.TinyMarket)
	text := apptest.Succeed(t, "train", "-q", config, "--out", dir, "--set", "env.data.normalization.fit_on=all")
	if !strings.Contains(text, "\nLOOK-AHEAD: Features are scaled") {
		t.Errorf("train does not say it:\n%s", text)
	}
	text = apptest.Succeed(t, "evaluate", dir)
	if first, _, _ := strings.Cut(text, "\n"); !strings.HasPrefix(first, "These results cannot be earned, because this run knows the future: ") || !strings.Contains(first, "fit_on: all") || !strings.Contains(text, "\nLOOK-AHEAD: Features are scaled") {
		t.Errorf("it is not said:\n%s", text)
	}
	if page := string(apptest.ReadBytes(t, filepath.Join(dir, "report", "test", "report.html"))); strings.Count(page, "fit_on: all") < 2 {
		t.Error("the report does not say it")
	}
	e := evaluates(t, filepath.Join(dir, "best.onnx"), "--no-report", "--set", "env.data.normalization.fit_on=train")
	if !e.LookAhead || !e.Verdict.LookAhead || len(e.Knows) != 1 {
		t.Errorf("%q", e.Knows)
	}
}

// TestEvaluateInherited: data that the parameters had seen which a run began with are not new to
// it, whatever they were read from.
func TestEvaluateInherited(t *testing.T) {
	longtest.Slow(t)
	t.Parallel()
	first, config := apptest.Trained(t, apptest.TinyMarket), apptest.Write(t, "tiny.yaml", apptest.TinyMarket)
	began := 0
	for _, init := range []string{filepath.Join(first, "best.onnx"), filepath.Join(first, "artifacts") + "//tiny:best", first} {
		dir := filepath.Join(t.TempDir(), "run")
		apptest.Succeed(t, "train", "-q", config, "--out", dir, "--init", init, "--set", "env.data.split.train=[2000-01-03, 2000-03-31]", "--set", "env.data.split.valid=[2000-04-03, 2000-05-31]", "--set", "env.data.split.test=[2000-06-01, 2000-12-29]")
		e := evaluates(t, dir, "--no-report")
		if len(e.Seen) != 2 || !strings.Contains(e.Seen[0], "was trained on a part of these data, 2000-06-01 to 2000-10-") || !strings.Contains(e.Seen[1], "chosen by its results on") || !e.Verdict.InSample {
			t.Errorf("%s: %q", init, e.Seen)
		}
		began++
	}
	if began != 3 {
		t.Errorf("%d runs", began)
	}
}
