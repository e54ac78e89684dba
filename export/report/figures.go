package report

import (
	"fmt"
	"math"
	"slices"

	"github.com/onnxrl/onnxrl/export/report/performance"
	"github.com/onnxrl/onnxrl/export/report/plots"
)

// figure is a drawing with what the page says about it.
type figure struct {
	*plots.Figure
	Heading string
	Caption string
}

// figures draws everything that the document has data for.
func (d *Document) figures(s *Summary) ([]figure, error) {
	var all []figure
	var first error
	add := func(heading, caption string, f *plots.Figure, err error) {
		if err != nil && first == nil {
			first = fmt.Errorf("report: %w", err)
		}
		all = append(all, figure{f, heading, caption})
	}
	group := func(list []figure, err error) {
		if err != nil && first == nil {
			first = fmt.Errorf("report: %w", err)
		}
		all = append(all, list...)
	}
	agent := &d.Strategies[0]
	span := fmt.Sprintf("%s to %s", s.First, s.Last)
	alt := func(format string, args ...any) string { return fmt.Sprintf(format, args...) + ", " + span }

	growth := d.curves(func(st *Strategy) []float64 { return scaled(st.Value) }, nil)
	f, err := plots.Curves(plots.Chart{Name: "equity", Alt: alt("Value of 1 invested in each of %d strategies", len(d.Strategies)), Title: "Value of 1 invested", Dates: d.Dates, Lines: growth})
	add("Equity", "Each strategy starts at 1. Thin lines in the agent's colour are other seeds.", f, err)
	f, err = plots.Curves(plots.Chart{Name: "equity-log", Alt: alt("Value of 1 invested, on a logarithmic axis"), Title: "Value of 1 invested (logarithmic)", Dates: d.Dates, Lines: growth, Log: true})
	add("Equity, logarithmic", "Equal slopes are equal rates of growth.", f, err)

	group(d.matchedFigures(s, alt))
	pair := []int{0, d.Benchmark}
	f, err = plots.Curves(plots.Chart{Name: "drawdown", Alt: alt("Loss from the highest value so far"), Title: "Loss from the highest value so far", Dates: d.Dates, Unit: plots.Percent, Zero: true, Fill: true,
		Lines: d.curves(func(st *Strategy) []float64 { return performance.Underwater(st.Value) }, pair)})
	add("Drawdown", "", f, err)

	group(d.drawdownFigures(s, alt))
	group(d.rollingFigures(s, alt))
	group(d.yearFigures(s, alt))

	var cells []plots.Month
	for _, list := range [][]Month{s.Strategies[0].Months, s.Strategies[0].Years} {
		for _, m := range list {
			cells = append(cells, plots.Month{Year: m.Year, Month: m.Month, Return: float64(m.Return)})
		}
	}
	f, err = plots.Months("months", alt("Monthly returns of %s", agent.Name), cells)
	add("Monthly returns", fmt.Sprintf("%s, in percent. The first and the last month may be incomplete.", agent.Name), f, err)

	returns := d.curves(func(st *Strategy) []float64 { return performance.DailyReturns(d.Dates, st.Value) }, pair)
	lo := min(performance.Quantile(returns[0].Y, 0.002), performance.Quantile(returns[1].Y, 0.002))
	hi := max(performance.Quantile(returns[0].Y, 0.998), performance.Quantile(returns[1].Y, 0.998))
	pad := math.Max(0.05*(hi-lo), 1e-4)
	f, err = plots.Histogram("returns", alt("Distribution of daily returns"), "Share of days", "daily return (outer bars hold everything beyond)", plots.Percent, returns, lo-pad, hi+pad, []plots.Mark{{Name: "VaR 95%", At: performance.ValueAtRisk(returns[0].Y, 0.05)}})
	add("Daily returns", "The dashed line is the agent's 5% quantile.", f, err)

	group(d.quantileFigures(alt))

	if agent.Weights != nil && len(d.Assets) > 0 {
		f, err = plots.Weights("positions", alt("Positions of %s as shares of its value", agent.Name), d.Dates, d.weights(agent))
		add("Positions", fmt.Sprintf("%s; what is not in an asset is cash.", agent.Name), f, err)
	}
	if agent.Actions != nil && len(d.Assets) > 0 {
		counts := make([][]int, len(d.Dates)-1)
		for t := range counts {
			counts[t] = make([]int, len(d.Actions))
			for _, a := range agent.Actions[t*len(d.Assets) : (t+1)*len(d.Assets)] {
				if a >= 0 {
					counts[t][a]++
				}
			}
		}
		f, err = plots.Actions("actions", alt("Actions of %s", agent.Name), d.Dates[:len(counts)], d.Actions, counts)
		add("Actions", "The agent's decisions, whether or not they could be done.", f, err)
	}
	group(d.assetFigures(s, alt))
	for _, sweep := range []struct {
		name, heading, unit, caption string
		rows                         []VariantResult
	}{
		{"cost", "Sensitivity to fees", "fee of one side (basis points)", "The same decisions at other fees.", s.Cost},
		{"lag", "Sensitivity to delay", "delay of decisions (bars)", "The same decisions, filled later.", s.Lag},
	} {
		if x, panels := panelsOf(sweep.rows, s); len(x) > 1 {
			f, err = plots.Sweep(sweep.name, alt("%s", sweep.heading), sweep.unit, x, panels)
			add(sweep.heading, sweep.caption, f, err)
		}
	}
	return all, first
}

// curves makes a line of each of the chosen strategies, and of all where none are chosen.
func (d *Document) curves(y func(*Strategy) []float64, chosen []int) []plots.Line {
	if chosen == nil {
		for i := range d.Strategies {
			chosen = append(chosen, i)
		}
	}
	var all []plots.Line
	sizes := map[string]int{}
	for _, i := range chosen {
		sizes[d.Strategies[i].Group]++
	}
	for _, i := range chosen {
		s := &d.Strategies[i]
		l := plots.Line{Name: s.Name, Kind: d.kind(i), Y: y(s)}
		if n := sizes[s.Group]; s.Group != "" && n > 1 && l.Kind == plots.Other {
			l.Name, l.Kind = fmt.Sprintf("%d × %s", n, s.Group), plots.Crowd
		}
		all = append(all, l)
	}
	return all
}

func (d *Document) kind(i int) plots.Kind {
	switch {
	case i == 0:
		return plots.Agent
	case i == d.Benchmark:
		return plots.Benchmark
	case d.Strategies[i].Role == Seed:
		return plots.Seed
	}
	return plots.Other
}

// weights makes layers of the positions, and of what is in none of them.
func (d *Document) weights(s *Strategy) []plots.Layer {
	n := len(d.Assets)
	all := make([]plots.Layer, n+1)
	for i := range all {
		all[i].Y = make([]float64, len(d.Dates))
	}
	all[n].Name, all[n].Rest = "cash", true
	for i, name := range d.Assets {
		all[i].Name = name
	}
	for t := range d.Dates {
		left := 1.0
		for i, w := range s.Weights[t*n : (t+1)*n] {
			all[i].Y[t] = w
			left -= w
		}
		all[n].Y[t] = max(left, 0)
	}
	return all
}

func scaled(value []float64) []float64 {
	y := make([]float64, len(value))
	for t, v := range value {
		y[t] = v / value[0]
	}
	return y
}

// rollingWindow is half a year of returns, or a quarter of a shorter record.
func rollingWindow(returns int, periods float64) int { return max(2, min(int(periods/2), returns/4)) }

// panelsOf arranges variants by strategy and by X.
func panelsOf(rows []VariantResult, s *Summary) ([]float64, []plots.Panel) {
	var x []float64
	for _, r := range rows {
		x = append(x, r.X)
	}
	slices.Sort(x)
	x = slices.Compact(x)
	panels := []plots.Panel{{Title: "Total return", Unit: plots.Percent}, {Title: "Sharpe ratio (annual)"}}
	for i, st := range s.Strategies {
		y := [2][]float64{}
		for k := range y {
			y[k] = make([]float64, len(x))
			for j := range x {
				y[k][j] = math.NaN()
			}
		}
		found := false
		for _, r := range rows {
			if r.Strategy == st.Name {
				j, _ := slices.BinarySearch(x, r.X)
				y[0][j], y[1][j], found = float64(r.TotalReturn), float64(r.Sharpe), true
			}
		}
		if !found {
			continue
		}
		kind := plots.Other
		switch {
		case i == 0:
			kind = plots.Agent
		case st.Name == s.Benchmark:
			kind = plots.Benchmark
		case st.Role == Seed:
			kind = plots.Seed
		}
		for k := range panels {
			panels[k].Lines = append(panels[k].Lines, plots.Line{Name: st.Name, Kind: kind, Y: y[k]})
		}
	}
	return x, panels
}
