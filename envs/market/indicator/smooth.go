package indicator

import (
	"math"

	"github.com/onnxrl/onnxrl/envs/market/bars"
)

// smooth is an exponential average that is seeded by the mean of its first n numbers:
// value += k·(x − value) with k = 2/(n+1) for an EMA and 1/n for Wilder's average.
type smooth struct {
	n, seen  int
	k, value float64
}

func newEMA(n int) smooth { return smooth{n: n, k: 2 / float64(n+1)} }

// add takes the next number and returns the average, NaN before the n-th.
func (s *smooth) add(x float64) float64 {
	if s.seen < s.n {
		s.seen++
		s.value += x
		if s.seen < s.n {
			return math.NaN()
		}
		s.value /= float64(s.n)
		return s.value
	}
	s.value += (x - s.value) * s.k
	return s.value
}

// wilder is Wilder's average, in the form value = (value·(n−1) + x)/n.
type wilder struct {
	n, seen int
	value   float64
}

// add takes the next number and returns the average, NaN before the n-th.
func (s *wilder) add(x float64) float64 {
	if s.seen < s.n {
		s.seen++
		s.value += x
		if s.seen < s.n {
			return math.NaN()
		}
		s.value /= float64(s.n)
		return s.value
	}
	s.value = (s.value*float64(s.n-1) + x) / float64(s.n)
	return s.value
}

// trueRange is Wilder's true range; the first bar has none.
type trueRange struct {
	started bool
	close   float64
}

// next returns the true range of the bar, NaN for the first.
func (t *trueRange) next(b *bars.Bar) float64 {
	r := math.NaN()
	if t.started {
		r = max(b.High-b.Low, math.Abs(b.High-t.close), math.Abs(b.Low-t.close))
	}
	t.started, t.close = true, b.Close
	return r
}

func typical(b *bars.Bar) float64 { return (b.High + b.Low + b.Close) / 3 }

// tiny is what TA-Lib takes for zero in a denominator.
const tiny = 1e-14

func isZero(x float64) bool { return -tiny < x && x < tiny }

func undefined(out []float64) {
	for i := range out {
		out[i] = math.NaN()
	}
}
