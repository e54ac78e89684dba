package performance

import (
	"math"

	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"
)

// Moments are those of a distribution of returns, of the population: Skew = m₃/m₂^1.5, and Kurtosis
// = m₄/m₂², which is 3 for a normal one.
type Moments struct {
	Skew, Kurtosis float64
}

// MomentsOf estimates them from a sample, without correction for its size. They are NaN for a
// constant.
func MomentsOf(r []float64) Moments {
	r = Present(r)
	if len(r) < 2 || math.IsNaN(spread(r)) {
		return Moments{math.NaN(), math.NaN()}
	}
	mu := mean(r)
	m2, m3, m4 := stat.MomentAbout(2, r, mu, nil), stat.MomentAbout(3, r, mu, nil), stat.MomentAbout(4, r, mu, nil)
	return Moments{m3 / math.Pow(m2, 1.5), m4 / (m2 * m2)}
}

// ProbabilisticSharpe is the probability that the true Sharpe ratio is above the threshold, given
// the one seen in n returns with these moments, all per period (Bailey & López de Prado 2012, "The
// Sharpe Ratio Efficient Frontier"):
//
//	Φ( (sharpe − threshold) √(n−1) / √(1 − skew·sharpe + (kurtosis−1)/4·sharpe²) )
//
// It is NaN for fewer than two returns or where the root is of a number that is not positive.
func ProbabilisticSharpe(sharpe, threshold float64, n int, m Moments) float64 {
	v := sharpeVariance(sharpe, n, m)
	if !(v > 0) {
		return math.NaN()
	}
	return distuv.UnitNormal.CDF((sharpe - threshold) / math.Sqrt(v))
}

// sharpeVariance is that of the estimate of a Sharpe ratio per period from n returns.
func sharpeVariance(sharpe float64, n int, m Moments) float64 {
	if n < 2 {
		return math.NaN()
	}
	return (1 - m.Skew*sharpe + (m.Kurtosis-1)/4*sharpe*sharpe) / float64(n-1)
}

// ExpectedMaxSharpe is the Sharpe ratio that the best of some trials is expected to show when none
// has skill and the ratios of the trials have this variance (Bailey & López de Prado 2014, "The
// Deflated Sharpe Ratio"):
//
//	√variance · ((1−γ) Φ⁻¹(1−1/N) + γ Φ⁻¹(1−1/(N·e))),  γ = 0.5772… (Euler–Mascheroni)
//
// It is 0 for one trial, and for none.
func ExpectedMaxSharpe(trials int, variance float64) float64 {
	if trials <= 1 {
		return 0
	}
	const gamma = 0.57721566490153286060651209008240243
	n, z := float64(trials), distuv.UnitNormal.Quantile
	return math.Sqrt(variance) * ((1-gamma)*z(1-1/n) + gamma*z(1-1/(n*math.E)))
}

// Deflated is a Sharpe ratio next to what luck explains. Ratios are per period.
type Deflated struct {
	Sharpe      Number `json:"sharpe"`
	Threshold   Number `json:"threshold"`   // expected of the best trial without skill
	Probability Number `json:"probability"` // that the true ratio is above the threshold
	Returns     int    `json:"returns"`
	Skew        Number `json:"skew"`     // of the population, as in Moments
	Kurtosis    Number `json:"kurtosis"` // of the population, 3 for a normal distribution
	Trials      int    `json:"trials"`
	Variance    Number `json:"variance"` // of the trials' ratios
	Assumed     bool   `json:"assumed"`  // the variance was not measured: it is that of estimating one ratio of 0
}

// DeflatedSharpe evaluates the excess returns of the trial that was chosen. Trials counts every
// independent one that was run, the chosen one included, and not the stages of one of them, which
// resemble each other; variance is that of their Sharpe ratios per period. A variance that is not
// positive is unknown: then that of a ratio of 0 estimated from n returns is used, 1/(n−1), which
// is what trials that differ in nothing but luck would show.
func DeflatedSharpe(excess []float64, trials int, variance float64) Deflated {
	r := Present(excess)
	d := Deflated{Sharpe: Number(Sharpe(r)), Returns: len(r), Trials: max(trials, 1), Variance: Number(variance)}
	m := MomentsOf(r)
	d.Skew, d.Kurtosis = Number(m.Skew), Number(m.Kurtosis)
	if !(variance > 0) && len(r) > 1 {
		d.Variance, d.Assumed = Number(1/float64(len(r)-1)), d.Trials > 1
	}
	d.Threshold = Number(ExpectedMaxSharpe(d.Trials, float64(d.Variance)))
	d.Probability = Number(ProbabilisticSharpe(float64(d.Sharpe), float64(d.Threshold), d.Returns, m))
	return d
}
