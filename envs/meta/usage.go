package meta

import "math"

// usage counts which experts were chosen by the last decisions, and one decision for each beside
// them.
type usage struct {
	// recent is a ring of the shares [experts] of the last decisions, the oldest at next once it is
	// full.
	recent [][]float64
	next   int
	filled int
	counts []float64
}

func newUsage(experts, window int) usage {
	u := usage{recent: make([][]float64, window), counts: make([]float64, experts)}
	all := make([]float64, experts*window)
	for i := range u.recent {
		u.recent[i] = all[i*experts : (i+1)*experts]
	}
	u.reset()
	return u
}

func (u *usage) reset() {
	u.next, u.filled = 0, 0
	for i := range u.counts {
		u.counts[i] = 1
	}
}

// push counts a decision.
func (u *usage) push(shares []float64) {
	slot := u.recent[u.next]
	if u.filled == len(u.recent) {
		for i, s := range slot {
			u.counts[i] -= s
		}
	} else {
		u.filled++
	}
	copy(slot, shares)
	for i, s := range slot {
		u.counts[i] += s
	}
	u.next = (u.next + 1) % len(u.recent)
}

// memory is what is saved of usage: the counts, and the decisions that they are of, the oldest first.
type memory struct {
	Counts []float64   `json:"counts"`
	Recent [][]float64 `json:"recent,omitempty"`
}

func (u *usage) memory() memory {
	m := memory{Counts: u.counts}
	for i := range u.filled {
		m.Recent = append(m.Recent, u.recent[(u.next-u.filled+i+len(u.recent))%len(u.recent)])
	}
	return m
}

// fits reports whether a memory is one of such a usage.
func (u *usage) fits(m memory) bool {
	fit := len(m.Counts) == len(u.counts) && len(m.Recent) <= len(u.recent)
	for _, r := range m.Recent {
		fit = fit && len(r) == len(u.counts)
	}
	return fit
}

// restore takes over a memory that fits.
func (u *usage) restore(m memory) {
	u.reset()
	for _, r := range m.Recent {
		u.push(r)
	}
	copy(u.counts, m.Counts)
}

// of is the share of expert i in the decisions.
func (u *usage) of(i int) float64 { return u.counts[i] / float64(u.filled+len(u.counts)) }

// concentration is 1 − H(usage)/log N: 0 where all experts are used alike.
func (u *usage) concentration() float64 {
	h := 0.0
	for i := range u.counts {
		if p := u.of(i); p > 0 {
			h -= p * math.Log(p)
		}
	}
	return min(max(0, 1-h/math.Log(float64(len(u.counts)))), 1)
}

// surprise is KL(shares ‖ usage).
func (u *usage) surprise(shares []float64) (kl float64) {
	for i, s := range shares {
		if s > 0 {
			kl += s * math.Log(s/u.of(i))
		}
	}
	return kl
}
