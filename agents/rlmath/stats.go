package rlmath

import "math"

// normalizeEpsilon is added to the standard deviation, as in Stable-Baselines3 and CleanRL.
const normalizeEpsilon = 1e-8

// Normalize shifts and scales x in place to mean 0 and standard deviation 1. The deviation is that
// of a sample, divided by n − 1, as in PyTorch's std. Fewer than two elements have none and are
// left alone, as PPO's implementations do with minibatches of one.
func Normalize[F Float](x []F) {
	if len(x) < 2 {
		return
	}
	mean, variance := moments(x)
	scale := 1 / (math.Sqrt(variance*float64(len(x))/float64(len(x)-1)) + normalizeEpsilon)
	for i, v := range x {
		x[i] = F((float64(v) - mean) * scale)
	}
}

// moments returns the mean and the variance divided by n, in two passes.
func moments[F Float](x []F) (mean, variance float64) {
	for _, v := range x {
		mean += float64(v)
	}
	mean /= float64(len(x))
	for _, v := range x {
		d := float64(v) - mean
		variance += d * d
	}
	return mean, variance / float64(len(x))
}

// ExplainedVariance returns 1 − Var(target − predicted)/Var(target): 1 is a perfect prediction, 0
// one that is no better than a constant, and negative ones are worse. It is NaN when the targets do
// not vary, as in Stable-Baselines3.
func ExplainedVariance[F Float](predicted, target []F) float64 {
	check("ExplainedVariance", len(predicted), 1, len(target))
	if len(target) == 0 {
		return math.NaN()
	}
	_, total := moments(target)
	if total == 0 {
		return math.NaN()
	}
	n := float64(len(target))
	mean := 0.0
	for i := range target {
		mean += float64(target[i]) - float64(predicted[i])
	}
	mean /= n
	rest := 0.0
	for i := range target {
		d := float64(target[i]) - float64(predicted[i]) - mean
		rest += d * d
	}
	return 1 - rest/n/total
}
