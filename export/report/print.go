package report

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// Print writes the report as text: the verdict first, then tables of at most some 120 columns.
func (s *Summary) Print(w io.Writer) error {
	p := &printer{w: w}
	p.wrap(s.Verdict.Line, 110)
	p.line("")
	p.wrap(fmt.Sprintf("%s, %s to %s, %d returns of %d assets, %s to a year (%s), risk-free rate %s", orDefault(s.Split, "record"), s.First, s.Last, s.Returns, len(s.Assets), fixed(s.PeriodsPerYear, 0), s.PeriodsFrom, percent(s.RiskFree)), 110)
	p.line("")
	p.table(s.mainTable())
	p.line("")
	p.table(s.intervalTable())
	p.wrap(fmt.Sprintf("%s intervals of the stationary bootstrap, %d resamples, mean block %s returns; differences are from %s.", percent0(float64(s.Bootstrap.Level)), s.Bootstrap.Resamples, fixed(float64(s.Bootstrap.Block), 1), s.Benchmark), 110)
	p.line("")
	p.wrap(fmt.Sprintf("Deflated Sharpe probability %s: Sharpe ratio per period %s against %s expected of the best of %d without skill.", Chance(float64(s.Deflated.Probability)), fixed(float64(s.Deflated.Sharpe), 4), fixed(float64(s.Deflated.Threshold), 4), s.Deflated.Trials), 110)
	if s.Counted != "" {
		p.wrap("Trials: "+s.Counted, 110)
	}
	for _, part := range []struct {
		title string
		rows  [][]string
	}{{"Decisions delayed (bars)", s.variantTable(s.Lag, "")}, {"Fees of one side (basis points)", s.variantTable(s.Cost, "")}, {"Over seeds", s.seedTable()}} {
		if len(part.rows) > 1 {
			p.line("")
			p.line(part.title)
			p.table(part.rows)
		}
	}
	for _, t := range append(append([]string(nil), s.Warnings...), s.Notes...) {
		p.line("")
		p.wrap("Note: "+t, 110)
	}
	if len(s.NextSteps) > 0 {
		p.line("")
		p.line("Next:")
		for _, n := range s.NextSteps {
			p.line("  " + n.Text)
			if n.Command != "" {
				p.line("    " + n.Command)
			}
		}
	}
	return p.err
}

// mainTable has a row for each strategy and a column for each headline metric, after a line of
// names.
func (s *Summary) mainTable() [][]string {
	rows := [][]string{{"strategy"}}
	for _, key := range headline {
		for _, m := range s.Strategies[0].Metrics {
			if m.Key == key {
				rows[0] = append(rows[0], strings.Replace(strings.TrimSuffix(m.Name, " (annual)"), "Maximum", "Max", 1))
			}
		}
	}
	for _, r := range s.Strategies {
		row := []string{r.Name}
		for _, key := range headline {
			for _, m := range r.Metrics {
				if m.Key == key {
					row = append(row, show(m.Value, m.Unit))
				}
			}
		}
		rows = append(rows, row)
	}
	return rows
}

func (s *Summary) intervalTable() [][]string {
	rows := [][]string{{"strategy", "Sharpe", "total return", "Sharpe − benchmark's", "return − benchmark's", "ahead in"}}
	for _, r := range s.Bootstrap.Rows {
		row := []string{r.Strategy, interval(r.Sharpe, number), interval(r.TotalReturn, percent), undefined, undefined, undefined}
		if r.Strategy != s.Benchmark {
			row[3], row[4], row[5] = interval(r.SharpeDifference, number), interval(r.ReturnDifference, percent), percent(float64(r.SharpeDifference.Positive))
		}
		rows = append(rows, row)
	}
	return rows
}

func (s *Summary) variantTable(variants []VariantResult, unit string) [][]string {
	rows := [][]string{{"strategy", "at", "total return", "CAGR", "volatility", "Sharpe", "max drawdown"}}
	for _, v := range variants {
		rows = append(rows, []string{v.Strategy, trimZeros(v.X) + unit, percent(float64(v.TotalReturn)), percent(float64(v.CAGR)), percent(float64(v.Volatility)), number(float64(v.Sharpe)), percent(float64(v.MaxDrawdown))})
	}
	return rows
}

func (s *Summary) seedTable() [][]string {
	rows := [][]string{{"metric", "mean", "std", "interquartile mean", "min", "max"}}
	if s.Seeds == nil {
		return rows
	}
	rows[0][0] = fmt.Sprintf("of %d seeds", s.Seeds.Count)
	for _, r := range s.Seeds.Rows {
		rows = append(rows, []string{r.Name, show(r.Mean, r.Unit), show(r.Std, r.Unit), show(r.InterquartileMean, r.Unit), show(r.Min, r.Unit), show(r.Max, r.Unit)})
	}
	return rows
}

func trimZeros(x float64) string {
	s := fixed(x, 4)
	return strings.TrimSuffix(strings.TrimRight(s, "0"), ".")
}

func orDefault(s, otherwise string) string {
	if s == "" {
		return otherwise
	}
	return s
}

// printer keeps the first error.
type printer struct {
	w   io.Writer
	err error
}

func (p *printer) line(s string) {
	if p.err == nil {
		_, p.err = fmt.Fprintln(p.w, strings.TrimRight(s, " "))
	}
}

func (p *printer) wrap(s string, width int) {
	line := ""
	for word := range strings.SplitSeq(s, " ") {
		if line != "" && utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) > width {
			p.line(line)
			line = ""
		}
		if line != "" {
			line += " "
		}
		line += word
	}
	p.line(line)
}

// table aligns the first column to the left and the others to the right. Widths count characters,
// not bytes.
func (p *printer) table(rows [][]string) {
	widths := make([]int, len(rows[0]))
	for _, row := range rows {
		for c, cell := range row {
			widths[c] = max(widths[c], utf8.RuneCountInString(cell))
		}
	}
	for _, row := range rows {
		var line strings.Builder
		for c, cell := range row {
			pad := strings.Repeat(" ", widths[c]-utf8.RuneCountInString(cell))
			if c == 0 {
				line.WriteString(cell + pad)
			} else {
				line.WriteString("  " + pad + cell)
			}
		}
		p.line(line.String())
	}
}
