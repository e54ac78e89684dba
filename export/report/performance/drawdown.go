package performance

import (
	"math"
	"slices"
	"time"
)

// Underwater gives how far each of the T+1 values lies below the highest so far, as a fraction ≤ 0.
func Underwater(value []float64) []float64 {
	d := make([]float64, len(value))
	peak := math.Inf(-1)
	for t, v := range value {
		peak = max(peak, v)
		if peak > 0 {
			d[t] = v/peak - 1
		}
	}
	return d
}

// MaxDrawdown is the largest loss from a peak to a later value, as a fraction ≤ 0. The value at the
// start counts as a peak.
func MaxDrawdown(value []float64) float64 {
	peak, worst := math.Inf(-1), 0.0
	for _, v := range value {
		peak = max(peak, v)
		if peak > 0 {
			worst = min(worst, (v-peak)/peak)
		}
	}
	return worst
}

// Drawdown is a time below a peak. Positions are those of the record's values.
type Drawdown struct {
	Peak   int     // the last value at the peak
	Trough int     // the first lowest value
	End    int     // the first value back at the peak, or −1 when it was not reached again
	Depth  float64 // ≤ 0
}

// Drawdowns lists all times below a peak, in order of time.
func Drawdowns(value []float64) []Drawdown {
	var all []Drawdown
	peak, open := 0, false
	for t, v := range value {
		switch {
		case v >= value[peak]:
			if open {
				all[len(all)-1].End = t
			}
			peak, open = t, false
		case !open:
			all, open = append(all, Drawdown{Peak: peak, Trough: t, End: -1, Depth: v/value[peak] - 1}), true
		default:
			if d := &all[len(all)-1]; v/value[peak]-1 < d.Depth {
				d.Trough, d.Depth = t, v/value[peak]-1
			}
		}
	}
	return all
}

// Worst returns the deepest k drawdowns, deepest first; equal ones in order of time.
func Worst(all []Drawdown, k int) []Drawdown {
	sorted := slices.Clone(all)
	slices.SortStableFunc(sorted, func(a, b Drawdown) int {
		switch {
		case a.Depth < b.Depth:
			return -1
		case a.Depth > b.Depth:
			return 1
		}
		return 0
	})
	return sorted[:min(k, len(sorted))]
}

// Days is the number of calendar days from the peak to the recovery, or to the last date where
// there was none.
func (d Drawdown) Days(dates []time.Time) int {
	end := d.End
	if end < 0 {
		end = len(dates) - 1
	}
	return days(dates[d.Peak], dates[end])
}

// days counts midnights: the hours of a clock change do not matter.
func days(from, to time.Time) int {
	y, m, d := from.Date()
	a := time.Date(y, m, d, 0, 0, 0, 0, time.UTC)
	y, m, d = to.Date()
	return int(Hours(a, time.Date(y, m, d, 0, 0, 0, 0, time.UTC)) / 24)
}

// UlcerIndex is the root of the mean of squared drawdowns over the T+1 values (Martin & McCann
// 1989), as a fraction.
func UlcerIndex(value []float64) float64 {
	if len(value) == 0 {
		return math.NaN()
	}
	var sum float64
	for _, d := range Underwater(value) {
		sum += d * d
	}
	return math.Sqrt(sum / float64(len(value)))
}
