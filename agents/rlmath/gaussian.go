package rlmath

import "math"

// halfLog2Pi is ½·log 2π.
const halfLog2Pi = 0.91893853320467274178

// GaussianLogProb returns the logarithm of the density of a diagonal Gaussian, Σ −½((x−μ)/σ)² − log
// σ − ½ log 2π. logStd holds log σ for each dimension.
func GaussianLogProb[F Float](x, mean, logStd []F) float64 {
	check("GaussianLogProb", len(x), 1, len(mean), len(logStd))
	sum := 0.0
	for i := range x {
		z := (float64(x[i]) - float64(mean[i])) * math.Exp(-float64(logStd[i]))
		sum -= 0.5*z*z + float64(logStd[i]) + halfLog2Pi
	}
	return sum
}

// GaussianEntropy returns the differential entropy of a diagonal Gaussian, Σ log σ + ½ + ½ log 2π.
func GaussianEntropy[F Float](logStd []F) float64 {
	sum := 0.0
	for _, l := range logStd {
		sum += float64(l) + 0.5 + halfLog2Pi
	}
	return sum
}

// GaussianKL returns KL(p‖q) of two diagonal Gaussians, Σ log σq − log σp + (σp² + (μp−μq)²)/(2σq²)
// − ½.
func GaussianKL[F Float](meanP, logStdP, meanQ, logStdQ []F) float64 {
	check("GaussianKL", len(meanP), 1, len(logStdP), len(meanQ), len(logStdQ))
	sum := 0.0
	for i := range meanP {
		d := (float64(meanP[i]) - float64(meanQ[i])) * math.Exp(-float64(logStdQ[i]))
		r := float64(logStdP[i]) - float64(logStdQ[i])
		sum += 0.5*(math.Exp(2*r)+d*d-1) - r
	}
	return sum
}

// TanhLogDet returns Σ log(1 − tanh²(u)), what squashing u by tanh subtracts from the logarithm of
// a density, in the form
//
//	2·(log 2 − u − softplus(−2u))
//
// which is exact where 1 − tanh² rounds to 0 (Haarnoja et al. 2018, appendix C, gives the density;
// the form is TensorFlow Probability's).
func TanhLogDet[F Float](u []F) float64 {
	sum := 0.0
	for _, x := range u {
		// log(1−tanh²) is even in u, so the argument of softplus is never positive.
		a := math.Abs(float64(x))
		sum += 2 * (math.Ln2 - a - math.Log1p(math.Exp(-2*a)))
	}
	return sum
}
