package report

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/onnxrl/onnxrl/export/report/performance"
	"github.com/onnxrl/onnxrl/export/report/plots"
)

// matchedFigures draws the agent beside a benchmark of its own volatility, where both have one.
func (d *Document) matchedFigures(_ *Summary, alt func(string, ...any) string) ([]figure, error) {
	own, other := performance.Returns(d.Strategies[0].Value), performance.Returns(d.Strategies[d.Benchmark].Value)
	scale := performance.Volatility(own) / performance.Volatility(other)
	if !(scale > 0) || math.IsInf(scale, 0) {
		return nil, nil
	}
	for i := range other {
		if other[i] *= scale; other[i] <= -1 {
			return nil, nil
		}
	}
	matched := performance.Growth(other)
	lines := d.curves(func(st *Strategy) []float64 {
		if st == &d.Strategies[d.Benchmark] {
			return matched
		}
		return scaled(st.Value)
	}, []int{0, d.Benchmark})
	f, err := plots.Curves(plots.Chart{Name: "equity-matched", Alt: alt("Value of 1 invested, the benchmark at the agent's volatility"), Title: "Value of 1 invested (equal volatility)", Dates: d.Dates, Lines: lines})
	return []figure{{f, "Equity, volatility matched", fmt.Sprintf("The benchmark's returns are multiplied by %s, so that they vary as much as the agent's: more or less of it on credit or beside cash, without interest.", number(scale))}}, err
}

// drawdownFigures shades the agent's worst times below a peak in its equity, where there are any.
func (d *Document) drawdownFigures(_ *Summary, alt func(string, ...any) string) ([]figure, error) {
	agent := &d.Strategies[0]
	var all []plots.Stretch
	var text []string
	for i, w := range performance.Worst(performance.Drawdowns(agent.Value), 5) {
		end := w.End
		if end < 0 {
			end = len(d.Dates) - 1
		}
		all = append(all, plots.Stretch{Name: strconv.Itoa(i + 1), From: d.Dates[w.Peak], To: d.Dates[end]})
		text = append(text, fmt.Sprintf("%d: %s, %s to %s", i+1, percent(w.Depth), day(d.Dates[w.Peak]), day(d.Dates[end])))
	}
	if len(all) == 0 {
		return nil, nil
	}
	f, err := plots.Curves(plots.Chart{Name: "drawdown-periods", Alt: alt("Value of 1 invested with the worst drawdowns of %s", agent.Name), Title: "Value of 1 invested, worst drawdowns shaded", Dates: d.Dates, Stretches: all,
		Lines: d.curves(func(st *Strategy) []float64 { return scaled(st.Value) }, []int{0, d.Benchmark})})
	return []figure{{f, "Drawdown periods", fmt.Sprintf("The worst of %s, from the peak to the recovery or the end. %s.", agent.Name, strings.Join(text, "; "))}}, err
}

// yearFigures draws returns of calendar years beside those of the benchmark.
func (d *Document) yearFigures(s *Summary, alt func(string, ...any) string) ([]figure, error) {
	var years []string
	for _, y := range s.Strategies[0].Years {
		years = append(years, strconv.Itoa(y.Year))
	}
	var lines []plots.Line
	for _, i := range []int{0, d.Benchmark} {
		l := plots.Line{Name: d.Strategies[i].Name, Kind: d.kind(i)}
		for _, y := range s.Strategies[i].Years {
			l.Y = append(l.Y, float64(y.Return))
		}
		lines = append(lines, l)
	}
	f, err := plots.Bars("years", alt("Yearly returns of the agent and the benchmark"), "Return of the calendar year", plots.Percent, years, lines)
	return []figure{{f, "Yearly returns", "The first and the last year may be incomplete."}}, err
}

// parts are the lengths that returns are compared over.
var parts = []struct {
	name    string
	returns func(dates []time.Time, value []float64) []float64
}{
	{"day", performance.DailyReturns},
	{"week", weekly},
	{"month", byMonths(1)},
	{"quarter", byMonths(3)},
	{"year", byMonths(12)},
}

func byMonths(n int) func([]time.Time, []float64) []float64 {
	return func(dates []time.Time, value []float64) (r []float64) {
		for _, s := range performance.Spans(dates, value, n) {
			r = append(r, s.Return)
		}
		return r
	}
}

// weekly are the returns of weeks as ISO 8601 has them, Monday to Sunday.
func weekly(dates []time.Time, value []float64) (r []float64) {
	first := 0
	for t := 1; t < len(dates); t++ {
		year, week := dates[t].ISOWeek()
		if t+1 < len(dates) {
			if y, w := dates[t+1].ISOWeek(); y == year && w == week {
				continue
			}
		}
		if value[first] > 0 {
			r = append(r, value[t]/value[first]-1)
		}
		first = t
	}
	return r
}

// fewest is how many returns a line of quantiles needs.
const fewest = 4

// quantileFigures draws how returns of the agent and of the benchmark are spread over days to
// years.
func (d *Document) quantileFigures(alt func(string, ...any) string) ([]figure, error) {
	var dots []plots.Dot
	for _, p := range parts {
		for _, i := range []int{0, d.Benchmark} {
			r := p.returns(d.Dates, d.Strategies[i].Value)
			if len(r) < fewest {
				continue
			}
			q := func(at float64) float64 { return performance.Quantile(r, at) }
			name := p.name
			if i > 0 {
				name += ", benchmark"
			}
			dots = append(dots, plots.Dot{Name: name, Kind: d.kind(i), Value: q(0.5), Low: q(0.25), High: q(0.75), Each: []float64{q(0), q(0.05), q(0.95), q(1)}})
		}
	}
	if len(dots) == 0 {
		return nil, nil
	}
	f, err := plots.Dots("quantiles", alt("Quantiles of returns over days, weeks, months, quarters and years"), "Quantiles of returns", "dot: median; line: the middle half; strokes: least, 5%, 95%, greatest", plots.Percent, dots, []plots.Mark{{At: 0}})
	return []figure{{f, "Return quantiles", "Parts of the calendar at both ends may be incomplete."}}, err
}
