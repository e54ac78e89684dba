package td3

import (
	"math"

	"github.com/onnxrl/onnxrl/agents"
	"github.com/onnxrl/onnxrl/envs/vector"
	"github.com/onnxrl/onnxrl/runtime/rng"
)

// noise is added to the actions of n environments for exploration.
type noise struct {
	c       Noise
	n, dims int
	// x is the state of ou, [n, A]; the others have none.
	x []float32
}

func newNoise(c Noise, n, dims int) *noise {
	z := &noise{n: n, dims: dims}
	z.edit(c)
	return z
}

// edit takes other values. Noise that becomes ou begins at 0.
func (z *noise) edit(c Noise) {
	if z.c = c; c.Kind != OU {
		z.x = nil
	} else if z.x == nil {
		z.x = make([]float32, z.n*z.dims)
	}
}

// add adds noise to actions [n, A] in [−1, 1], and clips them. Every element takes one draw.
func (z *noise) add(actions []float32, s *rng.Stream) {
	if z.c.Kind == None {
		return
	}
	pull, push := z.c.Theta*z.c.Dt, z.c.Sigma*math.Sqrt(z.c.Dt)
	for i, a := range actions {
		var e float32
		if z.c.Kind == OU {
			z.x[i] += float32(push*s.Normal() - pull*float64(z.x[i]))
			e = z.x[i]
		} else {
			e = float32(z.c.Sigma * s.Normal())
		}
		actions[i] = min(max(a+e, -1), 1)
	}
}

// restart forgets the state of an environment.
func (z *noise) restart(env int) {
	if z.x != nil {
		clear(z.x[env*z.dims:][:z.dims])
	}
}

// recorder fills the replay, and restarts the noise of environments whose episodes end.
type recorder struct {
	agents.Recorder
	noise *noise
}

// End implements agents.Recorder.
func (r *recorder) End(b *vector.Batch) error {
	for _, e := range b.Ended {
		r.noise.restart(e.Env)
	}
	return r.Recorder.End(b)
}
