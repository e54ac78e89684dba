package es

import (
	"cmp"
	"slices"
)

// centredRanks writes to dst the ranks of values, scaled to [−0.5, 0.5] from the lowest to the
// highest; equal values have the mean of their ranks. order is scratch. All have the same length.
func centredRanks(dst, values []float64, order []int) {
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(values[a], values[b]) })
	n := len(order)
	for lo := 0; lo < n; {
		hi := lo + 1
		for hi < n && values[order[hi]] == values[order[lo]] {
			hi++
		}
		for _, i := range order[lo:hi] {
			dst[i] = 0
			if n > 1 {
				dst[i] = float64(lo+hi-1)/2/float64(n-1) - 0.5
			}
		}
		lo = hi
	}
}
