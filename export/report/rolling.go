package report

import (
	"fmt"
	"math"

	"github.com/onnxrl/onnxrl/export/report/performance"
	"github.com/onnxrl/onnxrl/export/report/plots"
)

// rolling gives a statistic of the window returns that end at each of the T+1 values, NaN for the
// first ones.
func rolling(returns []float64, window int, of func(from, to int) float64) []float64 {
	y := make([]float64, len(returns)+1)
	for t := range y {
		if y[t] = math.NaN(); t >= window {
			y[t] = of(t-window, t)
		}
	}
	return y
}

// rollingFigures draws how ratios and risk change over time: Sharpe and Sortino ratio, volatility,
// and the beta to the benchmark.
func (d *Document) rollingFigures(s *Summary, alt func(string, ...any) string) (all []figure, err error) {
	window := rollingWindow(s.Returns, d.PeriodsPerYear)
	rate, root := performance.PerPeriod(d.RiskFree, d.PeriodsPerYear), math.Sqrt(d.PeriodsPerYear)
	excess := func(st *Strategy) []float64 { return performance.Excess(performance.Returns(st.Value), rate) }
	bench := excess(&d.Strategies[d.Benchmark])
	pair := []int{0, d.Benchmark}
	for _, c := range []struct {
		name, heading, title, caption string
		unit                          plots.Unit
		chosen                        []int
		of                            func(e []float64, from, to int) float64
	}{
		{"rolling-sharpe", "Rolling Sharpe ratio", "Sharpe ratio of the last %d returns (annual)", "", plots.Plain, pair,
			func(e []float64, from, to int) float64 { return performance.Sharpe(e[from:to]) * root }},
		{"rolling-sortino", "Rolling Sortino ratio", "Sortino ratio of the last %d returns (annual)", "Gaps are where no return was below the risk-free rate.", plots.Plain, pair,
			func(e []float64, from, to int) float64 { return performance.Sortino(e[from:to]) * root }},
		{"rolling-volatility", "Rolling volatility", "Volatility of the last %d returns (annual)", "", plots.Percent, pair,
			func(e []float64, from, to int) float64 { return performance.Volatility(e[from:to]) * root }},
		{"rolling-beta", "Rolling beta", "Beta to the benchmark of the last %d returns", "1 moves as the benchmark does, 0 independently of it.", plots.Plain, []int{0},
			func(e []float64, from, to int) float64 { return performance.Beta(e[from:to], bench[from:to]) }},
	} {
		title := fmt.Sprintf(c.title, window)
		f, err := plots.Curves(plots.Chart{Name: c.name, Alt: alt("%s", title), Title: title, Dates: d.Dates, Zero: true, Unit: c.unit,
			Lines: d.curves(func(st *Strategy) []float64 {
				e := excess(st)
				return rolling(e, window, func(from, to int) float64 { return c.of(e, from, to) })
			}, c.chosen)})
		if err != nil {
			return nil, err
		}
		all = append(all, figure{f, c.heading, c.caption})
	}
	return all, nil
}
