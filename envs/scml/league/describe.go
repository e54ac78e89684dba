package league

import (
	"math"
	"slices"
)

// Describe returns the number of values, their mean, standard deviation (of n−1), least, quartiles
// and largest.
func Describe(list []float64) []float64 {
	list = slices.Clone(list)
	slices.Sort(list)
	n, mean, sum := float64(len(list)), 0.0, 0.0
	for _, x := range list {
		mean += x / n
	}
	for _, x := range list {
		sum += (x - mean) * (x - mean)
	}
	out := []float64{n, mean, math.NaN(), list[0], 0, 0, 0, list[len(list)-1]}
	if n > 1 {
		out[2] = math.Sqrt(sum / (n - 1))
	}
	for i, q := range []float64{0.25, 0.5, 0.75} {
		at := float64(q * (n - 1))
		k := min(int(at), len(list)-1)
		out[4+i] = list[k] + float64((at-float64(k))*(list[min(k+1, len(list)-1)]-list[k]))
	}
	return out
}
