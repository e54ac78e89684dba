package rng

import "math"

// Categorical returns an index drawn with probability proportional to exp(logits[i]), by inversion
// of the distribution function in float64. Logits need no normalisation; -Inf excludes an index,
// and so in effect does a logit that lies 700 below the largest. One uniform is consumed whatever
// the logits are. It returns -1 when no index can be drawn, because there are no logits, all are
// -Inf, or one is NaN or +Inf.
func (s *Stream) Categorical(logits []float32) int {
	u := s.Float64()
	largest := math.Inf(-1)
	for _, l := range logits {
		if !(l <= math.MaxFloat32) { // +Inf or NaN
			return -1
		}
		largest = max(largest, float64(l))
	}
	if math.IsInf(largest, -1) {
		return -1
	}
	sum := 0.0
	for _, l := range logits {
		sum += exp(float64(l) - largest)
	}
	target, cumulative, last := float64(u*sum), 0.0, -1
	for i, l := range logits {
		weight := exp(float64(l) - largest)
		if weight == 0 {
			continue
		}
		last = i
		if cumulative += weight; target < cumulative {
			return i
		}
	}
	// u·sum may round up to sum itself.
	return last
}

// exp is e^x for x <= 0 with a relative error below 4e-16, and 0 below -700. It exists for the
// reason that log does.
//
// x = k·ln 2 + r with |r| <= ln 2 / 2, and e^r by its Taylor series to r^13, which leaves less than
// 2^-57.
func exp(x float64) float64 {
	if x < -700 {
		return 0
	}
	const ln2Hi, ln2Lo = 6.93147180369123816490e-01, 1.90821492927058770002e-10
	k := math.Floor(float64(x*math.Log2E) + 0.5)
	r := float64(x-float64(k*ln2Hi)) - float64(k*ln2Lo)
	p := 1.0 / 6227020800
	p = 1.0/479001600 + float64(p*r)
	p = 1.0/39916800 + float64(p*r)
	p = 1.0/3628800 + float64(p*r)
	p = 1.0/362880 + float64(p*r)
	p = 1.0/40320 + float64(p*r)
	p = 1.0/5040 + float64(p*r)
	p = 1.0/720 + float64(p*r)
	p = 1.0/120 + float64(p*r)
	p = 1.0/24 + float64(p*r)
	p = 1.0/6 + float64(p*r)
	p = 1.0/2 + float64(p*r)
	p = 1 + float64(p*r)
	p = 1 + float64(p*r)
	return p * math.Float64frombits(uint64(1023+int(k))<<52)
}
