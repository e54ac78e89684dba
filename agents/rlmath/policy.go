package rlmath

import "math"

// Surrogate is the mean of PPO's clipped objective and what is usually logged with it.
type Surrogate struct {
	// Loss is to be minimised.
	Loss float64
	// ApproxKL is the k3 estimate of KL(old‖new), ClipFrac the fraction of ratios outside [1−ε,
	// 1+ε].
	ApproxKL, ClipFrac float64
}

// ClippedSurrogate returns the clipped objective of PPO (Schulman et al. 2017, arXiv 1707.06347,
// equation 7), negated:
//
//	−mean min(ρ·A, clip(ρ, 1−ε, 1+ε)·A),  ρ = exp(logPi − logPiOld)
//
// It is the reference for the graphs that are differentiated. Slices of no elements give 0.
func ClippedSurrogate[F Float](logPi, logPiOld, adv []F, eps float64) Surrogate {
	check("ClippedSurrogate", len(logPi), 1, len(logPiOld), len(adv))
	var s Surrogate
	for i := range logPi {
		l := float64(logPi[i]) - float64(logPiOld[i])
		rho, a := math.Exp(l), float64(adv[i])
		s.Loss -= min(rho*a, min(max(rho, 1-eps), 1+eps)*a)
		s.ApproxKL += math.Expm1(l) - l
		if math.Abs(rho-1) > eps {
			s.ClipFrac++
		}
	}
	if n := float64(len(logPi)); n > 0 {
		s.Loss /= n
		s.ApproxKL /= n
		s.ClipFrac /= n
	}
	return s
}

// KLEstimate names an estimate of a Kullback-Leibler divergence from samples.
type KLEstimate int

// The estimates of KL(p‖q) from x drawn from p, with log r = log q(x) − log p(x) (Schulman 2020,
// "Approximating KL divergence").
const (
	// K1 is −log r: unbiased, of high variance, and sometimes negative.
	K1 KLEstimate = iota + 1
	// K2 is ½(log r)²: biased, of low variance.
	K2
	// K3 is r − 1 − log r: unbiased, of low variance, never negative.
	K3
)

// ApproxKL returns the mean of an estimate of KL(p‖q) over samples of p, given the log-densities of
// the samples under both.
//
// These are diagnostics. As losses they mislead (Tang & Munos 2025, arXiv 2506.09477):
// differentiated with respect to p, the gradient of K1 is 0 on average, that of K2 is right, and
// that of K3 is the gradient of KL(q‖p). Use [CategoricalKL] or [GaussianKL], or their graphs, for
// a loss.
func ApproxKL[F Float](k KLEstimate, logP, logQ []F) float64 {
	check("ApproxKL", len(logP), 1, len(logQ))
	if len(logP) == 0 {
		return 0
	}
	sum := 0.0
	for i := range logP {
		l := float64(logQ[i]) - float64(logP[i])
		switch k {
		case K1:
			sum -= l
		case K2:
			sum += l * l / 2
		case K3:
			sum += math.Expm1(l) - l
		default:
			panic("rlmath: ApproxKL: unknown estimate")
		}
	}
	return sum / float64(len(logP))
}
