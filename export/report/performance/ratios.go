package performance

import (
	"math"

	"gonum.org/v1/gonum/stat"
)

// Sharpe is the mean of excess returns over their standard deviation (n−1), per period; times
// √periods it is annual (Sharpe 1994, "The Sharpe Ratio"). It is NaN for fewer than two returns and
// for equal ones.
func Sharpe(excess []float64) float64 {
	e := Present(excess)
	return ratio(mean(e), spread(e))
}

// DownsideRisk is the root of the mean of squared negative excess returns, √(Σ min(e,0)²/n), per
// period.
func DownsideRisk(excess []float64) float64 {
	e := Present(excess)
	if len(e) == 0 {
		return math.NaN()
	}
	var sum float64
	for _, x := range e {
		x = min(x, 0)
		sum += x * x
	}
	return math.Sqrt(sum / float64(len(e)))
}

// Sortino is the mean of excess returns over the downside risk, per period; times √periods it is
// annual (Sortino & Price 1994). It is NaN when no return is negative.
func Sortino(excess []float64) float64 { return ratio(mean(Present(excess)), DownsideRisk(excess)) }

// Calmar is the CAGR over the depth of the largest drawdown (Young 1991). It is NaN without a
// drawdown.
func Calmar(r []float64, years float64) float64 {
	return ratio(CAGR(r, years), -MaxDrawdown(Growth(r)))
}

// Omega is the sum of what excess returns are above a threshold over the sum of what they are below
// it (Keating & Shadwick 2002). It is NaN when none is below.
func Omega(excess []float64, threshold float64) float64 {
	var up, down float64
	for _, x := range Present(excess) {
		up += max(x-threshold, 0)
		down += max(threshold-x, 0)
	}
	return ratio(up, down)
}

// Stability is the R² of a straight line through the cumulated log returns. It is NaN below three
// returns, after a total loss, and for returns of 0.
func Stability(r []float64) float64 {
	r = Present(r)
	if len(r) < 3 {
		return math.NaN()
	}
	x, y := make([]float64, len(r)), make([]float64, len(r))
	var sum float64
	for i, v := range r {
		if v <= -1 {
			return math.NaN()
		}
		sum += math.Log1p(v)
		x[i], y[i] = float64(i), sum
	}
	if math.IsNaN(spread(y)) {
		return math.NaN()
	}
	rho := stat.Correlation(x, y, nil)
	return rho * rho
}

// GainToPain is the sum of returns over the sum of losses (Schwager). It is NaN without a loss.
func GainToPain(r []float64) float64 {
	gain, loss := gainAndLoss(r)
	return ratio(gain-loss, loss)
}

// AutocorrelationPenalty is the factor by which the volatility of a year exceeds what independent
// returns would have, √(1 + 2 Σ (n−k)/n · |ρ|^k), k = 1..n−1, with ρ the correlation of a return
// with the one before: the divisor of the "smart" ratios of QuantStats.
func AutocorrelationPenalty(r []float64) float64 {
	r = Present(r)
	n := len(r)
	if n < 3 {
		return math.NaN()
	}
	rho := math.Abs(correlation(r[:n-1], r[1:]))
	sum, power := 0.0, 1.0
	for k := 1; k < n; k++ {
		power *= rho
		sum += float64(n-k) / float64(n) * power
	}
	return math.Sqrt(1 + 2*sum)
}

func mean(x []float64) float64 {
	if len(x) == 0 {
		return math.NaN()
	}
	return stat.Mean(x, nil)
}

// correlation is Pearson's, and NaN where either side does not vary.
func correlation(x, y []float64) float64 {
	if len(x) < 2 || math.IsNaN(spread(x)) || math.IsNaN(spread(y)) {
		return math.NaN()
	}
	return stat.Correlation(x, y, nil)
}
