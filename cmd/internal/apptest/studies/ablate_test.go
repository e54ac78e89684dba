package studies

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/agents/ablate"
	"github.com/onnxrl/onnxrl/agents/run"
	"github.com/onnxrl/onnxrl/cmd/internal/apptest"
	"github.com/onnxrl/onnxrl/configs"
	"github.com/onnxrl/onnxrl/runtime/longtest"
	"github.com/onnxrl/onnxrl/runtime/portable"
	"github.com/onnxrl/onnxrl/runtime/sorted"
)

// ablateArgs is a command line on the engine that every build has.
func ablateArgs(study, out string, more ...string) []string {
	return append([]string{"ablate", study, "--engine", portable.Name, "--quiet", "--set", "agent.ent_coef=0.01", "--out", out}, more...)
}

func TestAblate(t *testing.T) {
	longtest.Slow(t)
	t.Parallel()
	study := apptest.AblationFiles(t, apptest.AblationStudy, apptest.AblationBase)
	out := filepath.Join(t.TempDir(), "out")
	screen := apptest.Succeed(t, ablateArgs(study, out, "--calibrate", "20ms")...)
	for _, s := range []string{"6 runs of 3 cells to train", "about", "Δ to base", "buy-and-hold", "Judged on the validation range, 2001-01-", "test range was not touched"} {
		if !strings.Contains(screen, s) {
			t.Errorf("the output does not say %q:\n%s", s, screen)
		}
	}
	if n := strings.Count(apptest.ReadText(t, out, "outcomes.jsonl"), "\n"); n != 6 {
		t.Errorf("%d outcomes of 6 runs", n)
	}
	runs := apptest.ReadText(t, out, "ablation.csv")
	if n := strings.Count(runs, "\n"); n != 7 || !strings.HasPrefix(runs, "cell,window,entropy,seed,env_steps,from,to,bars,sharpe,total_return,turnover\nbase,4,0.01,1,400,2001-01-") || strings.Contains(runs, "NaN") {
		t.Errorf("%d lines:\n%s", n, runs)
	}
	// Every run is one that onnxrl train would have made, with the documents it came from.
	for _, dir := range []string{"base", "window=8", "entropy=0"} {
		for _, seed := range []string{"seed-1", "seed-2"} {
			for _, f := range []string{run.ConfigFile, run.FinishedFile, run.MetricsFile} {
				if _, err := os.Stat(filepath.Join(out, dir, seed, f)); err != nil {
					t.Error(err)
				}
			}
		}
	}

	// A second time there is nothing to train, and the tables are made again.
	if err := os.Remove(filepath.Join(out, "ablation.csv")); err != nil {
		t.Fatal(err)
	}
	again := apptest.Succeed(t, ablateArgs(study, out)...)
	if apptest.ReadText(t, out, "ablation.csv") != runs || !strings.Contains(again, "0 runs of 3 cells to train") {
		t.Errorf("a second time:\n%s", again)
	}

	// One at a time gives the same tables, in any number of processes.
	other := filepath.Join(t.TempDir(), "other")
	apptest.Succeed(t, ablateArgs(study, other, "--calibrate", "0", "--parallel", "1", "--seeds", "1")...)
	doc := apptest.Succeed(t, ablateArgs(study, other, "--calibrate", "0", "--parallel", "3", "--json")...)
	for _, f := range []string{"ablation.csv", "summary.csv", "factors.csv", "summary.md"} {
		if apptest.ReadText(t, out, f) != apptest.ReadText(t, other, f) {
			t.Errorf("%s differs from that of another run of the study", f)
		}
	}
	if got, want := apptest.Keys(t, doc), []string{"dir", "files", "runs", "summary"}; !slices.Equal(got, want) {
		t.Errorf("JSON keys %q, expected %q", got, want)
	}
	r := apptest.Decode[ablate.Report](t, doc)
	if !r.Summary.Complete || len(r.Runs) != 6 || len(r.Files) != 4+3*3+1 {
		t.Errorf("%+v", r)
	}
	for _, f := range r.Files {
		if _, err := os.Stat(filepath.Join(other, f)); err != nil {
			t.Error(err)
		}
	}

	changed := apptest.Run(t, ablateArgs(study, out, "--set", "train.total_env_steps=500", "--calibrate", "0")...)
	if changed.Code != 1 || !strings.Contains(changed.Err, "the experiment of window=8 has changed: train.total_env_steps: 400 -> 500") {
		t.Errorf("exit status %d\n%s", changed.Code, changed.Err)
	}
}

func TestAblateDryRun(t *testing.T) {
	t.Parallel()
	study := apptest.AblationFiles(t, apptest.AblationStudy, apptest.AblationBase)
	out := filepath.Join(t.TempDir(), "out")
	doc := apptest.Succeed(t, ablateArgs(study, out, "--dry-run", "--json", "--full", "--calibrate", "1ms")...)
	r := apptest.Decode[ablate.Report](t, doc)
	if len(r.Runs) != 8 || r.Estimate == nil || r.Estimate.Remaining != 8 || len(r.Estimate.Costs) != 4 || r.Estimate.Seconds <= 0 {
		t.Errorf("%s", doc)
	}
	for _, run := range r.Runs {
		if run.State != "waiting" {
			t.Errorf("%+v", run)
		}
	}
	if _, err := os.Stat(out); err == nil {
		t.Error("a dry run made the folder")
	}
	screen := apptest.Succeed(t, ablateArgs(study, out, "--dry-run", "--calibrate", "0")...)
	if !strings.Contains(screen, "agent.ent_coef=0 ") || !strings.Contains(screen, "the time was not estimated") {
		t.Error(screen)
	}
}

// TestAblateAFailingCell: a network that cannot be made is reported before anything is trained;
// without the measurement, when its turn comes, and the other cells are trained.
func TestAblateAFailingCell(t *testing.T) {
	longtest.Slow(t)
	t.Parallel()
	study := apptest.AblationFiles(t, strings.Replace(apptest.AblationStudy, "  entropy:", "  encoder:\n    none: {agent.encoder: {kind: file, path: missing.onnx}}\n  entropy:", 1), apptest.AblationBase)
	out := filepath.Join(t.TempDir(), "out")
	for _, budget := range []string{"1ms", "0"} {
		r := apptest.Run(t, ablateArgs(study, out, "--seeds", "1", "--calibrate", budget)...)
		if r.Code != 1 || !strings.Contains(r.Err, "encoder=none: ") || !strings.Contains(r.Err, "missing.onnx") {
			t.Errorf("exit status %d\n%s", r.Code, r.Err)
		}
		if _, err := os.Stat(out); err == nil {
			t.Error("something was trained")
		}
	}
	// An error that only shows while a run trains does not stop the others.
	study = apptest.AblationFiles(t, strings.Replace(apptest.AblationStudy, "  entropy:", "  rate:\n    wild: {agent.learning_rate: 1.0e+38}\n  entropy:", 1), apptest.AblationBase)
	r := apptest.Run(t, ablateArgs(study, out, "--seeds", "1", "--calibrate", "0", "--json")...)
	if r.Code != 1 || !strings.Contains(r.Err, "1 run failed") || !strings.Contains(r.Err, "rate=wild, seed 1: ") {
		t.Errorf("exit status %d\n%s", r.Code, r.Err)
	}
	rep := apptest.Decode[ablate.Report](t, r.Out)
	if rep.Summary.Complete || rep.Summary.Done != 3 || rep.Summary.Rows[2].Failed != 1 {
		t.Errorf("%+v", rep.Summary)
	}
	if n := strings.Count(apptest.ReadText(t, out, "ablation.csv"), "\n"); n != 4 {
		t.Errorf("%d lines", n)
	}
}

func TestBadAblations(t *testing.T) {
	t.Parallel()
	study := apptest.AblationFiles(t, apptest.AblationStudy, apptest.AblationBase)
	out := t.TempDir()
	cases := []struct {
		args []string
		says []string
	}{
		{[]string{"ablate", "no_such_study"}, []string{"no_such_study"}},
		{[]string{"ablate", "qtmrl", "--out", out}, []string{"is an experiment and not a study"}},
		{ablateArgs(study, out, "--parallel", "-1"), []string{"must not be negative"}},
		{ablateArgs(study, out, "--seeds", "1,x"), []string{"--seeds"}},
		{ablateArgs(study, out, "--set", "env.data.synthetic.bars=0", "--calibrate", "0"), []string{"base: ", "bars"}},
	}
	for _, c := range cases {
		r := apptest.Run(t, c.args...)
		if r.Code != 1 || !strings.HasPrefix(r.Err, "onnxrl: ablate: ") {
			t.Errorf("%q: exit status %d\n%s", c.args, r.Code, r.Err)
		}
		for _, s := range c.says {
			if !strings.Contains(r.Err, s) {
				t.Errorf("%q: the error does not say %q:\n%s", c.args, s, r.Err)
			}
		}
	}
	// Problems of levels stand at the study's lines, all of them.
	bad := strings.NewReplacer(`"8": {env.window: 8}`, `"8": {env.windw: 8}`, `"0": {agent.ent_coef: 0}`, `"0": {agent.ent_coef: none}`).Replace(apptest.AblationStudy)
	r := apptest.Run(t, ablateArgs(apptest.AblationFiles(t, bad, apptest.AblationBase), out)...)
	if r.Code != 1 || !strings.Contains(r.Err, "study.yaml:7:") || !strings.Contains(r.Err, "study.yaml:10:") {
		t.Errorf("exit status %d\n%s", r.Code, r.Err)
	}
	if entries, err := os.ReadDir(out); err != nil || len(entries) != 0 {
		t.Errorf("something was written: %v %v", entries, err)
	}
}

// TestShippedStudy decodes every cell of the shipped study, on made-up data of its assets.
func TestShippedStudy(t *testing.T) {
	longtest.Slow(t)
	t.Parallel()
	sets := []string{"--set", "env.data.assets=[]", "--set", "env.data.source={}", "--set", "env.data.synthetic={kind: noise, seed: 1, bars: 5700}"}
	for _, c := range []struct {
		full  []string
		cells int
	}{{nil, 8}, {[]string{"--full"}, 96}} {
		doc := apptest.Succeed(t, append(append([]string{"ablate", "qtmrl_ablation", "--engine", portable.Name, "--dry-run", "--json", "--quiet", "--calibrate", "0", "--out", filepath.Join(t.TempDir(), "out")}, sets...), c.full...)...)
		r := apptest.Decode[ablate.Report](t, doc)
		if len(r.Summary.Rows) != c.cells || len(r.Runs) != 3*c.cells || len(r.Summary.Factors) != 6 {
			t.Errorf("%d cells, %d runs, factors %q", len(r.Summary.Rows), len(r.Runs), r.Summary.Factors)
		}
		for _, e := range r.Summary.Effects {
			if e.Level == ablate.Base {
				t.Errorf("factor %s: none of its levels is the base's", e.Factor)
			}
		}
	}
}

// TestAblatePlanCanBeRead: the record of a study holds every cell as a document that trains it
// alone.
func TestAblatePlanCanBeRead(t *testing.T) {
	longtest.Slow(t)
	t.Parallel()
	study := apptest.AblationFiles(t, apptest.AblationStudy, apptest.AblationBase)
	out := filepath.Join(t.TempDir(), "out")
	apptest.Succeed(t, ablateArgs(study, out, "--calibrate", "0", "--seeds", "3")...)
	doc, err := configs.Open(filepath.Join(out, "plan.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	cell, ok := doc.Lookup("cells[1].run")
	if !ok {
		t.Fatal("plan.yaml has no second cell")
	}
	text, err := configs.Marshal(cell)
	if err != nil {
		t.Fatal(err)
	}
	alone := filepath.Join(t.TempDir(), "cell.yaml")
	if err := os.WriteFile(alone, bytes.Replace(text, []byte("seed: 0"), []byte("seed: 3"), 1), 0o600); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "run")
	apptest.Succeed(t, "train", alone, "--engine", portable.Name, "--quiet", "--out", dir)
	var a, b map[string]any
	for dir, into := range sorted.All(map[string]*map[string]any{dir: &a, filepath.Join(out, "window=8", "seed-3"): &b}) {
		if err := json.Unmarshal([]byte(apptest.ReadText(t, dir, run.FinishedFile)), into); err != nil {
			t.Fatal(err)
		}
	}
	if loss := a["train"].(map[string]any)["train/loss"]; loss == nil || loss != b["train"].(map[string]any)["train/loss"] {
		t.Errorf("trained alone, the last loss is %v; in the study %v", loss, b["train"])
	}
}
