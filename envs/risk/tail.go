package risk

import (
	"math"
	"slices"
)

// returns are those of the last days, the newest last, and the same sorted.
type returns struct {
	ring   []float64 // [window]
	sorted []float64 // those that are there, the worst first
	next   int       // the place in the ring after the newest
}

func newReturns(window int) returns {
	return returns{ring: make([]float64, window), sorted: make([]float64, 0, window)}
}

func (r *returns) reset() { r.sorted, r.next = r.sorted[:0], 0 }

// push adds the return of a new day; the oldest leaves a full window.
func (r *returns) push(x float64) {
	if len(r.sorted) == len(r.ring) {
		r.drop(r.ring[r.next])
	}
	r.ring[r.next] = x
	r.next = (r.next + 1) % len(r.ring)
	r.insert(x)
}

// replace gives the newest day another return.
func (r *returns) replace(x float64) {
	at := (r.next + len(r.ring) - 1) % len(r.ring)
	r.drop(r.ring[at])
	r.ring[at] = x
	r.insert(x)
}

func (r *returns) drop(x float64) {
	i, _ := slices.BinarySearch(r.sorted, x)
	copy(r.sorted[i:], r.sorted[i+1:])
	r.sorted = r.sorted[:len(r.sorted)-1]
}

func (r *returns) insert(x float64) {
	i, _ := slices.BinarySearch(r.sorted, x)
	r.sorted = r.sorted[:len(r.sorted)+1]
	copy(r.sorted[i+1:], r.sorted[i:])
	r.sorted[i] = x
}

// all returns the returns, the oldest first.
func (r *returns) all() []float64 {
	n := len(r.sorted)
	out := make([]float64, n)
	for i := range out {
		out[i] = r.ring[(r.next-n+i+len(r.ring))%len(r.ring)]
	}
	return out
}

// tail is the conditional value at risk, the mean loss of the worst share 1 − level of the days,
// of which the last may be counted in part (Rockafellar and Uryasev 2000). There must be as many
// as tailDays says.
func (r *returns) tail(level float64) float64 {
	days := (1 - level) * float64(len(r.sorted))
	whole := int(days + 1e-9) // 0.05·20 may be less than 1 by a rounding.
	sum := 0.0
	for _, x := range r.sorted[:whole] {
		sum -= x
	}
	if rest := days - float64(whole); rest > 1e-9 {
		sum -= rest * r.sorted[whole]
	}
	return sum / days
}

// tailDays is the least number of days with one in the tail.
func tailDays(level float64) int { return int(math.Ceil(1/(1-level) - 1e-9)) }
