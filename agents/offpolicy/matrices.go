package offpolicy

import (
	"math"

	"github.com/onnxrl/onnxrl/runtime/rng"
)

// matrices are gSDE's for an exploring actor, one for each environment: [n, latent, A].
type matrices struct {
	width          int
	latent, logStd []float32
	e              []float32
	// drawn says for which part of which cycle, and which parameters, they are.
	drawn moment
}

// moment is a stretch of rounds in which gSDE's matrices stay: part of the rounds between two
// learner steps.
type moment struct{ cycle, part, updates int64 }

func newMatrices(n, width, dims int, latent, logStd []float32) *matrices {
	return &matrices{width: width, latent: latent, logStd: logStd, e: make([]float32, n*width*dims), drawn: moment{cycle: -1}}
}

// refresh draws the matrices where a learner step has passed, and every sde_sample_freq rounds
// since. They follow from the learner's key, its parameters and the number of the round, so they
// need not be saved.
func (m *matrices) refresh(l *Learner) {
	now := l.moment()
	if now == m.drawn {
		return
	}
	m.drawn = now
	var s rng.Stream
	s.Seed(l.Key.Split("sde", int(now.cycle), int(now.part)))
	for i := range m.e {
		m.e[i] = float32(math.Exp(float64(m.logStd[i%len(m.logStd)])) * s.Normal())
	}
}

// moment says between which learner steps the next round lies, and in which part of these rounds.
func (l *Learner) moment() moment {
	m := moment{cycle: l.Stepped, updates: l.Updates}
	if f := int64(l.exploration.SDESampleFreq); f > 0 {
		m.part = (l.Buffer.Rounds() - l.Stepped) / f
	}
	return m
}

// add adds z·E to the actions x [n, a].
func (m *matrices) add(x []float32, n, a int) {
	for i := range n {
		e, row := m.e[i*m.width*a:], x[i*a:][:a]
		for k, z := range m.latent[i*m.width:][:m.width] {
			for j := range row {
				row[j] += z * e[k*a+j]
			}
		}
	}
}
