package performance

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"
)

// Quantile interpolates linearly between order statistics, (n−1)p apart from the first: NumPy's
// default, type 7 of Hyndman & Fan 1996. It is NaN for an empty sample.
func Quantile(x []float64, p float64) float64 {
	x = slices.Sorted(slices.Values(Present(x)))
	return sortedQuantile(x, p)
}

func sortedQuantile(x []float64, p float64) float64 {
	if len(x) == 0 {
		return math.NaN()
	}
	at := p * float64(len(x)-1)
	i := min(int(at), len(x)-1)
	if i == len(x)-1 {
		return x[i]
	}
	f := at - float64(i)
	if f == 0 {
		return x[i]
	}
	return x[i] + f*(x[i+1]-x[i])
}

// ValueAtRisk is the quantile of returns at a cutoff such as 0.05, a negative number for a loss
// (empyrical).
func ValueAtRisk(r []float64, cutoff float64) float64 { return Quantile(r, cutoff) }

// ConditionalValueAtRisk is the mean of returns not above the value at risk (empyrical): the
// expected shortfall.
func ConditionalValueAtRisk(r []float64, cutoff float64) float64 {
	limit := ValueAtRisk(r, cutoff)
	return meanWhere(r, func(x float64) bool { return x <= limit })
}

// NormalValueAtRisk is the quantile of a normal distribution with the mean and standard deviation
// (n−1) of the returns (QuantStats).
func NormalValueAtRisk(r []float64, cutoff float64) float64 {
	return mean(Present(r)) + distuv.UnitNormal.Quantile(cutoff)*Volatility(r)
}

// NormalConditionalValueAtRisk is the mean of such a normal distribution below its value at risk, μ
// − σ·φ(z)/cutoff with z the quantile (QuantStats since 0.0.83; before, it was the mean of returns
// below the normal value at risk).
func NormalConditionalValueAtRisk(r []float64, cutoff float64) float64 {
	z := distuv.UnitNormal.Quantile(cutoff)
	return mean(Present(r)) - Volatility(r)*distuv.UnitNormal.Prob(z)/cutoff
}

// TailRatio is the size of the 95% quantile over that of the 5% quantile.
func TailRatio(r []float64) float64 {
	return math.Abs(ratio(Quantile(r, 0.95), Quantile(r, 0.05)))
}

// Skew is that of the sample with correction for its size, as in pandas. It is NaN below three
// returns and for a constant.
func Skew(r []float64) float64 {
	r = Present(r)
	if len(r) < 3 || math.IsNaN(spread(r)) {
		return math.NaN()
	}
	return stat.Skew(r, nil)
}

// ExcessKurtosis is that of the sample above the normal distribution's 3, with correction for its
// size, as in pandas. It is NaN below four returns and for a constant.
func ExcessKurtosis(r []float64) float64 {
	r = Present(r)
	if len(r) < 4 || math.IsNaN(spread(r)) {
		return math.NaN()
	}
	return stat.ExKurtosis(r, nil)
}

func meanWhere(r []float64, keep func(float64) bool) float64 {
	var sum float64
	var n int
	for _, x := range r {
		if keep(x) {
			sum += x
			n++
		}
	}
	return ratio(sum, float64(n))
}
