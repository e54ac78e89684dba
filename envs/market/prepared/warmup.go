package prepared

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/onnxrl/onnxrl/envs/market/bars"
)

// DefaultStarts are the lengths of history that Warmup compares.
var DefaultStarts = []int{199, 399, 499, 999, 1999}

// WarmupReport says how much history every feature needs.
type WarmupReport struct {
	Starts    []int           `json:"starts"`
	Tolerance float64         `json:"tolerance"`
	Features  []WarmupFeature `json:"features"`
	// Points is the number of times and symbols at which values were compared.
	Points int `json:"points"`
}

// WarmupFeature is one row of the report.
type WarmupFeature struct {
	Name string `json:"name"`
	// Warmup is the number of bars before the first value.
	Warmup int `json:"warmup"`
	// Difference is, for each of Starts, the largest difference between the value computed from so
	// many bars and the one computed from all, in standard deviations of the feature. It is
	// negative where no stock has enough bars.
	Difference []float64 `json:"difference"`
	// Needs is the least of Starts from which on the difference is within the tolerance; 0 where it
	// never is.
	Needs int `json:"needs"`
}

// Unsettled names the features that still depend on the beginning of the data at the longest
// history.
func (r *WarmupReport) Unsettled() []string {
	var names []string
	for _, f := range r.Features {
		if f.Needs == 0 {
			names = append(names, f.Name)
		}
	}
	return names
}

// warmupEnds is the number of times per symbol at which values are compared.
const warmupEnds = 5

// Warmup computes every feature from the last bars only and compares it with its value from all
// bars. starts are the numbers of bars, ascending; tolerance is in standard deviations of the
// feature.
func Warmup(ctx context.Context, c Config, data *bars.Data, starts []int, tolerance float64) (*WarmupReport, error) {
	if len(starts) == 0 || !slices.IsSorted(starts) || starts[0] < 1 || !(tolerance > 0) {
		return nil, fmt.Errorf("warmup: starts %v must be positive and ascending, and the tolerance, %v, positive", starts, tolerance)
	}
	a, err := align(c, data)
	if err != nil {
		return nil, fmt.Errorf("warmup: %w", err)
	}
	cols := a.features.Columns()
	r := &WarmupReport{Starts: starts, Tolerance: tolerance}
	for _, col := range cols {
		if col.Group == "listed" {
			continue
		}
		f := WarmupFeature{Name: col.Name, Warmup: col.Warmup, Difference: make([]float64, len(starts))}
		for i := range starts {
			f.Difference[i] = -1
		}
		r.Features = append(r.Features, f)
	}
	for n := range a.panel.Symbols {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		r.symbol(a, n)
	}
	for i := range r.Features {
		f := &r.Features[i]
		for s := len(starts) - 1; s >= 0 && f.Difference[s] <= tolerance; s-- {
			if f.Difference[s] >= 0 {
				f.Needs = starts[s]
			}
		}
	}
	if r.Points == 0 {
		return nil, fmt.Errorf("warmup: no stock has more than %d bars; give shorter starts", starts[0])
	}
	return r, nil
}

// symbol compares one symbol's values at several times.
func (r *WarmupReport) symbol(a *aligned, n int) {
	p := a.panel
	first := 0
	for first < len(p.Times) && p.Status[p.Index(first, n)] == bars.Unlisted {
		first++
	}
	width := len(a.features.Columns())
	run := func(from, to int, visit func(t int, row []float64)) {
		s, row := a.features.Stream(), make([]float64, width)
		for t := from; t <= to; t++ {
			i := p.Index(t, n)
			s.Raw(&p.Bars[i], p.ExtraAt(t, n), p.Status[i], row)
			visit(t, row)
		}
	}
	// The full run gives the values to compare with and the spread of each feature.
	// Values are compared where the stock is traded: after it is gone nobody uses them.
	var traded []int
	for t := range p.Times {
		if p.Status[p.Index(t, n)] == bars.Traded {
			traded = append(traded, t)
		}
	}
	ends := map[int][]float64{}
	for k := 1; k <= warmupEnds && len(traded) >= warmupEnds; k++ {
		ends[traded[len(traded)*k/warmupEnds-1]] = nil
	}
	sum, square, seen := make([]float64, width), make([]float64, width), make([]float64, width)
	if len(ends) > 0 {
		run(first, len(p.Times)-1, func(t int, row []float64) {
			if _, ok := ends[t]; ok {
				ends[t] = slices.Clone(row)
			}
			for i, v := range row {
				if v-v == 0 {
					sum[i], square[i], seen[i] = sum[i]+v, square[i]+v*v, seen[i]+1
				}
			}
		})
	}
	for si, start := range r.Starts {
		for end, full := range ends {
			if full == nil || end-start+1 <= first {
				continue // not enough bars to take some away
			}
			r.Points++
			run(end-start+1, end, func(t int, row []float64) {
				if t != end {
					return
				}
				for i := range r.Features {
					mean := sum[i] / max(seen[i], 1)
					spread := math.Sqrt(max(square[i]/max(seen[i], 1)-mean*mean, 0))
					d := difference(row[i], full[i], spread)
					r.Features[i].Difference[si] = max(r.Features[i].Difference[si], d)
				}
			})
		}
	}
}

// difference is in units of spread; infinite where only one value is defined.
func difference(a, b, spread float64) float64 {
	switch {
	case a == b || math.IsNaN(a) && math.IsNaN(b):
		return 0
	case math.IsNaN(a) || math.IsNaN(b) || spread == 0:
		return math.MaxFloat64
	}
	return math.Abs(a-b) / spread
}
