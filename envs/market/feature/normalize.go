package feature

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/onnxrl/onnxrl/configs"
	"github.com/onnxrl/onnxrl/envs/market/bars"
)

// Normalization says how features are scaled.
type Normalization struct {
	// Method is zscore or none.
	Method string `yaml:"method" json:"method"`
	// FitOn is train, or all, which looks ahead: the statistics then contain validation and test
	// data.
	FitOn string `yaml:"fit_on" json:"fit_on"`
	// Include are the groups that are scaled: OHLCV, indicators, extra.
	Include []string `yaml:"include" json:"include"`
	// Clip limits scaled values to ±Clip; 0 leaves them alone.
	Clip float64 `yaml:"clip" json:"clip"`
}

// DefaultNormalization is that of the QTMRL specification.
func DefaultNormalization() Normalization {
	return Normalization{Method: "zscore", FitOn: "train", Include: []string{OHLCV, Indicators}}
}

// Validate reports what is wrong with the fields.
func (c Normalization) Validate() error {
	var p configs.Problems
	p.OneOf("method", c.Method, "zscore", "none")
	p.OneOf("fit_on", c.FitOn, "train", "all")
	for i, g := range c.Include {
		p.OneOf(fmt.Sprintf("include[%d]", i), g, OHLCV, Indicators, Extra)
	}
	p.NonNegative("clip", c.Clip)
	return p.Err()
}

// Statistic is what a column is scaled by. Count, Min and Max describe the rows it was fitted on.
type Statistic struct {
	Mean  float64 `json:"mean"`
	Std   float64 `json:"std"`
	Clip  float64 `json:"clip,omitempty"`
	Count int     `json:"count"`
	Min   float64 `json:"min"`
	Max   float64 `json:"max"`
	// Scaled says that Apply changes values. Constant columns become 0.
	Scaled   bool `json:"scaled"`
	Constant bool `json:"constant,omitempty"`
}

// Apply scales a value of a defined row.
func (s *Statistic) Apply(x float64) float32 {
	if !s.Scaled {
		return float32(x)
	}
	z := (x - s.Mean) / s.Std
	if s.Clip > 0 {
		z = max(-s.Clip, min(s.Clip, z))
	}
	return float32(z)
}

// moments are running sums of one column in Welford's form.
type moments struct {
	n                  float64
	mean, m2, min, max float64
}

func (m *moments) add(x float64) {
	if m.n == 0 {
		m.min, m.max = x, x
	}
	m.n++
	d := x - m.mean
	m.mean += d / m.n
	m.m2 += d * (x - m.mean)
	m.min, m.max = min(m.min, x), max(m.max, x)
}

// merge joins another set of rows (Chan, Golub, LeVeque 1979).
func (m *moments) merge(o moments) {
	if o.n == 0 {
		return
	}
	if m.n == 0 {
		*m = o
		return
	}
	n := m.n + o.n
	d := o.mean - m.mean
	m.mean += d * o.n / n
	m.m2 += o.m2 + d*d*m.n*o.n/n
	m.n, m.min, m.max = n, min(m.min, o.min), max(m.max, o.max)
}

// Fit computes the statistics of every column over the defined rows of the times lo..hi-1, hi not
// included, of all assets. The deviation is that of the population. A range without any defined row
// is an error that names the columns that keep it so.
func Fit(f *Features, p *bars.Panel, c Normalization, lo, hi int, without ...[2]int) ([]Statistic, error) {
	return FitAssets(f, len(p.Symbols), func(n int) (*bars.Panel, int) { return p, n }, c, lo, hi, without...)
}

// FitAssets is [Fit] over so many assets, each of which asset gives in a panel with all times, at a
// position that it tells.
func FitAssets(f *Features, assets int, asset func(n int) (*bars.Panel, int), c Normalization, lo, hi int, without ...[2]int) ([]Statistic, error) {
	if err := configs.Validate(c); err != nil {
		return nil, fmt.Errorf("normalise: %w", err)
	}
	total := make([]moments, len(f.columns))
	for n := range assets {
		one := make([]moments, len(f.columns))
		p, at := asset(n)
		f.Rows(p, at, func(t int, row []float64, defined bool) {
			if !defined || t < lo || t >= hi || slices.ContainsFunc(without, func(g [2]int) bool { return g[0] <= t && t < g[1] }) {
				return
			}
			for i, x := range row {
				one[i].add(x)
			}
		})
		for i := range total {
			total[i].merge(one[i])
		}
	}
	if total[0].n == 0 {
		return nil, undefinedError(f, assets, asset, lo, hi)
	}
	stats := make([]Statistic, len(f.columns))
	for i, m := range total {
		s := Statistic{Count: int(m.n), Min: m.min, Max: m.max, Std: 1}
		if c.Method == "zscore" && slices.Contains(c.Include, f.columns[i].Group) {
			s.Scaled, s.Clip, s.Mean, s.Std = true, c.Clip, m.mean, math.Sqrt(m.m2/m.n)
			if s.Constant = m.min == m.max; s.Constant {
				s.Mean, s.Std = m.min, 1
			}
		}
		stats[i] = s
	}
	return stats, nil
}

// undefinedError says why no row between lo and hi is defined.
func undefinedError(f *Features, assets int, asset func(n int) (*bars.Panel, int), lo, hi int) error {
	longest := 0
	var times []time.Time
	values := make([]int, len(f.columns))
	for n := range assets {
		p, n := asset(n)
		times = p.Times
		s, row, count := f.Stream(), make([]float64, len(f.columns)), 0
		for t := range min(hi, len(p.Times)) {
			i := p.Index(t, n)
			if p.Status[i] == bars.Unlisted {
				continue
			}
			count++
			s.Raw(&p.Bars[i], p.ExtraAt(t, n), p.Status[i], row)
			for c, v := range row {
				if t >= lo && v-v == 0 {
					values[c]++
				}
			}
		}
		longest = max(longest, count)
	}
	var names []string
	for i, n := range values {
		switch need := f.columns[i].Warmup + 1; {
		case n > 0:
		case need > longest:
			names = append(names, fmt.Sprintf("%s (needs %d bars)", f.columns[i].Name, need))
		default:
			names = append(names, f.columns[i].Name+" (blank or undefined in every row)")
		}
	}
	span := fmt.Sprintf("%s to %s", bars.NewDate(times[lo]), bars.NewDate(times[hi-1]))
	if len(names) == 0 {
		return fmt.Errorf("normalise: no stock has all its features defined at once from %s", span)
	}
	return fmt.Errorf("normalise: from %s these features have no value for any stock: %v; no stock has more than %d bars by then", span, names, longest)
}
