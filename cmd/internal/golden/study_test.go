package golden

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/agents/run"
	"github.com/onnxrl/onnxrl/agents/study"
	"github.com/onnxrl/onnxrl/agents/tune"
	"github.com/onnxrl/onnxrl/cmd/internal/apptest"
	"github.com/onnxrl/onnxrl/runtime/longtest"
)

// Searches, ablations and trainings without an environment that an older program was stopped in.
const (
	goldenTune   = "testdata/resumed/tune"
	goldenAblate = "testdata/resumed/ablate"
	goldenFit    = "testdata/resumed/fit"
)

var ablationTables = []string{"ablation.csv", "summary.csv", "factors.csv", "summary.md"}

// TestGoldenTune goes on with a search that an older program was stopped in, and begins it again:
// both try what it tried, to the digit.
func TestGoldenTune(t *testing.T) {
	t.Parallel()
	goldenOnly(t)
	config := filepath.Join(goldenTune, "search.yaml")
	if *goldenFrom != "" {
		recordGoldenTune(t, config)
	}
	want := apptest.Decode[tune.Summary](t, apptest.ReadText(t, filepath.Join(goldenTune, "want.json")))
	if len(want.Trials) != 12 {
		t.Fatalf("%d trials to compare with", len(want.Trials))
	}
	stopped := filepath.Join(t.TempDir(), "search")
	if err := os.CopyFS(stopped, os.DirFS(filepath.Join(goldenTune, "stopped"))); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(apptest.ReadText(t, filepath.Join(stopped, tune.LogFile)), `"state":"complete"`); n == 0 || n >= 10 {
		t.Fatalf("%d trials were complete when the search was stopped", n)
	}
	resumed := apptest.Tunes(t, "--resume", stopped, "--engine", "portable")
	apptest.SameTrials(t, "resumed", resumed.Trials, want.Trials)
	begun := apptest.Tunes(t, config, "--engine", "portable", "--out", filepath.Join(t.TempDir(), "begun"))
	apptest.SameTrials(t, "begun again", begun.Trials, want.Trials)
	for _, sum := range []tune.Summary{resumed, begun} {
		apptest.SameSettings(t, sum.BestConfig, apptest.Settled(t, sum.BestConfig), openDocument(t, filepath.Join(goldenTune, tune.BestFile)))
	}
}

func recordGoldenTune(t *testing.T, config string) {
	t.Helper()
	args := []string{"tune", config, "--engine", "portable", "-q", "--json", "--out"}
	whole, stopped := filepath.Join(t.TempDir(), "search"), filepath.Join(t.TempDir(), "search")
	write(t, filepath.Join(goldenTune, "want.json"), bytes.ReplaceAll(older(t, append(args, whole)...), []byte(filepath.Dir(whole)), []byte("runs")))
	apptest.Copy(t, filepath.Join(whole, tune.BestFile), filepath.Join(goldenTune, tune.BestFile))
	stopOlder(t, "", func() bool {
		log, err := os.ReadFile(filepath.Join(stopped, tune.LogFile))
		return err == nil && strings.Count(string(log), `"state":"complete"`) >= 4
	}, append(args, stopped)...)
	keepGolden(t, stopped, filepath.Join(goldenTune, "stopped"), run.ConfigFile, run.LineageFile, tune.LogFile)
}

// TestGoldenAblate goes on with a study that an older program was stopped in, in the middle of a
// run, and begins it again: both make its tables, byte for byte.
func TestGoldenAblate(t *testing.T) {
	longtest.Slow(t)
	t.Parallel()
	goldenOnly(t)
	if *goldenFrom != "" {
		recordGoldenAblate(t)
	}
	stopped := filepath.Join(t.TempDir(), "stopped")
	if err := os.CopyFS(stopped, os.DirFS(filepath.Join(goldenAblate, "stopped"))); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{stopped, filepath.Join(t.TempDir(), "begun")} {
		out := apptest.Succeed(t, goldenAblation(dir)...)
		if left := "6 runs of 3 cells to train"; strings.Contains(out, left) == (dir == stopped) {
			t.Errorf("%s:\n%s", dir, out)
		}
		for _, name := range ablationTables {
			if got, want := apptest.ReadText(t, filepath.Join(dir, name)), apptest.ReadText(t, filepath.Join(goldenAblate, name)); got != want {
				t.Errorf("%s of %s:\n%s\nexpected\n%s", name, dir, got, want)
			}
		}
	}
}

func goldenAblation(dir string) []string {
	return []string{"ablate", filepath.Join(goldenAblate, "study.yaml"), "--engine", "portable", "-q", "--calibrate", "0", "--parallel", "1", "--out", dir}
}

func recordGoldenAblate(t *testing.T) {
	t.Helper()
	whole, stopped := filepath.Join(t.TempDir(), "study"), filepath.Join(t.TempDir(), "study")
	older(t, goldenAblation(whole)...)
	keepGolden(t, whole, goldenAblate, ablationTables...)
	stopOlder(t, "", func() bool {
		_, err := os.Stat(filepath.Join(stopped, "base", "seed-2", "checkpoints", "ckpt-000000300"))
		return err == nil
	}, goldenAblation(stopped)...)
	if _, err := os.Stat(filepath.Join(stopped, "base", "seed-2", run.FinishedFile)); err == nil {
		t.Fatal("the run was not stopped in the middle: record it again")
	}
	kept := filepath.Join(goldenAblate, "stopped")
	keepGolden(t, stopped, kept, run.StudyFile, study.OutcomesFile)
	for _, seed := range []string{"seed-1", "seed-2"} {
		of := filepath.Join("base", seed)
		names := []string{run.ConfigFile, run.LineageFile, "sources.json", run.MetricsFile}
		if seed == "seed-1" {
			names = append(names, run.FinishedFile)
		} else {
			newest, err := filepath.Glob(filepath.Join(stopped, of, "checkpoints", "ckpt-*"))
			if err != nil || len(newest) == 0 {
				t.Fatalf("no checkpoint: %v", err)
			}
			names = append(names, filepath.Join("checkpoints", filepath.Base(newest[len(newest)-1])))
		}
		keepGolden(t, filepath.Join(stopped, of), filepath.Join(kept, of), names...)
	}
	summary := filepath.Join(kept, "base", "seed-1", run.FinishedFile)
	write(t, summary, []byte(strings.ReplaceAll(apptest.ReadText(t, summary), filepath.Dir(stopped), "runs")))
}

// TestGoldenFit goes on with a fit from a checkpoint that an older program wrote, and begins it
// again: both have its weights, losses and moments, bit for bit.
func TestGoldenFit(t *testing.T) {
	t.Parallel()
	goldenOnly(t)
	if *goldenFrom != "" {
		recordGoldenFit(t)
	}
	var want apptest.RunResult
	apptest.ReadJSON(t, filepath.Join(goldenFit, "want.json"), &want)
	if len(want.Arrays) < 8 || len(want.Metrics) < 20 || len(want.Summary) < 10 {
		t.Fatalf("too little to compare with: %d arrays, %d lines of metrics, a summary of %d values", len(want.Arrays), len(want.Metrics), len(want.Summary))
	}
	resumed, begun := filepath.Join(t.TempDir(), "fit"), filepath.Join(t.TempDir(), "fit")
	if err := os.CopyFS(resumed, os.DirFS(filepath.Join(goldenFit, "run"))); err != nil {
		t.Fatal(err)
	}
	// The older program wrote where the model and the table were.
	there, err := filepath.Abs(goldenFit)
	if err != nil {
		t.Fatal(err)
	}
	document := filepath.Join(resumed, run.ConfigFile)
	write(t, document, []byte(strings.ReplaceAll(apptest.ReadText(t, document), goldenFit, filepath.ToSlash(there))))
	apptest.SameResult(t, "resumed", fitResult(t, resumed, apptest.Succeed(t, "fit", "--resume", resumed, "--engine", "portable", "-q", "--json")), want)
	apptest.SameResult(t, "begun again", fitResult(t, begun, apptest.Succeed(t, "fit", filepath.Join(goldenFit, "run", run.ConfigFile), "--dir", begun, "--engine", "portable", "-q", "--json")), want)
}

// fitResult is what a fit came to, with the summary that it printed.
func fitResult(t *testing.T, dir, printed string) apptest.RunResult {
	t.Helper()
	g := apptest.ArraysOf(t, dir)
	if err := json.Unmarshal([]byte(printed), &g.Summary); err != nil {
		t.Fatal(err)
	}
	delete(g.Summary, "rows_per_second")
	g.Summary = apptest.WithoutTimes(g.Summary)
	return g
}

func recordGoldenFit(t *testing.T) {
	t.Helper()
	model, rows := filepath.Join(goldenFit, "model.onnx"), filepath.Join(goldenFit, "table.csv")
	apptest.Copy(t, apptest.MLPModel(t), model)
	apptest.Copy(t, apptest.CSVFile(t, apptest.Table(120)), rows)
	dir := filepath.Join(t.TempDir(), "fit")
	printed := older(t, append(apptest.FitArgs(model, rows, "--epochs", "4", "--batch", "16", "--validation", "0.2"), "--optimizer", "adamw", "--weight-decay", "0.01", "--clip-norm", "1", "--shards", "2",
		"--set", "checkpoint={every: 8, keep: 99}", "--set", "schedule={kind: cosine, warmup: 5}", "--set", "lora={rank: 2, target: [fc1.weight]}", "--set", "train=[fc2.*]", "--engine", "portable", "--json", "--dir", dir)...)
	text, err := json.MarshalIndent(fitResult(t, dir, string(printed)), "", " ")
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(goldenFit, "want.json"), append(text, '\n'))
	keepGolden(t, dir, filepath.Join(goldenFit, "run"), run.ConfigFile, "sources.json", run.MetricsFile, filepath.Join("checkpoints", "ckpt-000000008"))
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	document := filepath.Join(goldenFit, "run", run.ConfigFile)
	write(t, document, []byte(strings.ReplaceAll(apptest.ReadText(t, document), here+"/", "")))
}
