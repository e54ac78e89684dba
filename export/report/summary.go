package report

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"gonum.org/v1/gonum/stat"

	"github.com/onnxrl/onnxrl/export/report/performance"
	"github.com/onnxrl/onnxrl/runtime/rng"
)

// Format and Version identify the JSON form of a Summary. Keys are only ever added within a
// version.
const (
	Format  = "onnxrl/report"
	Version = 1
)

// Summary is every number of a report. Its JSON form has stable keys; a number that does not exist
// is null.
type Summary struct {
	Format         string                   `json:"format"`
	Version        int                      `json:"version"`
	Title          string                   `json:"title"`
	Verdict        Verdict                  `json:"verdict"`
	Warnings       []string                 `json:"warnings"`
	Split          string                   `json:"split"`
	First          string                   `json:"first"` // dates of the first and the last value
	Last           string                   `json:"last"`
	Returns        int                      `json:"returns"`
	Assets         []string                 `json:"assets"`
	PeriodsPerYear float64                  `json:"periods_per_year"`
	PeriodsFrom    string                   `json:"periods_per_year_from"` // what the number is made of
	RiskFree       float64                  `json:"risk_free"`
	Benchmark      string                   `json:"benchmark"`
	Strategies     []Result                 `json:"strategies"`
	Deflated       performance.Deflated     `json:"deflated_sharpe"` // of the agent
	Counted        string                   `json:"trials_counted"`
	Bootstrap      Intervals                `json:"bootstrap"`
	Lag            []VariantResult          `json:"lag"`
	Cost           []VariantResult          `json:"cost"`
	Seeds          *Spread                  `json:"seeds"` // nil for fewer than two
	Conventions    []performance.Definition `json:"conventions"`
	LookAhead      []string                 `json:"look_ahead"`
	Seen           []string                 `json:"seen"` // what of the data the agent was trained on or chosen by
	Notes          []string                 `json:"notes"`
	Provenance     []KeyValue               `json:"provenance"`
	NextSteps      []Instruction            `json:"next_steps"`

	years float64 // of the calendar
}

// Result is what one strategy has done.
type Result struct {
	Name      string              `json:"name"`
	Role      Role                `json:"role"`
	Note      string              `json:"note"`
	Metrics   performance.Metrics `json:"metrics"`
	Drawdowns []Fall              `json:"worst_drawdowns"` // at most five, deepest first
	Months    []Month             `json:"months"`
	Years     []Month             `json:"years"`
	Actions   []ActionShare       `json:"actions"`
	Trades    *TradeSummary       `json:"trades"`   // nil where trades are unknown
	Holdings  *HoldingTimes       `json:"holdings"` // nil where weights are unknown
	Limits    []Limit             `json:"risk_limits,omitempty"`
}

// Fall is a drawdown with dates. Recovery is empty where there was none; Days are calendar days
// from the peak to it, or to the end.
type Fall struct {
	Depth    performance.Number `json:"depth"`
	Peak     string             `json:"peak"`
	Trough   string             `json:"trough"`
	Recovery string             `json:"recovery"`
	Days     int                `json:"days"`
}

// Month is the return of a part of the calendar. Month is 0 for a year.
type Month struct {
	Year   int                `json:"year"`
	Month  int                `json:"month"`
	Return performance.Number `json:"return"`
}

// ActionShare counts the decisions with one code.
type ActionShare struct {
	Name  string             `json:"name"`
	Count int                `json:"count"`
	Share performance.Number `json:"share"` // of all decisions
}

// Intervals are what the bootstrap says. Sharpe ratios are annual.
type Intervals struct {
	Resamples int                `json:"resamples"`
	Block     performance.Number `json:"block"` // mean length in returns
	Level     performance.Number `json:"level"`
	Rows      []IntervalRow      `json:"rows"` // one for each strategy
}

// IntervalRow holds the intervals of a strategy and of its differences from the benchmark in the
// same resamples.
type IntervalRow struct {
	Strategy         string               `json:"strategy"`
	Sharpe           performance.Interval `json:"sharpe"`
	TotalReturn      performance.Interval `json:"total_return"`
	SharpeDifference performance.Interval `json:"sharpe_difference"`
	ReturnDifference performance.Interval `json:"total_return_difference"`
}

// VariantResult measures a variant.
type VariantResult struct {
	Strategy    string             `json:"strategy"`
	X           float64            `json:"x"`
	TotalReturn performance.Number `json:"total_return"`
	CAGR        performance.Number `json:"cagr"`
	Volatility  performance.Number `json:"volatility"`
	Sharpe      performance.Number `json:"sharpe"`
	MaxDrawdown performance.Number `json:"max_drawdown"`
	// SharpeLoss is what a delay costs the agent: the Sharpe ratio as decided minus this one, with
	// its interval; nil for other variants.
	SharpeLoss *performance.Interval `json:"sharpe_loss,omitempty"`

	returns []float64
}

// Spread shows how much depends on the seed: the agent and the same agent trained with other seeds.
type Spread struct {
	Count int         `json:"count"`
	Rows  []SpreadRow `json:"rows"`
}

// SpreadRow is the spread of one metric.
type SpreadRow struct {
	*performance.Definition
	Mean              performance.Number `json:"mean"`
	Std               performance.Number `json:"std"`                // n−1
	InterquartileMean performance.Number `json:"interquartile_mean"` // of the middle half (Agarwal et al. 2021)
	Min               performance.Number `json:"min"`
	Max               performance.Number `json:"max"`
}

// headline are the metrics of the main table and of the spread over seeds, by key.
var headline = []string{"total_return", "cagr", "volatility", "sharpe", "sortino", "calmar", "max_drawdown", "turnover", "fees"}

// Summarise computes all numbers of a document.
func Summarise(doc Document) (*Summary, error) {
	if err := doc.Validate(); err != nil {
		return nil, err
	}
	d := doc.defaults()
	s := &Summary{
		Format: Format, Version: Version, Title: d.Title, Split: d.Split.Name, First: day(d.Dates[0]), Last: day(d.Dates[len(d.Dates)-1]), Returns: len(d.Dates) - 1, Assets: list(d.Assets),
		PeriodsPerYear: d.PeriodsPerYear, PeriodsFrom: d.PeriodsFrom, RiskFree: d.RiskFree, Benchmark: d.Strategies[d.Benchmark].Name, Counted: d.Trials.Counted, Conventions: performance.Definitions(),
		LookAhead: list(d.LookAhead), Seen: list(d.Seen), Notes: list(d.Notes), Provenance: list(d.Provenance), NextSteps: list(d.NextSteps), years: performance.Years(d.Dates),
	}
	rate := performance.PerPeriod(d.RiskFree, d.PeriodsPerYear)
	records := make([][]float64, len(d.Strategies))
	for i := range d.Strategies {
		r, err := d.result(i)
		if err != nil {
			return nil, fmt.Errorf("report: strategy %q: %w", d.Strategies[i].Name, err)
		}
		s.Strategies = append(s.Strategies, r)
		records[i] = performance.Returns(d.Strategies[i].Value)
	}
	s.Deflated = performance.DeflatedSharpe(performance.Excess(records[0], rate), d.Trials.Count, d.Trials.SharpeVariance)
	draws, err := performance.Resample(records, rate, performance.Plan{Resamples: d.Bootstrap.Resamples, Block: d.Bootstrap.Block, Key: rng.New(d.Bootstrap.Seed).Split("report/bootstrap")})
	if err != nil {
		return nil, fmt.Errorf("report: %w", err)
	}
	s.Bootstrap = d.intervals(s.Strategies, draws)
	s.Lag, s.Cost = d.variants(d.Lag, rate), d.variants(d.Cost, rate)
	if err := d.lost(s, rate, draws.Block); err != nil {
		return nil, err
	}
	s.Seeds = spreadOf(s.Strategies)
	s.Verdict = newVerdict(s, d.Benchmark)
	s.Warnings = warn(s)
	return s, nil
}

func (d *Document) result(i int) (Result, error) {
	st := &d.Strategies[i]
	in := performance.Input{Dates: d.Dates, Value: st.Value, Cash: st.Cash, Turnover: st.Turnover, Fees: st.Fees, PeriodsPerYear: d.PeriodsPerYear, RiskFree: d.RiskFree}
	if i != d.Benchmark {
		in.Benchmark = d.Strategies[d.Benchmark].Value
	}
	m, err := performance.Measure(in)
	if err != nil {
		return Result{}, err
	}
	r := Result{Name: st.Name, Role: st.Role, Note: st.Note, Limits: st.Limits, Metrics: m, Drawdowns: []Fall{}, Actions: d.actions(st), Trades: d.trades(st), Holdings: d.holdings(st), Months: months(performance.Spans(d.Dates, st.Value, 1)), Years: months(performance.Spans(d.Dates, st.Value, 12))}
	for _, w := range performance.Worst(performance.Drawdowns(st.Value), 5) {
		f := Fall{Depth: performance.Number(w.Depth), Peak: day(d.Dates[w.Peak]), Trough: day(d.Dates[w.Trough]), Days: w.Days(d.Dates)}
		if w.End >= 0 {
			f.Recovery = day(d.Dates[w.End])
		}
		r.Drawdowns = append(r.Drawdowns, f)
	}
	for k := range r.Years {
		r.Years[k].Month = 0
	}
	return r, nil
}

func months(spans []performance.Span) []Month {
	all := make([]Month, len(spans))
	for i, s := range spans {
		all[i] = Month{s.Year, s.Number, performance.Number(s.Return)}
	}
	return all
}

func (d *Document) actions(s *Strategy) []ActionShare {
	all := []ActionShare{}
	if s.Actions == nil {
		return all
	}
	total := 0
	counts := make([]int, len(d.Actions))
	for _, a := range s.Actions {
		if a >= 0 {
			counts[a]++
			total++
		}
	}
	for i, name := range d.Actions {
		share := math.NaN()
		if total > 0 {
			share = float64(counts[i]) / float64(total)
		}
		all = append(all, ActionShare{name, counts[i], performance.Number(share)})
	}
	return all
}

func (d *Document) intervals(results []Result, draws *performance.Draws) Intervals {
	iv := Intervals{Resamples: d.Bootstrap.Resamples, Block: performance.Number(draws.Block), Level: performance.Number(d.Bootstrap.Level)}
	root := math.Sqrt(d.PeriodsPerYear)
	difference := make([]float64, d.Bootstrap.Resamples)
	compare := func(all [][]float64, i int, key string, scale float64) performance.Interval {
		for b := range difference {
			difference[b] = all[i][b] - all[d.Benchmark][b]
		}
		point := results[i].Metrics.Get(key) - results[d.Benchmark].Metrics.Get(key)
		return performance.IntervalOf(point/scale, difference, d.Bootstrap.Level).Scale(scale)
	}
	for i := range results {
		m := results[i].Metrics
		iv.Rows = append(iv.Rows, IntervalRow{
			Strategy:         results[i].Name,
			Sharpe:           performance.IntervalOf(m.Get("sharpe")/root, draws.Sharpe[i], d.Bootstrap.Level).Scale(root),
			TotalReturn:      performance.IntervalOf(m.Get("total_return"), draws.TotalReturn[i], d.Bootstrap.Level),
			SharpeDifference: compare(draws.Sharpe, i, "sharpe", root),
			ReturnDifference: compare(draws.TotalReturn, i, "total_return", 1),
		})
	}
	return iv
}

// variants measures them, ordered by strategy and by X.
func (d *Document) variants(all []Variant, rate float64) []VariantResult {
	sorted := []VariantResult{}
	for _, s := range d.Strategies {
		from := len(sorted)
		for _, v := range all {
			if v.Strategy == s.Name {
				sorted = append(sorted, d.variant(v, rate))
			}
		}
		slices.SortStableFunc(sorted[from:], func(a, b VariantResult) int { return cmp.Compare(a.X, b.X) })
	}
	return sorted
}

func (d *Document) variant(v Variant, rate float64) VariantResult {
	r := performance.Returns(v.Value)
	root := math.Sqrt(d.PeriodsPerYear)
	n := func(x float64) performance.Number { return performance.Number(x) }
	return VariantResult{
		Strategy: v.Strategy, X: v.X, returns: r, TotalReturn: n(performance.TotalReturn(r)), CAGR: n(performance.CAGR(r, performance.Years(d.Dates))), Volatility: n(performance.Volatility(r) * root),
		Sharpe: n(performance.Sharpe(performance.Excess(r, rate)) * root), MaxDrawdown: n(performance.MaxDrawdown(v.Value)),
	}
}

func spreadOf(results []Result) *Spread {
	var runs []Result
	for _, r := range results {
		if r.Role != Baseline {
			runs = append(runs, r)
		}
	}
	if len(runs) < 2 {
		return nil
	}
	s := &Spread{Count: len(runs)}
	for _, key := range append(headline[:len(headline):len(headline)], "excess_return") {
		var x []float64
		var def *performance.Definition
		for _, r := range runs {
			for _, m := range r.Metrics {
				if m.Key == key {
					def = m.Definition
					if m.Value.Defined() {
						x = append(x, float64(m.Value))
					}
				}
			}
		}
		n := func(f func() float64) performance.Number {
			if len(x) < 2 {
				return performance.Number(math.NaN())
			}
			return performance.Number(f())
		}
		s.Rows = append(s.Rows, SpreadRow{
			Definition: def,
			Mean:       n(func() float64 { return stat.Mean(x, nil) }), Std: n(func() float64 { return stat.StdDev(x, nil) }), InterquartileMean: n(func() float64 { return performance.InterquartileMean(x) }),
			Min: n(func() float64 { return performance.Quantile(x, 0) }), Max: n(func() float64 { return performance.Quantile(x, 1) }),
		})
	}
	return s
}

func day(t time.Time) string { return t.Format(time.DateOnly) }

// list makes nil an empty list, which JSON writes as [].
func list[T any](x []T) []T {
	if x == nil {
		return []T{}
	}
	return x
}
