package walkforward

import (
	"encoding/csv"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"

	"github.com/onnxrl/onnxrl/agents/study"
	"github.com/onnxrl/onnxrl/export/report/performance"
)

// pooledTable has the pooled rows. Seeds and rules that are not the best are in the files.
func (sum *Summary) pooledTable(dash string) (head []string, rows [][]string) {
	head = []string{"variant", "pooled record", "return", "Sharpe", fmt.Sprintf("%.0f %% interval", 100*level), "Δ to equal weight", "interval"}
	shown := []string{"sortino", "calmar", "volatility", "max_drawdown", "turnover", "costs", "exposure", "herfindahl", "largest_weight", "beta", "capacity"}
	head = append(head, headings(shown)...)
	for _, r := range sum.Pooled {
		if r.Role == RoleSeed || r.Role == RoleRule || r.Variant != sum.Pooled[0].Variant && r.Role != RoleAgent {
			continue
		}
		name := r.Name
		if r.Role == RoleSimpleRule {
			name += " (best simple rule)"
		}
		row := []string{r.Variant, name, number(r.Figures["annual_return"], dash), number(r.Figures["sharpe"], dash), interval(&r.Sharpe, dash)}
		if r.Difference != nil {
			row = append(row, study.Signed(r.Difference.Point), interval(r.Difference, dash))
		} else {
			row = append(row, dash, dash)
		}
		for _, key := range shown {
			row = append(row, number(r.Figures[key], dash))
		}
		rows = append(rows, row)
	}
	return head, rows
}

// variantTable compares variants: the agent of each with the base's.
func (sum *Summary) variantTable(dash string) (head []string, rows [][]string) {
	head = []string{"variant", "Sharpe", "Δ to base", "interval", "seeds", "deflated"}
	for _, r := range sum.Pooled {
		if r.Role != RoleAgent {
			continue
		}
		s := sum.Seeds[r.Variant]
		row := []string{r.Variant, number(r.Figures["sharpe"], dash), dash, dash, number(s.Mean, dash), number(sum.Deflated[r.Variant].Probability, dash)}
		if r.ToBase != nil {
			row[2], row[3] = study.Signed(r.ToBase.Point), interval(r.ToBase, dash)
		}
		if s.Std.Defined() {
			row[4] += " ± " + number(s.Std, dash)
		}
		rows = append(rows, row)
	}
	return head, rows
}

// foldTable has the agent of each fold beside equal weight and the best simple rule of all folds.
func (sum *Summary) foldTable(dash string) (head []string, rows [][]string) {
	shown := []string{"max_drawdown", "turnover", "exposure", "herfindahl", "largest_weight", "beta", "return_up", "return_sideways", "return_down"}
	head = append([]string{"fold", "variant", "test range", "return", "Sharpe", "equal weight", "its Sharpe", "best rule"}, headings(shown)...)
	for _, f := range sum.Folds {
		agent, equal := f.row(RoleAgent, ""), f.row(RoleBenchmark, "")
		rule := f.row("", sum.bestRule())
		row := []string{f.Fold, f.Variant, f.From + " to " + f.To, number(agent["annual_return"], dash), number(agent["sharpe"], dash), number(equal["annual_return"], dash), number(equal["sharpe"], dash), number(rule["sharpe"], dash)}
		for _, key := range shown {
			row = append(row, number(agent[key], dash))
		}
		rows = append(rows, row)
	}
	return head, rows
}

// regimeTable says when pooled records earn what they earn.
func (sum *Summary) regimeTable(dash string) (head []string, rows [][]string) {
	shown := []string{"return_up", "return_sideways", "return_down", "beta"}
	head = append([]string{"variant", "pooled record"}, headings(shown)...)
	for _, r := range sum.Pooled {
		if r.Role == RoleRule || r.Variant != sum.Pooled[0].Variant && r.Role != RoleAgent {
			continue
		}
		row := []string{r.Variant, r.Name}
		for _, key := range shown {
			row = append(row, number(r.Figures[key], dash))
		}
		rows = append(rows, row)
	}
	return head, rows
}

// row returns the figures of a record by its role, or by its name; nil where there is none.
func (f *CellSummary) row(role, name string) Figures {
	for _, r := range f.Rows {
		if role != "" && r.Role == role || name != "" && r.Name == name {
			return r.Figures
		}
	}
	return nil
}

func (sum *Summary) bestRule() string {
	for _, r := range sum.Pooled {
		if r.Role == RoleSimpleRule {
			return r.Name
		}
	}
	return ""
}

func headings(keys []string) (out []string) {
	for _, k := range keys {
		i := slices.IndexFunc(figures, func(f figure) bool { return f.key == k })
		out = append(out, figures[i].heading)
	}
	return out
}

// number writes three digits behind the point, and large numbers by their powers of ten.
func number(v performance.Number, dash string) string {
	if x := math.Abs(float64(v)); x >= 1e5 {
		return fmt.Sprintf("%.1e", v)
	}
	return study.Number(v, dash)
}

func interval(iv *performance.Interval, dash string) string {
	if !iv.Low.Defined() {
		return dash
	}
	return fmt.Sprintf("[%s, %s]", study.Signed(iv.Low), study.Signed(iv.High))
}

// tables are those that people read.
func (sum *Summary) tables() []study.Table {
	list := []study.Table{sum.pooledTable}
	if len(sum.Deflated) > 1 || len(sum.Seeds) > 0 {
		list = append(list, sum.variantTable)
	}
	if len(sum.Before) > 0 {
		list = append(list, sum.beforeTable)
	}
	if len(sum.Targets) > 0 {
		list = append(list, sum.targetTable)
	}
	return append(list, sum.regimeTable, sum.foldTable)
}

// Print writes the tables for a terminal.
func (sum *Summary) Print(w io.Writer) error {
	for _, t := range sum.tables() {
		if err := study.Print(w, t); err != nil {
			return err
		}
		fmt.Fprintln(w)
	}
	for _, line := range sum.lines() {
		if _, err := fmt.Fprintln(w, line); err != nil {
			return err
		}
	}
	return nil
}

// WriteMarkdown writes the tables as Markdown.
func (sum *Summary) WriteMarkdown(w io.Writer) error {
	for _, t := range sum.tables() {
		if err := study.Markdown(w, 2, t); err != nil {
			return err
		}
		fmt.Fprintln(w)
	}
	for _, line := range sum.lines() {
		if _, err := fmt.Fprintf(w, "%s\n\n", line); err != nil {
			return err
		}
	}
	return nil
}

func (sum *Summary) lines() []string {
	if sum.Verdict == "" {
		return sum.Notes
	}
	return append([]string{sum.Verdict}, sum.Notes...)
}

// WriteFolds writes a CSV row for each record of each fold, with all digits, and those of the
// pooled records as the fold pooled.
func (sum *Summary) WriteFolds(w io.Writer) error {
	out := csv.NewWriter(w)
	head := []string{"fold", "variant", "record", "role"}
	for _, f := range figures {
		head = append(head, f.key)
	}
	if err := out.Write(head); err != nil {
		return err
	}
	write := func(fold, variant string, r Row) error {
		row := []string{fold, variant, r.Name, r.Role}
		for _, f := range figures {
			row = append(row, study.Digits(r.Figures[f.key]))
		}
		return out.Write(row)
	}
	for _, f := range sum.Folds {
		for _, r := range f.Rows {
			if err := write(f.Fold, f.Variant, r); err != nil {
				return err
			}
		}
	}
	for _, r := range sum.Pooled {
		if err := write("pooled", r.Variant, r.Row); err != nil {
			return err
		}
	}
	out.Flush()
	return out.Error()
}

// WritePooled writes the returns of every pooled record as CSV, a row for each bar.
func (s *Study) WritePooled(sum *Summary, w io.Writer) error {
	out := csv.NewWriter(w)
	if err := out.Write([]string{"variant", "fold", "date", "record", "role", "return", "turnover", "fees", "invested"}); err != nil {
		return err
	}
	text := func(x float64) string { return strconv.FormatFloat(x, 'g', -1, 64) }
	for v, p := range sum.pools {
		if p == nil {
			continue
		}
		at := 0
		for _, r := range p.ranges {
			for i := 1; i < len(r.dates); i, at = i+1, at+1 {
				for k, one := range p.samples {
					err := out.Write([]string{s.Plan.Variants[v], r.fold, label(r.dates[i]), p.names[k], p.roles[k], text(one.r[at]), text(one.turnover[at]), text(one.fees[at]), text(one.invested[at])})
					if err != nil {
						return err
					}
				}
			}
		}
	}
	out.Flush()
	return out.Error()
}

// Print shows the folds and what there is to train.
func (p *Plan) Print(w io.Writer) error {
	err := study.Print(w, func(string) (head []string, rows [][]string) {
		head = []string{"fold", "train", "bars", "valid", "bars", "test", "bars"}
		for _, f := range p.Folds {
			row := []string{f.Name, f.Train.From + " to " + f.Train.To, strconv.Itoa(f.Train.Bars), f.Valid.From + " to " + f.Valid.To, strconv.Itoa(f.Valid.Bars)}
			for i, t := range f.Test {
				if i == 0 {
					rows = append(rows, append(row, t.From+" to "+t.To, strconv.Itoa(t.Bars)))
				} else {
					rows = append(rows, []string{"", "", "", "", "", t.From + " to " + t.To, strconv.Itoa(t.Bars)})
				}
			}
		}
		return head, rows
	})
	if err != nil {
		return err
	}
	var steps int64
	for i, name := range p.Variants {
		n := p.EnvSteps[i] * int64(len(p.Folds)*len(p.Seeds))
		steps += n
		if len(p.Variants) > 1 {
			fmt.Fprintf(w, "%s: %d runs of %d env steps\n", name, len(p.Folds)*len(p.Seeds), p.EnvSteps[i])
		}
	}
	_, err = fmt.Fprintf(w, "\n%d bars from %s to %s; %s, %s, %s: %d runs, %d env steps\n", p.Bars, p.First, p.Last, plural(len(p.Folds), "fold"), plural(len(p.Variants), "variant"), plural(len(p.Seeds), "seed"), p.Runs, steps)
	return err
}
