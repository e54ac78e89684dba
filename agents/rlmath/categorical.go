package rlmath

import "math"

// Excluded is the logit of an excluded action (Huang & Ontañón 2022, arXiv 2006.14171): low enough
// for a probability of exactly 0, and finite, so that no difference of two of them is NaN.
const Excluded = -1e8

func exp[F Float](x F) F { return F(math.Exp(float64(x))) }

// LogSoftmax writes the logarithms of the probabilities of a categorical distribution. Actions that
// mask excludes (nil allows all) get [Excluded] as their logit, so their probability is 0 and the
// rest is renormalised. When all are excluded the distribution is uniform, which is never what was
// meant: see envs.CheckMask. dst may be logits.
func LogSoftmax[F Float](dst, logits []F, mask []bool) {
	check("LogSoftmax", len(dst), 1, len(logits))
	if mask != nil {
		check("LogSoftmax", len(dst), 1, len(mask))
	}
	top := math.Inf(-1)
	for i, l := range logits {
		if mask != nil && !mask[i] {
			l = Excluded
		}
		dst[i] = l
		top = max(top, float64(l))
	}
	sum := 0.0
	for _, l := range dst {
		sum += math.Exp(float64(l) - top)
	}
	shift := top + math.Log(sum)
	for i := range dst {
		dst[i] = F(float64(dst[i]) - shift)
	}
}

// Entropy returns −Σ p·log p of a categorical distribution given by log-probabilities. Actions of
// probability 0 contribute exactly 0.
func Entropy[F Float](logProbs []F) float64 {
	h := 0.0
	for _, l := range logProbs {
		if p := math.Exp(float64(l)); p > 0 {
			h -= p * float64(l)
		}
	}
	return h
}

// CategoricalKL returns KL(p‖q) = Σ p·(log p − log q) of two categorical distributions given by
// log-probabilities. It is what a regulariser should use: estimates from samples have the wrong
// gradient (see [ApproxKL]).
func CategoricalKL[F Float](logP, logQ []F) float64 {
	check("CategoricalKL", len(logP), 1, len(logQ))
	kl := 0.0
	for i, l := range logP {
		if p := math.Exp(float64(l)); p > 0 {
			kl += p * (float64(l) - float64(logQ[i]))
		}
	}
	return kl
}

// Argmax returns the index of the largest element, the first of equal ones; -1 for no elements. NaN
// is never the largest.
func Argmax[F Float](x []F) int {
	best := -1
	for i, v := range x {
		if best < 0 && v == v || best >= 0 && v > x[best] {
			best = i
		}
	}
	return best
}
