package ablate

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"

	"github.com/onnxrl/onnxrl/agents/study"
	"github.com/onnxrl/onnxrl/export/report/performance"
)

// Confidence is that of all intervals, each by itself: they do not account for the number of
// comparisons.
const Confidence = 0.95

// Stat is a metric over the seeds of a cell, or of a level. The JSON keys are stable.
type Stat struct {
	// Mean and Std, the sample standard deviation, are over the seeds.
	Mean performance.Number `json:"mean"`
	Std  performance.Number `json:"std"`
	// Diff is the mean over the seeds that both have of the difference to the base, and Low to High
	// its interval: Student's t of the paired differences. They are NaN for the base; the interval
	// is NaN for fewer than two pairs.
	Diff  performance.Number `json:"diff"`
	Low   performance.Number `json:"diff_low"`
	High  performance.Number `json:"diff_high"`
	Pairs int                `json:"pairs"`
	// Undefined counts finished runs for which the metric is undefined, as the Sharpe ratio of a
	// portfolio that never changes is. Leaving them out would praise what they are of, so the
	// other numbers are then NaN.
	Undefined int `json:"undefined,omitempty"`
}

// Clear reports whether the interval leaves zero out.
func (s Stat) Clear() bool { return s.Low > 0 || s.High < 0 }

// Row is one cell of the summary.
type Row struct {
	Cell string `json:"cell"`
	// Levels are those of all factors, Differs the names of the factors that the base has
	// otherwise.
	Levels  []string `json:"levels"`
	Differs []string `json:"differs"`
	// LookAhead says what in the cell's runs knows the future: its results cannot be earned.
	LookAhead []string `json:"look_ahead,omitempty"`
	// Done counts the seeds that are finished, Failed those that failed.
	Done   int `json:"done"`
	Failed int `json:"failed"`
	// Stats are in the order of the study's metrics.
	Stats []Stat `json:"stats"`
}

// Effect is one level of a factor, over all cells that have it: each seed's value is the mean over
// these cells. In a study of one factor at a time it is the cell of that level.
type Effect struct {
	Factor string `json:"factor"`
	Level  string `json:"level"`
	Base   bool   `json:"base"`
	Cells  int    `json:"cells"`
	Stats  []Stat `json:"stats"`
	// Values are those of the first metric by seed, in the study's order; NaN where a cell is not
	// finished.
	Values []performance.Number `json:"values"`
}

// Summary is what a study found. The JSON keys are stable.
type Summary struct {
	Base string `json:"base"`
	Full bool   `json:"full"`
	// Done counts the finished runs; Complete says that all are.
	Done     int      `json:"runs_done"`
	Complete bool     `json:"complete"`
	Seeds    []uint64 `json:"seeds"`
	Metrics  []string `json:"metrics"`
	// From to To is the validation range, in Bars bars, where the environment has dates, and Varies
	// says that cells were evaluated on different ones, which makes them incomparable.
	From   string `json:"from"`
	To     string `json:"to"`
	Bars   int    `json:"bars"`
	Varies bool   `json:"ranges_differ"`
	// Reference is the bar to beat, in the base's environment; empty until the base has a finished
	// run.
	ReferenceName string               `json:"reference_name,omitempty"`
	Reference     []performance.Number `json:"reference,omitempty"`
	Factors       []string             `json:"factors"`
	Rows          []Row                `json:"rows"`
	Effects       []Effect             `json:"effects"`
}

// Summarize compares what is finished.
func (s *Study) Summarize() *Summary {
	p := s.Plan
	sum := &Summary{Base: p.Study.Base, Full: p.Full, Complete: true, Seeds: p.Seeds, Metrics: p.Study.Metrics}
	// values[cell][metric][seed]
	values, undefined := make([][][]float64, len(p.Cells)), make([][]int, len(p.Cells))
	for i := range values {
		undefined[i] = make([]int, len(sum.Metrics))
		values[i] = make([][]float64, len(sum.Metrics))
		for m := range sum.Metrics {
			values[i][m] = slices.Repeat([]float64{math.NaN()}, len(p.Seeds))
		}
	}
	rows := make([]Row, len(p.Cells))
	for _, r := range s.Runs() {
		if r.State == study.Failed {
			rows[r.CellIndex].Failed++
		}
		if r.Outcome == nil {
			sum.Complete = false
			continue
		}
		rows[r.CellIndex].Done++
		rows[r.CellIndex].LookAhead = r.Outcome.LookAhead
		sum.Done++
		for m, name := range sum.Metrics {
			v, ok := r.Outcome.Metrics[name]
			if !ok || !v.Defined() {
				undefined[r.CellIndex][m]++
				continue
			}
			values[r.CellIndex][m][r.SeedIndex] = float64(v)
		}
		sum.ranges(r.Outcome, r.CellIndex == 0)
	}
	for _, f := range p.Factors {
		sum.Factors = append(sum.Factors, f.Name)
	}
	for i := range p.Cells {
		c, row := &p.Cells[i], &rows[i]
		row.Cell, row.Differs = c.Name, []string{}
		for f, l := range c.Levels {
			row.Levels = append(row.Levels, p.Factors[f].Levels[l])
		}
		for _, f := range p.Differs(c) {
			row.Differs = append(row.Differs, p.Factors[f].Name)
		}
		for m := range sum.Metrics {
			row.Stats = append(row.Stats, newStat(values[i][m], values[0][m], i == 0).unless(undefined[i][m], undefined[0][m]))
		}
	}
	sum.Rows = rows
	for f := range p.Factors {
		sum.Effects = append(sum.Effects, effects(p, f, values, undefined)...)
	}
	return sum
}

// ranges takes over on what range a run was evaluated, and the reference of the base.
func (sum *Summary) ranges(o *Outcome, base bool) {
	switch {
	case sum.Done == 1:
		sum.From, sum.To, sum.Bars = o.From, o.To, o.Bars
	case sum.From != o.From || sum.To != o.To || sum.Bars != o.Bars:
		sum.Varies = true
	}
	if !base || sum.Reference != nil || len(o.Reference) == 0 {
		return
	}
	sum.ReferenceName = o.ReferenceName
	for _, name := range sum.Metrics {
		v, ok := o.Reference[name]
		if !ok {
			v = performance.Number(math.NaN())
		}
		sum.Reference = append(sum.Reference, v)
	}
}

// effects are the levels of a factor over all other factors' levels.
func effects(p *Plan, f int, values [][][]float64, undefined [][]int) []Effect {
	list, metrics := make([]Effect, len(p.Factors[f].Levels)), len(p.Study.Metrics)
	means, missing := make([][][]float64, len(list)), make([][]int, len(list))
	for l, name := range p.Factors[f].Levels {
		e := &list[l]
		*e = Effect{Factor: p.Factors[f].Name, Level: name, Base: l == p.Factors[f].Base}
		means[l], missing[l] = make([][]float64, metrics), make([]int, metrics)
		for m := range metrics {
			means[l][m] = make([]float64, len(p.Seeds))
		}
		for i := range p.Cells {
			// One factor at a time, the base stands for the base's level alone.
			if p.Cells[i].Levels[f] != l || !p.Full && e.Base && i > 0 {
				continue
			}
			e.Cells++
			for m := range metrics {
				missing[l][m] += undefined[i][m]
				for s, v := range values[i][m] {
					means[l][m][s] += v
				}
			}
		}
		for m := range metrics {
			for s := range means[l][m] {
				means[l][m][s] /= float64(e.Cells)
			}
		}
	}
	for l := range list {
		for m := range metrics {
			base := p.Factors[f].Base
			list[l].Stats = append(list[l].Stats, newStat(means[l][m], means[base][m], list[l].Base).unless(missing[l][m], missing[base][m]))
		}
		for _, v := range means[l][0] {
			list[l].Values = append(list[l].Values, performance.Number(v))
		}
	}
	return list
}

// newStat compares the values of seeds with the base's; NaN is a seed without a value.
func newStat(x, base []float64, isBase bool) Stat {
	nan := performance.Number(math.NaN())
	s := Stat{Mean: nan, Std: nan, Diff: nan, Low: nan, High: nan}
	var have, diffs []float64
	for i, v := range x {
		if math.IsNaN(v) {
			continue
		}
		have = append(have, v)
		if !isBase && !math.IsNaN(base[i]) {
			diffs = append(diffs, v-base[i])
		}
	}
	if len(have) > 0 {
		s.Mean = performance.Number(stat.Mean(have, nil))
	}
	if len(have) > 1 {
		s.Std = performance.Number(stat.StdDev(have, nil))
	}
	s.Pairs = len(diffs)
	if len(diffs) > 0 {
		s.Diff = performance.Number(stat.Mean(diffs, nil))
	}
	if n := float64(len(diffs)); n > 1 {
		half := distuv.StudentsT{Mu: 0, Sigma: 1, Nu: n - 1}.Quantile((1+Confidence)/2) * stat.StdDev(diffs, nil) / math.Sqrt(n)
		s.Low, s.High = s.Diff-performance.Number(half), s.Diff+performance.Number(half)
	}
	return s
}

// unless withholds the numbers of a level for which some finished runs have no value, and
// differences from a base for which some have none.
func (s Stat) unless(undefined, ofBase int) Stat {
	nan := performance.Number(math.NaN())
	if s.Undefined = undefined; undefined > 0 {
		s.Mean, s.Std = nan, nan
	}
	if undefined > 0 || ofBase > 0 {
		s.Diff, s.Low, s.High, s.Pairs = nan, nan, nan, 0
	}
	return s
}
