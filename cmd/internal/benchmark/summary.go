package benchmark

import "slices"

// Summary describes a set of samples.
type Summary struct {
	N    int     `json:"n"`
	Min  float64 `json:"min"`
	P10  float64 `json:"p10"`
	P50  float64 `json:"p50"`
	P90  float64 `json:"p90"`
	P99  float64 `json:"p99"`
	P999 float64 `json:"p99_9"`
	Max  float64 `json:"max"`
	Mean float64 `json:"mean"`
}

// Summarize describes samples, of which there must be some.
func Summarize(x []float64) *Summary {
	x = slices.Sorted(slices.Values(x))
	sum := 0.0
	for _, v := range x {
		sum += v
	}
	return &Summary{
		N: len(x), Min: x[0], P10: Quantile(x, 0.1), P50: Quantile(x, 0.5), P90: Quantile(x, 0.9), P99: Quantile(x, 0.99), P999: Quantile(x, 0.999),
		Max: x[len(x)-1], Mean: sum / float64(len(x)),
	}
}

// Quantile of sorted, non-empty samples, interpolated between neighbours.
func Quantile(x []float64, q float64) float64 {
	at := q * float64(len(x)-1)
	i := int(at)
	if i+1 >= len(x) {
		return x[len(x)-1]
	}
	return x[i] + (at-float64(i))*(x[i+1]-x[i])
}

// Median of samples in any order, of which there must be some.
func Median(x []float64) float64 { return Quantile(slices.Sorted(slices.Values(x)), 0.5) }
