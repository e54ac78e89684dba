package training

import (
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/agents/run"
	"github.com/onnxrl/onnxrl/cmd/internal/apptest"
	"github.com/onnxrl/onnxrl/export/report/performance"
	"github.com/onnxrl/onnxrl/runtime/longtest"
	"github.com/onnxrl/onnxrl/runtime/sorted"
)

// evaluated is what --json prints, with metrics as a map: null is absent.
type evaluated struct {
	Verdict struct {
		Line      string `json:"line"`
		LookAhead bool   `json:"look_ahead"`
		InSample  bool   `json:"in_sample"`
	} `json:"verdict"`
	Periods   float64               `json:"periods_per_year"`
	LookAhead bool                  `json:"look_ahead"`
	Notes     []string              `json:"notes"`
	Split     string                `json:"split"`
	Policies  []run.EvaluatedPolicy `json:"policies"`
	Rows      []struct {
		Name    string              `json:"name"`
		Role    string              `json:"role"`
		Of      int                 `json:"of"`
		Metrics map[string]*float64 `json:"metrics"`
		Std     map[string]*float64 `json:"std"`
	} `json:"rows"`
	Deflated struct {
		Trials   int      `json:"trials"`
		Variance *float64 `json:"variance"`
	} `json:"deflated_sharpe"`
	Counted string   `json:"trials_counted"`
	Seen    []string `json:"seen"`
	Knows   []string `json:"look_ahead_reasons"`
	Report  string   `json:"report"`
	Files   struct {
		Page   string   `json:"page"`
		Tables []string `json:"tables"`
		Plots  []string `json:"plots"`
	} `json:"files"`
}

func evaluates(t *testing.T, args ...string) evaluated {
	t.Helper()
	var e evaluated
	if err := json.Unmarshal([]byte(apptest.Succeed(t, append([]string{"evaluate", "--json"}, args...)...)), &e); err != nil {
		t.Fatal(err)
	}
	return e
}

// cells reads a CSV file and returns a column's cells by strategy.
func cells(t *testing.T, path, column string) map[string][]string {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	rows, err := csv.NewReader(f).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	name, at := slices.Index(rows[0], "strategy"), slices.Index(rows[0], column)
	if name < 0 || at < 0 {
		t.Fatalf("%s has the columns %q", path, rows[0])
	}
	out := map[string][]string{}
	for _, r := range rows[1:] {
		out[r[name]] = append(out[r[name]], r[at])
	}
	return out
}

// lineOf is the line of a table that begins with a name.
func lineOf(text, name string) string {
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, name+"  ") {
			return line
		}
	}
	return ""
}

// TestEvaluateUnwritable: a run directory whose report cannot be written is evaluated all the same,
// and says so; a folder that was asked for is refused before the work. Nothing is left behind.
func TestEvaluateUnwritable(t *testing.T) {
	longtest.Nightly(t)
	t.Parallel()
	dir := apptest.Trained(t, apptest.TinyMarket)
	blocked := filepath.Join(dir, "report")
	if err := os.WriteFile(blocked, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	text := apptest.Succeed(t, "evaluate", dir)
	if !strings.HasPrefix(text, "A2C ") || !strings.HasSuffix(text, "no report is written: "+blocked+" is no folder; --out FOLDER writes it elsewhere\n") {
		t.Errorf("it says\n%s", text)
	}
	var e struct{ Report, Unwritten string }
	if err := json.Unmarshal([]byte(apptest.Succeed(t, "evaluate", dir, "--json")), &e); err != nil || e.Report != "" || !strings.Contains(e.Unwritten, blocked) {
		t.Errorf("%+v, %v", e, err)
	}
	apptest.Refuse(t, []string{"evaluate", dir, "--out", filepath.Join(blocked, "here")}, "--out", blocked+" is no folder")
	elsewhere := filepath.Join(t.TempDir(), "some", "where")
	if text := apptest.Succeed(t, "evaluate", dir, "--out", elsewhere); strings.Contains(text, "no report") || !apptest.IsFile(filepath.Join(elsewhere, "report.html")) {
		t.Errorf("it says\n%s", text)
	}
	if left, err := filepath.Glob(filepath.Join(dir, ".onnxrl-*")); err != nil || len(left) != 0 {
		t.Errorf("%q, %v", left, err)
	}
}

// TestEvaluateRun trains, evaluates, and computes the numbers of the table again from the equity
// curve.
func TestEvaluateRun(t *testing.T) {
	longtest.Slow(t)
	t.Parallel()
	dir := apptest.Trained(t, apptest.TinyMarket)
	text := apptest.Succeed(t, "evaluate", dir)
	// The verdict and the line about the trials print one probability.
	if p := regexp.MustCompile(`deflated Sharpe probability is ([0-9.]+%)`).FindStringSubmatch(text); p == nil || !strings.Contains(text, "\nDeflated Sharpe probability "+p[1]+" after ") {
		t.Errorf("the probabilities %q differ in\n%s", p, text)
	}
	first, _, _ := strings.Cut(text, "\n")
	if !strings.HasPrefix(first, "A2C ") || !strings.Contains(first, "equal-weight buy-and-hold on test") {
		t.Errorf("the first line is %q", first)
	}
	folder := filepath.Join(dir, "report", "test")
	kept, err := os.ReadFile(filepath.Join(folder, "metrics.json"))
	if err != nil {
		t.Fatal(err)
	}
	printed := apptest.Succeed(t, "evaluate", dir, "--json")
	if printed != string(kept) {
		t.Error("metrics.json is not what --json prints")
	}
	if got, want := apptest.Keys(t, printed), []string{"bootstrap", "bootstrap_level", "deflated_sharpe", "files", "first", "last", "look_ahead", "look_ahead_reasons", "notes", "orders", "periods_per_year", "periods_per_year_from", "policies", "report", "rows", "seen", "split", "trials_counted", "verdict", "warnings"}; !slices.Equal(got, want) {
		t.Errorf("the keys are %q", got)
	}
	var e evaluated
	if err := json.Unmarshal(kept, &e); err != nil {
		t.Fatal(err)
	}
	if e.Periods != 261 || !strings.Contains(text, "261 returns a year (261 trading days a year, by the timestamps)") {
		t.Errorf("%g returns a year in\n%s", e.Periods, text)
	}
	if e.Verdict.Line != first || e.Report != folder || e.Deflated.Trials != 1 || len(e.Policies) != 1 {
		t.Errorf("%+v", e)
	}
	for _, f := range append(append(e.Files.Tables, e.Files.Plots...), e.Files.Page) {
		if s, err := os.Stat(f); err != nil || s.Size() == 0 {
			t.Errorf("%s: %v", f, err)
		}
	}
	if page, err := os.ReadFile(e.Files.Page); err != nil || !strings.Contains(string(page), "<svg") || len(e.Files.Tables) != 6 || len(e.Files.Plots) < 20 {
		t.Errorf("%v, %d tables, %d plots", err, len(e.Files.Tables), len(e.Files.Plots))
	}

	compared := 0
	for name, column := range sorted.All(cells(t, filepath.Join(folder, "equity.csv"), "value")) {
		value := make([]float64, len(column))
		for i, c := range column {
			if value[i], err = strconv.ParseFloat(c, 64); err != nil {
				t.Fatal(err)
			}
		}
		r := performance.Returns(value)
		root := math.Sqrt(261) // the synthetic market knows no holidays
		want := map[string]float64{
			"total_return": value[len(value)-1]/value[0] - 1, "volatility": performance.Volatility(r) * root, "sharpe": performance.Sharpe(r) * root, "max_drawdown": performance.MaxDrawdown(value),
		}
		for _, row := range e.Rows {
			if row.Name != name {
				continue
			}
			for k, w := range sorted.All(want) {
				got := row.Metrics[k]
				if (got == nil) != math.IsNaN(w) || got != nil && math.Abs(*got-w) > 1e-12 {
					t.Errorf("%s of %s is %v, the equity curve says %g", k, name, got, w)
				}
				// Of the random policies the table has the mean.
				if w == w && k != "sharpe" && !strings.HasPrefix(name, "random ") && !slices.Contains(strings.Fields(lineOf(text, name)), fmt.Sprintf("%.1f", w*100)) {
					t.Errorf("the line %q does not show %.1f, the %s of %s", lineOf(text, name), w*100, k, name)
				}
				compared++
			}
		}
	}
	if compared != 11*4 {
		t.Errorf("%d numbers were compared", compared)
	}
}

// TestEvaluateModelEqualsRun compares the trades of a run's published model, of the model alone, of
// its artefact, and of the best policy in the checkpoint.
func TestEvaluateModelEqualsRun(t *testing.T) {
	longtest.Slow(t)
	t.Parallel()
	dir := apptest.Trained(t, apptest.TinyMarket)
	model := filepath.Join(t.TempDir(), "moved.onnx")
	text, err := os.ReadFile(filepath.Join(dir, "best.onnx"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(model, text, 0o644); err != nil {
		t.Fatal(err)
	}
	own := evaluates(t, dir, "--no-report")
	if own.Policies[0].From != filepath.Join(dir, "best.onnx") || len(own.Policies[0].SHA256) != 64 || own.Report != "" {
		t.Errorf("the run's policy is %+v, its report %q", own.Policies[0], own.Report)
	}
	// Equal orders give equal numbers to the last bit, and others hardly ever do.
	same := func(e evaluated) {
		t.Helper()
		compared := 0
		for i, r := range own.Rows {
			for k, v := range sorted.All(r.Metrics) {
				w := e.Rows[i].Metrics[k]
				if (v == nil) != (w == nil) || v != nil && *v != *w {
					t.Errorf("%s: %s of %s is %v, in the run %v", e.Policies[0].From, k, r.Name, w, v)
				}
				compared++
			}
		}
		if compared < 1000 || *e.Rows[0].Metrics["turnover"] == 0 {
			t.Errorf("%d numbers were compared", compared)
		}
	}
	for _, c := range []struct {
		from string
		args []string
	}{
		{"the model's own record", []string{model, "--config", filepath.Join(dir, "config.yaml")}},
		{run.MetricsFile, []string{filepath.Join(dir, "best.onnx")}},
		{"the model's own record", []string{filepath.Join(dir, "artifacts") + "//tiny:best"}},
	} {
		e := evaluates(t, append(c.args, "--no-report")...)
		same(e)
		if e.Deflated.Trials != 1 || e.Policies[0].Name != "A2C tiny seed 7" || !strings.Contains(e.Counted, "2 validations") || !strings.Contains(e.Counted, c.from) || !strings.HasPrefix(e.Verdict.Line, "A2C tiny seed 7 ") {
			t.Errorf("%q: %d trials, %s %s", c.args, e.Deflated.Trials, e.Counted, e.Verdict.Line)
		}
	}
	// Without the published model, the checkpoint has the same policy.
	if err := os.Remove(filepath.Join(dir, "best.onnx")); err != nil {
		t.Fatal(err)
	}
	e := evaluates(t, dir, "--no-report")
	if same(e); !strings.Contains(e.Policies[0].From, "ckpt-") {
		t.Errorf("the policy is from %s", e.Policies[0].From)
	}
	// And the validation that chose the policy comes out again.
	var finished run.RunSummary
	if err := run.ReadJSON(filepath.Join(dir, run.FinishedFile), &finished); err != nil {
		t.Fatal(err)
	}
	e = evaluates(t, dir, "--split", "valid", "--no-report")
	if e.Deflated.Trials != 2 || !e.Verdict.InSample || !strings.HasPrefix(e.Verdict.Line, "These are not results on new data: The agent was chosen by its results on these data.") {
		t.Errorf("%d trials, %s", e.Deflated.Trials, e.Verdict.Line)
	}
	if got, want := *e.Rows[0].Metrics["sharpe"], finished.Validation["sharpe"]; got != want {
		t.Errorf("the Sharpe ratio on the validation split is %g, and was %g in training", got, want)
	}
}

func TestEvaluateSeeds(t *testing.T) {
	longtest.Slow(t)
	t.Parallel()
	dir := apptest.Trained(t, apptest.TinyMarket, "--seeds", "1,2,3")
	e := evaluates(t, dir, "--no-report")
	best, seeds := "", map[string]float64{}
	for _, seed := range []string{"1", "2", "3"} {
		var s run.RunSummary
		if err := run.ReadJSON(filepath.Join(dir, "seed-"+seed, run.FinishedFile), &s); err != nil {
			t.Fatal(err)
		}
		if seeds["A2C seed "+seed] = s.Validation["sharpe"]; best == "" || s.Validation["sharpe"] > seeds[best] {
			best = "A2C seed " + seed
		}
	}
	if e.Rows[0].Name != best || e.Rows[0].Role != "agent" || e.Rows[1].Role != "seed" || e.Rows[2].Role != "seed" || e.Rows[3].Name != "mean of 3 seeds" || e.Rows[3].Of != 3 {
		t.Fatalf("the best on the validation split is %s of %v; the rows begin with %+v", best, seeds, e.Rows[:4])
	}
	if !slices.Equal(slices.Sorted(maps.Keys(seeds)), slices.Sorted(slices.Values([]string{e.Rows[0].Name, e.Rows[1].Name, e.Rows[2].Name}))) {
		t.Errorf("the seeds are %v", seeds)
	}
	sum := 0.0
	for _, r := range e.Rows[:3] {
		sum += *r.Metrics["total_return"]
	}
	if math.Abs(*e.Rows[3].Metrics["total_return"]-sum/3) > 1e-12 || *e.Rows[3].Std["total_return"] <= 0 || e.Deflated.Trials != 3 || *e.Deflated.Variance <= 0 {
		t.Errorf("%+v, %+v", e.Rows[3], e.Deflated)
	}
	// A seed that is not there, or not finished, is named.
	if err := errors.Join(os.RemoveAll(filepath.Join(dir, "seed-1")), os.Remove(filepath.Join(dir, "seed-3", run.FinishedFile))); err != nil {
		t.Fatal(err)
	}
	less := evaluates(t, dir, "--no-report")
	if text := strings.Join(less.Notes, "\n"); less.Rows[2].Of != 2 || less.Deflated.Trials != 3 || !strings.Contains(text, "Seed 1 has no run") || !strings.Contains(text, "seed-3 was not finished") || strings.Contains(text, "other inputs") {
		t.Errorf("%d trials, %s", less.Deflated.Trials, text)
	}
	// One seed is a run like any other, and one of three; so is its file, wherever it lies.
	file := filepath.Join(t.TempDir(), "some.onnx")
	if err := os.WriteFile(file, apptest.ReadBytes(t, filepath.Join(dir, "seed-2", "best.onnx")), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{filepath.Join(dir, "seed-2")}, {filepath.Join(dir, "seed-2", "best.onnx")}, {file, "--config", filepath.Join(dir, "seed-2", "config.yaml")}, {filepath.Join(dir, "seed-2", "artifacts") + "//tiny:best"}} {
		if one := evaluates(t, append(args, "--no-report")...); one.Deflated.Trials != 3 {
			t.Errorf("%s: %d trials of one seed, %s", args[0], one.Deflated.Trials, one.Counted)
		}
	}
}

func TestEvaluateSettings(t *testing.T) {
	longtest.Slow(t)
	t.Parallel()
	dir := apptest.Trained(t, apptest.TinyMarket)
	ahead := apptest.Succeed(t, "evaluate", dir, "--no-report", "--set", "env.execution.fill=same_close")
	if !strings.Contains(ahead, "LOOK-AHEAD") || !strings.Contains(strings.SplitN(ahead, "\n", 2)[0], "same_close") {
		t.Errorf("a look-ahead is not said:\n%s", ahead)
	}
	e := evaluates(t, dir, "--no-report", "--set", "eval.use_fee=false", "--set", "eval.lag=[1,3]", "--set", "eval.cost_sweep_bp=[5]", "--set", "eval.baselines={moving_average: [], random: [], cash: false}")
	var roles []string
	for _, r := range e.Rows {
		roles = append(roles, r.Role)
	}
	if !slices.Equal(roles, []string{"agent", "baseline", "lag", "lag", "cost", "cost"}) || *e.Rows[0].Metrics["fees"] != 0 || *e.Rows[4].Metrics["fees"] == 0 || e.LookAhead {
		t.Errorf("%q, fees %g", roles, *e.Rows[0].Metrics["fees"])
	}
	if other := evaluates(t, dir, "--no-report", "--set", "env.data.synthetic.seed=4"); !strings.Contains(strings.Join(other.Notes, "\n"), "was trained on other inputs: data_sha256 was ") {
		t.Errorf("other data are not told: %q", other.Notes)
	}
	// Drawing actions needs the agent itself.
	drawn := evaluates(t, dir, "--no-report", "--set", "eval.deterministic=false")
	again := evaluates(t, dir, "--no-report", "--set", "eval.deterministic=false")
	if !strings.Contains(drawn.Policies[0].From, "ckpt-") || *drawn.Rows[0].Metrics["sharpe"] != *again.Rows[0].Metrics["sharpe"] || *drawn.Rows[0].Metrics["sharpe"] == *e.Rows[0].Metrics["sharpe"] {
		t.Errorf("drawn actions: %+v", drawn.Policies)
	}
	short := apptest.Succeed(t, "evaluate", dir, "--no-report", "--set", "eval.metrics=[sortino]")
	if head := strings.Split(short, "\n")[2]; !strings.Contains(head, "Sortino") || strings.Contains(head, "Volatility") {
		t.Errorf("the columns are %q", head)
	}
}

func TestEvaluateErrors(t *testing.T) {
	t.Parallel()
	dir := apptest.Trained(t, apptest.TinyMarket)
	model, empty := filepath.Join(t.TempDir(), "moved.onnx"), t.TempDir()
	text, err := os.ReadFile(filepath.Join(dir, "best.onnx"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(model, text, 0o644); err != nil {
		t.Fatal(err)
	}
	config := filepath.Join(dir, "config.yaml")
	for _, c := range []struct {
		args []string
		says []string
	}{
		{[]string{dir, "--split", "exam"}, []string{dir, `no split "exam"`, `there are test, train, valid`}},
		{[]string{empty}, []string{"holds no run", "config.yaml"}},
		{[]string{"nowhere"}, []string{"no run directory and no file"}},
		{[]string{"nowhere.onnx"}, []string{"nowhere.onnx", "file does not exist"}},
		{[]string{model}, []string{"--config"}},
		{[]string{dir, "--config", config}, []string{"--set"}},
		{[]string{dir, "--out", empty, "--no-report"}, []string{"--out", "--no-report"}},
		{[]string{model, "--config", config, "--set", "env.window=6"}, []string{"window", "[4 3 ", "[6 3 "}},
		{[]string{model, "--config", config, "--set", "eval.deterministic=false"}, []string{"takes the best action"}},
		{[]string{dir, "--set", "eval.metrics=[shrape]"}, []string{"eval.metrics", "shrape", "max_drawdown"}},
		{[]string{dir, "--set", "eval.baselines.index.symbol=SPY"}, []string{"eval.baselines.index", "synthetic"}},
	} {
		apptest.Refuse(t, append([]string{"evaluate"}, c.args...), c.says...)
	}
	// A folder that cannot be written to is an error before the work.
	if err := os.WriteFile(filepath.Join(empty, "file"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if r := apptest.Run(t, "evaluate", dir, "--out", filepath.Join(empty, "file", "report")); r.Code != 1 || !strings.Contains(r.Err, "--out") || r.Out != "" {
		t.Errorf("exit status %d: %s%s", r.Code, r.Out, r.Err)
	}
	// So is a run whose metrics are lost.
	if err := os.Remove(filepath.Join(dir, run.MetricsFile)); err != nil {
		t.Fatal(err)
	}
	apptest.Refuse(t, []string{"evaluate", dir}, run.MetricsFile)
	if _, err := os.Stat(filepath.Join(dir, "report")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a report was begun: %v", err)
	}
}

func TestEvaluateElsewhere(t *testing.T) {
	longtest.Slow(t)
	t.Parallel()
	dir := apptest.Trained(t, "publish: {observations: 64, allow_ties: true}\nenv: {kind: corridor, cells: 5}\nagent: {kind: a2c, encoder: {kind: mlp}, n_steps: 5, learning_rate: 0.01, optimizer: {kind: adam}, ent_coef: 0.05}\n"+
		"train: {num_envs: 4, total_env_steps: 2000, validation: {every_steps: 500, metric: mean_reward}}\neval: {episodes: 12}\n")
	e := apptest.Decoded[episodesReport](t, apptest.Succeed(t, "evaluate", dir, "--json"))
	if len(e.Rows) != 1 || e.Rows[0].Episodes != 12 || e.Rows[0].MeanReward != 1 || e.Rows[0].MeanLength < 1 {
		t.Errorf("%+v", e)
	}
	if text := apptest.Succeed(t, "evaluate", dir); !strings.Contains(text, "mean reward") || strings.Count(text, "\n") != 2 {
		t.Errorf("%s", text)
	}
	apptest.Refuse(t, []string{"evaluate", dir, "--out", t.TempDir()}, "trading environments only")
}
