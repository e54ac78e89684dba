package dashboard

import "slices"

// thin returns at most about most indices of values, in order: all of them where there are no more,
// and else the first, the last, and of each of equal stretches those of the least and the greatest.
func thin(values []float64, most int) []int {
	n := len(values)
	if n <= most || most < 4 {
		list := make([]int, n)
		for i := range list {
			list[i] = i
		}
		return list
	}
	list := []int{0}
	parts := most/2 - 1
	for p := range parts {
		from, to := p*n/parts, (p+1)*n/parts
		low, high := from, from
		for i := from; i < to; i++ {
			if values[i] < values[low] {
				low = i
			}
			if values[i] > values[high] {
				high = i
			}
		}
		list = append(list, min(low, high), max(low, high))
	}
	return slices.Compact(append(list, n-1))
}

// pick returns the elements at the given places.
func pick[T any](list []T, at []int) []T {
	out := make([]T, len(at))
	for i, j := range at {
		out[i] = list[j]
	}
	return out
}
