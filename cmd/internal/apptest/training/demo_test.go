package training

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/agents/assess"
	"github.com/onnxrl/onnxrl/agents/run"
	"github.com/onnxrl/onnxrl/cmd/internal/apptest"
	"github.com/onnxrl/onnxrl/runtime/longtest"
	"github.com/onnxrl/onnxrl/runtime/metrics"
)

// demoIn runs the demo in a directory.
func demoIn(t *testing.T, dir string, args ...string) (out, errs string) {
	t.Helper()
	cmd := apptest.Program(t, append([]string{"demo"}, args...)...)
	cmd.Dir = dir
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		t.Fatalf("demo: %v\n%s%s", err, stdout.String(), stderr.String())
	}
	return stdout.String(), stderr.String()
}

// TestDemo goes the whole way, from an empty directory, on the best engine there is.
func TestDemo(t *testing.T) {
	longtest.Slow(t)
	t.Parallel()
	demoInWords(t, t.TempDir(), apptest.Engines()[0])
}

// demoInWords runs the demo on an engine, for a moment.
func demoInWords(t *testing.T, dir, engine string) {
	t.Helper()
	text, _ := demoIn(t, dir, "--engine", engine, "--env-steps", "480", "-q")
	for _, want := range []string{
		"N = 5", "T = 3193", "never tradable in train: [FB]", "FB has 196 bars", "2012-09-07", "480 env steps", "equal-weight buy-and-hold", "MA10", "mean of 5 random", "no evidence of skill",
		"runs/demo-1/best.onnx", "parity", "golden values as published", "report.html", "onnxrl train demo --seeds",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the text does not say %q:\n%s", want, text)
		}
	}
	for _, file := range []string{"best.onnx", "config.yaml", "metrics.jsonl", "finished.json", "report/test/report.html", "report/test/equity.parquet", "artifacts/oci-layout"} {
		if _, err := os.Stat(filepath.Join(dir, "runs", "demo-1", file)); err != nil {
			t.Error(err)
		}
	}
}

// TestDemoAgain goes the whole way twice, on the pure-Go engine with words and on the best engine
// there is with JSON. The second demo has a directory of its own.
func TestDemoAgain(t *testing.T) {
	longtest.Nightly(t)
	t.Parallel()
	dir, engine := t.TempDir(), apptest.Engines()[0]
	demoInWords(t, dir, "portable")
	text, errs := demoIn(t, dir, "--engine", engine, "--env-steps", "480", "--json")
	if got, want := apptest.Keys(t, text), []string{"data", "dir", "engine", "env_steps", "evaluation", "model", "next", "train"}; !slices.Equal(got, want) {
		t.Errorf("keys %v", got)
	}
	var r demoReport
	if err := json.Unmarshal([]byte(text), &r); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	if r.Dir != filepath.Join("runs", "demo-2") || r.Engine != engine || r.EnvSteps != 480 || len(r.Train.Runs) != 1 || r.Data.N != 5 || len(r.Next) < 4 {
		t.Errorf("%+v", r)
	}
	if !slices.ContainsFunc(r.Evaluation.Rows, func(r assess.Row) bool { return r.Role == assess.RoleBaseline }) || r.Evaluation.Files == nil || r.Evaluation.Deflated.Trials != 1 {
		t.Errorf("%+v", r.Evaluation)
	}
	if r.Model.Golden == 0 || r.Model.Worst > 1e-4 || !strings.Contains(r.Model.Parity, "of 10560 rows") || r.Model.Bytes != int64(len(apptest.ReadText(t, filepath.Join(dir, r.Model.Path)))) {
		t.Errorf("%+v", r.Model)
	}
	if !strings.Contains(errs, "480/480 env steps") {
		t.Errorf("progress without a terminal: %q", errs)
	}
}

// TestDemoTrades trains for long enough to have a choice: the agent buys and sells, its mask leaves
// nothing impossible, what is exported is what was best in validation, and the picture is drawn for
// light and for dark backgrounds.
func TestDemoTrades(t *testing.T) {
	longtest.Nightly(t)
	t.Parallel()
	dir := t.TempDir()
	text, _ := demoIn(t, dir, "--engine", "portable", "--env-steps", "80000", "-q", "--json")
	var r demoReport
	if err := json.Unmarshal([]byte(text), &r); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	// A purchase may meet a closed market at its fill; there is none in these data.
	if o := r.Evaluation.Orders; o.Buys < 20 || o.Sells < 20 || o.Impossible != 0 {
		t.Errorf("%+v", o)
	}
	records, err := metrics.ReadJSONLines(filepath.Join(dir, r.Dir, run.MetricsFile))
	if err != nil {
		t.Fatal(err)
	}
	best, at, validated := math.Inf(-1), int64(0), 0
	for _, x := range records {
		if v, ok := x.Values["eval/sharpe"]; ok && x.Step > 0 { // before that it is not trained
			if validated++; v > best {
				best, at = v, x.Step
			}
		}
	}
	if m := r.Model; validated != 4 || m.EnvSteps != at || m.Metric != "sharpe" {
		t.Errorf("%d validations, the best after %d env steps, and exported is %+v", validated, at, m)
	}
	stored := apptest.Succeed(t, "models", "show", filepath.Join(dir, r.Dir, "artifacts")+"//demo:best")
	if !regexp.MustCompile(fmt.Sprintf(`(?m)^env steps +%d$`, at)).MatchString(stored) {
		t.Errorf("the artefact is not the policy after %d env steps:\n%s", at, stored)
	}
	picture := apptest.ReadText(t, filepath.Join(dir, r.Evaluation.Report, "plots", "equity.svg"))
	for _, want := range []string{"@media(prefers-color-scheme:dark)", ">A2C<", ">equal-weight buy-and-hold<", ">MA10<", ">5 × random<", ">cash<"} {
		if !strings.Contains(picture, want) {
			t.Errorf("the picture has no %s", want)
		}
	}
	if strings.Contains(picture, ">random 42<") {
		t.Error("the picture names every random policy")
	}
}

// TestDemoRefuses what it cannot do, before anything is written.
func TestDemoRefuses(t *testing.T) {
	t.Parallel()
	apptest.Refuse(t, []string{"demo", "--env-steps", "-1"}, "--env-steps -1")
	apptest.Refuse(t, []string{"demo", "elsewhere"}, "unknown command")
	dir := filepath.Join(t.TempDir(), "run")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, run.ConfigFile), []byte("seed: 1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	apptest.Refuse(t, []string{"demo", "--out", dir, "-q", "--json"}, "holds a run already", "--resume")
}
