package performance

import (
	"math"
	"slices"
)

// InterquartileMean is the mean of the middle half of a sample, with the parts of values that lie
// across its ends (Agarwal et al. 2021, "Deep Reinforcement Learning at the Edge of the Statistical
// Precipice"). It is NaN for an empty sample.
func InterquartileMean(x []float64) float64 {
	x = slices.Sorted(slices.Values(Present(x)))
	n := float64(len(x))
	if n == 0 {
		return math.NaN()
	}
	var sum float64
	for i, v := range x {
		part := min(float64(i+1), 0.75*n) - max(float64(i), 0.25*n)
		sum += max(part, 0) * v
	}
	return sum / (n / 2)
}
