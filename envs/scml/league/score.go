package league

import (
	"math"
	"slices"
)

// TruncatedMean is the mean of those scores that are not far above the others: more than twice the
// distance between the quartiles above the upper one. Low scores always count. It is NaN for no
// scores.
func TruncatedMean(scores []float64) float64 {
	if len(scores) == 0 {
		return math.NaN()
	}
	list := slices.Clone(scores)
	slices.Sort(list)
	q1, q3 := quantile(list, 0.25), quantile(list, 0.75)
	limit := q3 + float64(2*(q3-q1))
	sum, n := 0.0, 0
	for _, x := range list {
		if x <= limit {
			sum += x
			n++
		}
	}
	return sum / float64(n)
}

// quantile interpolates linearly in ascending values.
func quantile(list []float64, q float64) float64 {
	at := float64(q * float64(len(list)-1))
	i := int(at)
	if i+1 >= len(list) {
		return list[len(list)-1]
	}
	return list[i] + float64((at-float64(i))*(list[i+1]-list[i]))
}
