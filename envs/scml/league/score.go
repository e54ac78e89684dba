package league

import (
	"cmp"
	"math"
	"slices"
)

// TruncatedMean is the mean of those scores that are not far above the others: more than twice the
// distance between the quartiles above the upper one. Low scores always count. It is NaN for no
// scores.
func TruncatedMean(scores []float64) float64 {
	list := make([]scored, len(scores))
	for i, x := range scores {
		list[i].score = x
	}
	ascending(list)
	return truncated(list, []int{1})
}

// scored is a score in a configuration.
type scored struct {
	score  float64
	config int
}

func ascending(list []scored) {
	slices.SortFunc(list, func(a, b scored) int { return cmp.Compare(a.score, b.score) })
}

// truncated is the truncated mean of ascending scores that each count as often as their
// configuration does.
func truncated(list []scored, times []int) float64 {
	n := 0
	for _, s := range list {
		n += times[s.config]
	}
	if n == 0 {
		return math.NaN()
	}
	q1, q3 := quartile(list, times, n, 0.25), quartile(list, times, n, 0.75)
	limit := q3 + float64(2*(q3-q1))
	sum, count := 0.0, 0
	for _, s := range list {
		if s.score > limit {
			break
		}
		sum += float64(float64(times[s.config]) * s.score)
		count += times[s.config]
	}
	return sum / float64(count)
}

// quartile interpolates linearly between the two of n scores that are on both sides of a place.
func quartile(list []scored, times []int, n int, q float64) float64 {
	at := float64(q * float64(n-1))
	i, seen, low := int(at), 0, math.NaN()
	for _, s := range list {
		before := seen
		seen += times[s.config]
		if before <= i && i < seen {
			low = s.score
		}
		if seen > i+1 || seen == n {
			return low + float64((at-float64(i))*(s.score-low))
		}
	}
	return low
}
