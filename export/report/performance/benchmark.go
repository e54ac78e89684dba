package performance

import (
	"math"

	"gonum.org/v1/gonum/stat"
)

// paired returns the returns of both where neither is missing. It panics when the lengths differ.
func paired(r, b []float64) (x, y []float64) {
	if len(r) != len(b) {
		panic("performance: returns of unequal length")
	}
	x, y = make([]float64, 0, len(r)), make([]float64, 0, len(r))
	for i := range r {
		if !math.IsNaN(r[i]) && !math.IsNaN(b[i]) {
			x, y = append(x, r[i]), append(y, b[i])
		}
	}
	return x, y
}

// Beta is the slope of excess returns over those of the benchmark. It is NaN where the benchmark
// does not vary.
func Beta(r, b []float64) float64 {
	x, y := paired(r, b)
	if math.IsNaN(spread(y)) {
		return math.NaN()
	}
	return stat.Covariance(x, y, nil) / stat.Variance(y, nil)
}

// Alpha is what excess returns have above beta times those of the benchmark (Jensen 1968),
// compounded over a year: (1+mean)^periods − 1.
func Alpha(r, b []float64, periods float64) float64 {
	x, y := paired(r, b)
	return math.Pow(1+mean(x)-Beta(r, b)*mean(y), periods) - 1
}

// Correlation is Pearson's correlation of returns with those of the benchmark.
func Correlation(r, b []float64) float64 { return correlation(paired(r, b)) }

// Active gives the differences of returns from those of the benchmark.
func Active(r, b []float64) []float64 {
	x, y := paired(r, b)
	for i := range x {
		x[i] -= y[i]
	}
	return x
}

// InformationRatio is the mean of active returns over their standard deviation (n−1), per period;
// times √periods it is annual.
func InformationRatio(r, b []float64) float64 {
	a := Active(r, b)
	return ratio(mean(a), spread(a))
}

// Capture is the compound return per period over those periods in which the benchmark's return has
// the given sign, over that of the benchmark. It is NaN where there are none.
func Capture(r, b []float64, sign float64) float64 {
	x, y := paired(r, b)
	own, other, n := 1.0, 1.0, 0
	for i := range x {
		if y[i]*sign > 0 {
			own, other, n = own*(1+x[i]), other*(1+y[i]), n+1
		}
	}
	if n == 0 {
		return math.NaN()
	}
	return ratio(math.Pow(own, 1/float64(n))-1, math.Pow(other, 1/float64(n))-1)
}
