package league

import "math"

// rival is somebody whom the learner can play, with the games of its newest generation against it.
type rival struct {
	fixed      bool
	generation int
	// given is the weight of a fixed member in the document.
	given float64
	// score is the share of the points that the learner has of it, and games how many there were.
	score float64
	games int
}

// chance is the estimated probability that the learner beats a rival: with one drawn game beside
// those that were played, so that nobody is ever out of the question.
func (r rival) chance() float64 {
	return (r.score*float64(r.games) + 0.5) / (float64(r.games) + 1)
}

// weights returns how often each rival is drawn, which sums to 1 unless there is nobody.
func (m *Matchmaking) weights(rivals []rival, generation int) []float64 {
	w := make([]float64, len(rivals))
	fixed, history, latest := 0.0, 0.0, -1
	for i, r := range rivals {
		switch {
		case r.fixed:
			w[i] = r.given * m.prefers(r)
			fixed += w[i]
		case m.Window > 0 && r.generation < generation-m.Window:
		default:
			if latest < 0 || r.generation > rivals[latest].generation {
				latest = i
			}
			if m.Kind != Latest {
				w[i] = m.prefers(r)
				history += w[i]
			}
		}
	}
	share := m.Fixed
	switch {
	case latest < 0:
		share = 1
	case fixed == 0:
		share = 0
	}
	for i, r := range rivals {
		switch {
		case r.fixed && fixed > 0:
			w[i] *= share / fixed
		case history > 0:
			w[i] *= max(0, 1-share-m.Latest) / history
		}
	}
	if latest >= 0 {
		if history > 0 {
			w[latest] += min(m.Latest, 1-share)
		} else {
			w[latest] = 1 - share
		}
	}
	return w
}

// prefers is the weight of a rival among others of its sort.
func (m *Matchmaking) prefers(r rival) float64 {
	if m.Kind != Prioritised {
		return 1
	}
	p := r.chance()
	if m.Weighting == Variance {
		return p * (1 - p)
	}
	return math.Pow(1-p, m.Power)
}
