package performance

import (
	"math"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/stat"
)

// Returns gives the T simple returns between T+1 values. After a value of 0 nothing can be earned,
// and returns are 0.
func Returns(value []float64) []float64 {
	r := make([]float64, max(len(value)-1, 0))
	for t := range r {
		if value[t] != 0 {
			r[t] = value[t+1]/value[t] - 1
		}
	}
	return r
}

// Growth gives the T+1 values of 1 invested at the start. A missing return leaves the value as it
// was.
func Growth(r []float64) []float64 {
	v := make([]float64, len(r)+1)
	v[0] = 1
	for t, x := range r {
		if v[t+1] = v[t]; !math.IsNaN(x) {
			v[t+1] *= 1 + x
		}
	}
	return v
}

// Present returns the returns that are not missing: r itself where none is.
func Present(r []float64) []float64 {
	if !floats.HasNaN(r) {
		return r
	}
	kept := make([]float64, 0, len(r))
	for _, x := range r {
		if !math.IsNaN(x) {
			kept = append(kept, x)
		}
	}
	return kept
}

// TotalReturn compounds all returns: Π(1+r) − 1. It is 0 for no return.
func TotalReturn(r []float64) float64 {
	v := 1.0
	for _, x := range r {
		if !math.IsNaN(x) {
			v *= 1 + x
		}
	}
	return v - 1
}

// CAGR is the compound return per year of the calendar, Π(1+r)^(1/years) − 1. It is NaN for no
// return and for no time.
func CAGR(r []float64, years float64) float64 {
	if len(r) == 0 || !(years > 0) {
		return math.NaN()
	}
	return math.Pow(1+TotalReturn(r), 1/years) - 1
}

// Excess subtracts a rate per period from every return.
func Excess(r []float64, rate float64) []float64 {
	e := make([]float64, len(r))
	for i, x := range r {
		e[i] = x - rate
	}
	return e
}

// PerPeriod is the rate per period that compounds to a rate per year.
func PerPeriod(annual, periods float64) float64 { return math.Pow(1+annual, 1/periods) - 1 }

// Volatility is the standard deviation of a return, with n−1 degrees of freedom; times √periods it
// is annual. It is NaN below two returns.
func Volatility(r []float64) float64 {
	r = Present(r)
	if len(r) < 2 {
		return math.NaN()
	}
	return stat.StdDev(r, nil)
}

// spread is the standard deviation, and NaN where it is nothing but rounding: a division by it
// would make an arbitrary number.
func spread(r []float64) float64 {
	sd := Volatility(r)
	if !(sd > 1e-12*floats.Norm(r, math.Inf(1))) {
		return math.NaN()
	}
	return sd
}

// ratio is a/b, and NaN where b is 0.
func ratio(a, b float64) float64 {
	if b == 0 {
		return math.NaN()
	}
	return a / b
}
