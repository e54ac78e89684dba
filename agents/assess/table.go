package assess

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"unicode/utf8"

	"gonum.org/v1/gonum/stat"

	"github.com/onnxrl/onnxrl/agents/evaluate"
	"github.com/onnxrl/onnxrl/envs/market/trading/backtest"
	"github.com/onnxrl/onnxrl/export/report/performance"
)

// The roles of rows; the JSON form has them as they are.
const (
	RoleAgent    = "agent"
	RoleSeed     = "seed"
	RoleBaseline = "baseline"
	RoleLag      = "lag"
	RoleCost     = "cost"
	// RoleMean is the mean over rows of the same kind: the seeds of the agent, or those of the
	// random policy.
	RoleMean = "mean"
)

// Row is a line of the table; its JSON keys are stable.
type Row struct {
	Name string `json:"name"`
	Role string `json:"role"`
	// X is the bars of lag or the fee in basis points of a variant.
	X *float64 `json:"x,omitempty"`
	// Metrics are all metrics of package performance.
	Metrics performance.Metrics `json:"metrics"`
	// Std are the standard deviations (n−1) of the metrics of a mean; of one row they are NaN.
	Std performance.Metrics `json:"std,omitempty"`
	// Of is the number of rows in a mean.
	Of int `json:"of,omitempty"`
	// Averaged rows are part of a mean that follows them, other than that of the agent's seeds.
	// Benchmark rows are buy-and-hold, at whatever cost.
	Averaged  bool `json:"-"`
	Benchmark bool `json:"-"`
	// PerAsset are means over the assets, for what trades assets.
	PerAsset *PerAsset `json:"per_asset,omitempty"`
}

// CheckMetrics returns an error that lists what there is unless all names are metrics of package
// performance.
func CheckMetrics(names []string) error {
	var known []string
	for _, d := range performance.Definitions() {
		known = append(known, d.Key)
	}
	for _, n := range names {
		if !slices.Contains(known, n) {
			return fmt.Errorf("eval.metrics: there is no metric %q; there are %s", n, strings.Join(known, ", "))
		}
	}
	return nil
}

// Rows returns the table: the agent, its seeds and their mean, buy-and-hold, the other baselines,
// and the sensitivity analyses.
func (a *Assessment) Rows() ([]Row, error) {
	var rows []Row
	add := func(r *backtest.Record, role string, x *float64) error {
		benchmark := a.Benchmark
		if r == benchmark {
			benchmark = nil
		}
		m, err := performance.Measure(input(r, a.Config, benchmark))
		if err != nil {
			return fmt.Errorf("%s: %w", r.Name, err)
		}
		for _, key := range []string{"total_return", "max_drawdown"} {
			if math.IsNaN(m.Get(key)) {
				return fmt.Errorf("%s: %s is NaN", r.Name, key)
			}
		}
		row := Row{Name: r.Name, Role: role, X: x, Metrics: m, Benchmark: r == a.Benchmark}
		if !r.IsIndex() {
			p := perAssetOf(r, a.Config)
			row.PerAsset = &p
		}
		rows = append(rows, row)
		return nil
	}
	for i, r := range a.Agents {
		role := RoleSeed
		if i == 0 {
			role = RoleAgent
		}
		if err := add(r, role, nil); err != nil {
			return nil, err
		}
	}
	if len(a.Agents) > 1 {
		rows = append(rows, meanOf(fmt.Sprintf("mean of %d seeds", len(rows)), rows))
	}
	if err := add(a.Benchmark, RoleBaseline, nil); err != nil {
		return nil, err
	}
	var group []Row
	for i, b := range a.Baselines {
		if err := add(b.Record, RoleBaseline, nil); err != nil {
			return nil, err
		}
		group = append(group, rows[len(rows)-1])
		if i+1 < len(a.Baselines) && b.Group != "" && a.Baselines[i+1].Group == b.Group {
			continue
		}
		if len(group) > 1 {
			for k := len(rows) - len(group); k < len(rows); k++ {
				rows[k].Averaged = true
			}
			rows = append(rows, meanOf(fmt.Sprintf("mean of %d %s", len(group), b.Group), group))
		}
		group = nil
	}
	for _, v := range a.Lag {
		if err := add(v.Record, RoleLag, &v.X); err != nil {
			return nil, err
		}
	}
	for i, v := range slices.Concat(a.Costs, a.HoldCosts) {
		if err := add(v.Record, RoleCost, &v.X); err != nil {
			return nil, err
		}
		rows[len(rows)-1].Benchmark = i >= len(a.Costs)
	}
	return rows, nil
}

// meanOf returns the means and deviations of metrics over rows. A metric that one of them does not
// have is NaN.
func meanOf(name string, rows []Row) Row {
	out := Row{Name: name, Role: RoleMean, Of: len(rows), Metrics: slices.Clone(rows[0].Metrics), Std: slices.Clone(rows[0].Metrics)}
	x := make([]float64, len(rows))
	for k := range out.Metrics {
		for i := range rows {
			x[i] = float64(rows[i].Metrics[k].Value)
		}
		mean, std := stat.MeanStdDev(x, nil)
		out.Metrics[k].Value, out.Std[k].Value = performance.Number(mean), performance.Number(std)
	}
	return out
}

// extra are the columns that follow those of the configuration.
var extra = []string{"cagr", "calmar", "exposure", "turnover", "fees"}

// headings are short names of the columns that are usual; others have the metric's own.
var headings = map[string]string{
	"total_return": "return", "sharpe": "Sharpe", "volatility": "volatility", "max_drawdown": "drawdown", "cagr": "CAGR", "calmar": "Calmar", "exposure": "invested", "turnover": "turnover", "fees": "fees",
}

// PrintTable writes rows with the metrics of the configuration and a few more; those in per cent
// say so in the heading. Rows whose mean is in the table, other than the seeds of the agent, are
// left to the files, and so are the costs of buy-and-hold.
func PrintTable(w io.Writer, rows []Row, c evaluate.Config) error {
	columns := slices.Clone(c.Metrics)
	for _, k := range extra {
		if !slices.Contains(columns, k) {
			columns = append(columns, k)
		}
	}
	defs := map[string]performance.Definition{}
	for _, d := range performance.Definitions() {
		defs[d.Key] = d
	}
	table := [][]string{{""}}
	for _, k := range columns {
		name := headings[k]
		if name == "" {
			name = defs[k].Name
		}
		if defs[k].Unit == performance.Percent {
			name += " %"
		}
		table[0] = append(table[0], name)
	}
	for _, r := range rows {
		if r.Averaged || r.Role == RoleCost && r.Benchmark {
			continue
		}
		line := []string{r.Name}
		for _, k := range columns {
			cell := show(r.Metrics.Get(k), defs[k].Unit)
			if r.Std != nil {
				cell += " ± " + show(r.Std.Get(k), defs[k].Unit)
			}
			line = append(line, cell)
		}
		table = append(table, line)
	}
	return printColumns(w, table)
}

// printColumns writes a table whose first column is aligned to the left and all others to the
// right.
func printColumns(w io.Writer, table [][]string) error {
	width := make([]int, len(table[0]))
	for _, line := range table {
		for i, cell := range line {
			width[i] = max(width[i], utf8.RuneCountInString(cell))
		}
	}
	var text strings.Builder
	for _, line := range table {
		for i, cell := range line {
			pad := strings.Repeat(" ", width[i]-utf8.RuneCountInString(cell))
			if i == 0 {
				text.WriteString(cell + pad)
			} else {
				text.WriteString("  " + pad + cell)
			}
		}
		text.WriteByte('\n')
	}
	_, err := io.WriteString(w, text.String())
	return err
}

func show(v float64, u performance.Unit) string {
	switch {
	case math.IsNaN(v):
		return "–"
	case u == performance.Percent:
		return fmt.Sprintf("%.1f", v*100)
	case u == performance.Ratio:
		return fmt.Sprintf("%.2f", v)
	}
	return fmt.Sprintf("%.0f", v)
}
