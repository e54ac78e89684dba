package assess

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"text/tabwriter"

	"gonum.org/v1/gonum/stat"

	"onnxrl/agents/evaluate"
	"onnxrl/envs/market/trading/backtest"
	"onnxrl/export/report/performance"
)

// The roles of rows; the JSON form has them as they are.
const (
	RoleAgent    = "agent"
	RoleSeed     = "seed"
	RoleBaseline = "baseline"
	RoleLag      = "lag"
	RoleCost     = "cost"
	// RoleMean is the mean over rows of the same kind: the seeds of the agent, or those of the random policy.
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
	// PerAsset are means over the assets, for what trades assets.
	PerAsset *PerAsset `json:"per_asset,omitempty"`
}

// CheckMetrics returns an error that lists what there is unless all names are metrics of package performance.
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

// Rows returns the table: the agent, its seeds and their mean, buy-and-hold, the other baselines, and the doubts.
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
		row := Row{Name: r.Name, Role: role, X: x, Metrics: m}
		if !r.IsIndex() {
			p := PerAssetOf(r, a.Config)
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
			rows = append(rows, meanOf(fmt.Sprintf("mean of %d %s", len(group), b.Group), group))
		}
		group = nil
	}
	for _, v := range a.Lag {
		if err := add(v.Record, RoleLag, &v.X); err != nil {
			return nil, err
		}
	}
	for _, v := range slices.Concat(a.Costs, a.HoldCosts) {
		if err := add(v.Record, RoleCost, &v.X); err != nil {
			return nil, err
		}
	}
	return rows, nil
}

// meanOf returns the means and deviations of metrics over rows. A metric that one of them does not have is NaN.
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

// PrintTable writes rows with the metrics of the configuration and a few more. Fractions are in per cent.
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
	t := tabwriter.NewWriter(w, 0, 4, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(t, "\t")
	for _, k := range columns {
		fmt.Fprintf(t, "%s\t", defs[k].Name)
	}
	fmt.Fprintln(t)
	for _, r := range rows {
		fmt.Fprintf(t, "%s\t", r.Name)
		for _, k := range columns {
			cell := show(r.Metrics.Get(k), defs[k].Unit)
			if r.Std != nil {
				cell += " ± " + strings.TrimSuffix(show(r.Std.Get(k), defs[k].Unit), " %")
			}
			fmt.Fprintf(t, "%s\t", cell)
		}
		fmt.Fprintln(t)
	}
	return t.Flush()
}

func show(v float64, u performance.Unit) string {
	switch {
	case math.IsNaN(v):
		return "–"
	case u == performance.Percent:
		return fmt.Sprintf("%.2f %%", v*100)
	case u == performance.Ratio:
		return fmt.Sprintf("%.3f", v)
	}
	return fmt.Sprintf("%.0f", v)
}
