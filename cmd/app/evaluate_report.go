package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/onnxrl/onnxrl/agents/assess"
	"github.com/onnxrl/onnxrl/agents/evaluate"
	"github.com/onnxrl/onnxrl/agents/run"
	"github.com/onnxrl/onnxrl/export/report"
	"github.com/onnxrl/onnxrl/export/report/performance"
	"github.com/onnxrl/onnxrl/runtime/printable"
)

// metricsJSON is the file of a report that has what --json prints.
const metricsJSON = "metrics.json"

// evaluation is what onnxrl evaluate prints of a trading environment; the JSON keys are stable.
type evaluation struct {
	Verdict   report.Verdict `json:"verdict"`
	Split     string         `json:"split"`
	First     string         `json:"first"`
	Last      string         `json:"last"`
	LookAhead bool           `json:"look_ahead"`
	// Knows says what in the run knows the future, Seen what of the evaluated data the policy was
	// trained on or chosen by.
	Knows []string `json:"look_ahead_reasons"`
	Seen  []string `json:"seen"`
	// Periods are the returns of a year, PeriodsFrom what the number is made of.
	Periods     float64               `json:"periods_per_year"`
	PeriodsFrom string                `json:"periods_per_year_from"`
	Policies    []run.EvaluatedPolicy `json:"policies"`
	Rows        []assess.Row          `json:"rows"`
	// Orders are those of the reported policy.
	Orders   assess.Orders        `json:"orders"`
	Deflated performance.Deflated `json:"deflated_sharpe"`
	Counted  string               `json:"trials_counted"`
	// Interval is of the reported policy.
	Interval report.IntervalRow `json:"bootstrap"`
	Level    performance.Number `json:"bootstrap_level"`
	Warnings []string           `json:"warnings"`
	Notes    []string           `json:"notes"`
	// Report is the folder that was written, Files what is in it besides this object, as
	// metrics.json.
	Report string        `json:"report,omitempty"`
	Files  *report.Files `json:"files,omitempty"`
	// Unwritten says why there is no report where there usually is one.
	Unwritten string `json:"unwritten,omitempty"`
}

// report computes the numbers and, unless the folder is empty, writes the report; where that fails,
// the numbers come with the error.
func (a *app) report(ctx context.Context, p *run.Evaluation, r *assess.Assessment, folder string) (*evaluation, error) {
	about, err := assess.AboutOf(p, r)
	if err != nil {
		return nil, err
	}
	doc := r.Document(about)
	s, err := report.Summarise(*doc)
	if err != nil {
		return nil, err
	}
	rows, err := r.Rows()
	if err != nil {
		return nil, err
	}
	e := &evaluation{
		Verdict: s.Verdict, Split: s.Split, First: s.First, Last: s.Last, LookAhead: s.Verdict.LookAhead, Knows: s.LookAhead, Seen: s.Seen, Periods: s.PeriodsPerYear, PeriodsFrom: s.PeriodsFrom, Policies: p.Policies(), Rows: rows, Orders: assess.OrdersOf(r.Agents[0]), Deflated: s.Deflated, Counted: s.Counted,
		Interval: s.Bootstrap.Rows[0], Level: s.Bootstrap.Level, Warnings: s.Warnings, Notes: s.Notes,
	}
	if folder == "" {
		return e, nil
	}
	files, err := report.Write(ctx, folder, *doc)
	if err != nil {
		return e, err
	}
	e.Report, e.Files = folder, files
	return e, run.WriteJSON(filepath.Join(folder, metricsJSON), e)
}

// printEvaluation shows the verdict, the table and what stands behind it.
func (a *app) printEvaluation(e *evaluation, c evaluate.Config) error {
	if a.json {
		return a.printJSON(e)
	}
	fmt.Fprintf(a.out, "%s\n\n", e.Verdict.Line)
	printLookAhead(a.out, e.Knows)
	for _, s := range e.Seen {
		fmt.Fprintln(a.out, "IN SAMPLE:", s)
	}
	if err := assess.PrintTable(a.out, e.Rows, c); err != nil {
		return err
	}
	fmt.Fprintf(a.out, "\n%s to %s, split %s, %.5g returns a year (%s). Sharpe %.0f %% interval %s, minus that of buy-and-hold %s (block bootstrap).\n", e.First, e.Last, e.Split, e.Periods, e.PeriodsFrom, e.Level*100, span(e.Interval.Sharpe), span(e.Interval.SharpeDifference))
	fmt.Fprintf(a.out, "Deflated Sharpe probability %s after %s. %s\n", report.Chance(float64(e.Deflated.Probability)), plural(e.Deflated.Trials, "trial"), e.Counted)
	for _, n := range slices.Concat(e.Warnings, e.Notes) {
		fmt.Fprintln(a.out, n)
	}
	if e.Unwritten != "" {
		fmt.Fprintln(a.out, e.Unwritten)
	}
	if e.Report != "" {
		fmt.Fprintf(a.out, "report %s\n", e.Files.Page)
	}
	return nil
}

// span writes an interval of a ratio, or a dash where there is none.
func span(v performance.Interval) string {
	if !v.Low.Defined() || !v.High.Defined() {
		return decimals(v.Low)
	}
	return decimals(v.Low) + " to " + decimals(v.High)
}

// decimals writes a number, or a dash where there is none.
func decimals(v performance.Number) string {
	if !v.Defined() {
		return "–"
	}
	return strconv.FormatFloat(float64(v), 'f', 2, 64)
}

// episodesEvaluation is what onnxrl evaluate prints of other environments; the JSON keys are
// stable.
type episodesEvaluation struct {
	Split    string                `json:"split"`
	Policies []run.EvaluatedPolicy `json:"policies"`
	Rows     []episodesRow         `json:"rows"`
}

type episodesRow struct {
	Name       string  `json:"name"`
	Episodes   int     `json:"episodes"`
	MeanReward float64 `json:"mean_reward"`
	StdReward  float64 `json:"std_reward"`
	MinReward  float64 `json:"min_reward"`
	MaxReward  float64 `json:"max_reward"`
	MeanLength float64 `json:"mean_length"`
	StdLength  float64 `json:"std_length"`
	// SuccessRate is there where the environment says which episodes were successes.
	SuccessRate *float64 `json:"success_rate,omitempty"`
	// MeanCosts are those of the sums of each cost over an episode.
	MeanCosts map[string]float64 `json:"mean_costs,omitempty"`
}

// evaluateEpisodes counts returns and lengths of episodes.
func (a *app) evaluateEpisodes(ctx context.Context, p *run.Evaluation, f *evaluateFlags) error {
	if f.out != "" {
		return errors.New("--out: reports are written for trading environments only")
	}
	results, err := p.Episodes(ctx)
	if err != nil {
		return err
	}
	e := episodesEvaluation{Split: f.split, Policies: p.Policies()}
	for i, r := range results {
		e.Rows = append(e.Rows, episodesRow{
			Name: e.Policies[i].Name, Episodes: len(r.Episodes), MeanReward: r.Return, StdReward: r.ReturnStd, MinReward: r.Low, MaxReward: r.High, MeanLength: r.Length, StdLength: r.LengthStd, SuccessRate: finite(r.Success), MeanCosts: r.Costs,
		})
	}
	if a.json {
		return a.printJSON(e)
	}
	return e.table(a.out)
}

func (e episodesEvaluation) table(out io.Writer) error {
	w := printable.NewTable(out)
	successes := slices.ContainsFunc(e.Rows, func(r episodesRow) bool { return r.SuccessRate != nil })
	head := []string{"policy", "episodes", "mean reward", "std", "min", "max", "mean length", "std"}
	var costs []string
	if len(e.Rows) > 0 {
		costs = slices.Sorted(maps.Keys(e.Rows[0].MeanCosts))
	}
	for _, name := range costs {
		head = append(head, "mean "+name)
	}
	if successes {
		head = append(head, "success rate")
	}
	fmt.Fprintln(w, strings.Join(head, "\t"))
	for _, r := range e.Rows {
		cells := []string{r.Name, strconv.Itoa(r.Episodes)}
		for _, x := range []float64{r.MeanReward, r.StdReward, r.MinReward, r.MaxReward, r.MeanLength, r.StdLength} {
			cells = append(cells, short4(x))
		}
		for _, name := range costs {
			cells = append(cells, short4(r.MeanCosts[name]))
		}
		if successes {
			cells = append(cells, orDash(r.SuccessRate))
		}
		fmt.Fprintln(w, strings.Join(cells, "\t"))
	}
	return w.Flush()
}
