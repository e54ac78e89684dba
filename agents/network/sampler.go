package network

import (
	"fmt"
	"math"

	"github.com/onnxrl/onnxrl/agents"
	"github.com/onnxrl/onnxrl/agents/rlmath"
	"github.com/onnxrl/onnxrl/envs/vector"
	"github.com/onnxrl/onnxrl/runtime/rng"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// Sampler draws actions in Go from what an acting graph computed. It belongs to one actor.
type Sampler struct {
	f    *Frame
	mode agents.Mode
	n    int

	logProbs []float32
	logits   *tensor.Tensor
	// mean is [n, Dims]; logStd the same with gSDE, and otherwise the parameter [Dims].
	mean, logStd []float32
	sde          *matrices

	stream  rng.Stream
	actions *tensor.Tensor
	drawn   *tensor.Tensor
	logProb []float32
}

// matrices are gSDE's, one for each environment, [n, latent, Dims].
type matrices struct {
	freq, width int
	latent      []float32
	logStd      []float32
	std, e      []float32
	// drawn is when they were.
	drawn drawn
}

// drawn is a part of a rollout, with parameters that do not change in it.
type drawn struct{ rollout, replaced, part int64 }

// Moment says where in training a decision is taken. gSDE's matrices follow from it, so that a run
// may be saved and continued at any round.
type Moment struct {
	// Key is the learner's; the matrices are drawn from it, for the rollout and the part of it.
	Key rng.Key
	// Rollout counts the learner's steps, Replaced how often something else has replaced the
	// parameters, and Round the rounds of the rollout.
	Rollout, Replaced int64
	Round             int
}

// NewSampler returns a sampler for n rows. out returns the outputs of a graph that
// [Distribution.Acting] ended, whose rows may be more; logStd is the parameter [LogStdParam], nil
// for categorical policies.
func NewSampler(f *Frame, e Exploration, m agents.Mode, n int, out func(name string) *tensor.Tensor, logStd *tensor.Tensor) *Sampler {
	s := &Sampler{f: f, mode: m, n: n, logProb: make([]float32, n)}
	space := f.Spec.Action
	s.actions = tensor.New(space.DType(), append([]int{n}, space.Shape()...)...)
	if !f.Continuous() {
		s.logits = out(agents.LogProbsOutput).Rows(0, n)
		s.logProbs = s.logits.Float32s()
		return s
	}
	s.mean = out(agents.MeanOutput).Float32s()[:n*f.Dims]
	s.logStd = logStd.Float32s()
	s.drawn = tensor.New(tensor.Float32, n, f.Dims)
	if e.UseSDE {
		s.logStd = out(agents.LogStdOutput).Float32s()[:n*f.Dims]
		width := logStd.Shape()[0]
		s.sde = &matrices{
			freq: e.SDESampleFreq, width: width, drawn: drawn{rollout: -1}, latent: out(LatentOutput).Float32s()[:n*width], logStd: logStd.Float32s(),
			std: make([]float32, width*f.Dims), e: make([]float32, n*width*f.Dims),
		}
	}
	return s
}

// Decide fills in actions, drawn actions, log-probabilities and logits of a decision, at a moment
// of the training. All randomness but that of gSDE's matrices comes from the key. Decide allocates
// nothing.
func (s *Sampler) Decide(d *vector.Decision, key rng.Key, at Moment) error {
	d.Actions, d.Drawn, d.LogProb, d.Logits = s.actions, s.drawn, s.logProb, s.logits
	if s.f.Continuous() {
		if s.sde != nil && s.mode.Draws() {
			s.sde.refresh(at)
		}
		s.stream.Seed(key)
		s.continuous()
		return s.f.Clip(s.actions, s.drawn)
	}
	s.stream.Seed(key)
	return s.categorical()
}

// categorical takes one draw for each head, whatever the mask.
func (s *Sampler) categorical() error {
	logProbs, heads := s.logProbs, s.f.Heads
	bits := s.actions.DType() == tensor.Bool
	for i := range s.logProb {
		sum := 0.0
		for h, k := range heads {
			choice := 0
			if s.mode.Draws() {
				choice = s.stream.Categorical(logProbs[:k])
			} else {
				choice = rlmath.Argmax(logProbs[:k])
			}
			if choice < 0 {
				return &agents.DivergedError{Text: fmt.Sprintf("the log-probabilities of environment %d, head %d are %v", i, h, logProbs[:k])}
			}
			if at := i*len(heads) + h; bits {
				s.actions.Bools()[at] = choice == 1
			} else {
				s.actions.Int64s()[at] = int64(choice)
			}
			sum += float64(logProbs[choice])
			logProbs = logProbs[k:]
		}
		s.logProb[i] = float32(sum)
	}
	return nil
}

// continuous draws every component, or takes the means.
func (s *Sampler) continuous() {
	x, a := s.drawn.Float32s(), s.f.Dims
	copy(x, s.mean)
	switch {
	case s.mode == agents.Greedy:
	case s.sde != nil:
		s.sde.add(x, s.n, a)
	default:
		for i := range x {
			x[i] += float32(s.stream.Normal() * math.Exp(float64(s.logStd[i%a])))
		}
	}
	logStd := s.logStd
	for i := range s.logProb {
		if s.sde != nil {
			logStd = s.logStd[i*a:][:a]
		}
		s.logProb[i] = float32(rlmath.GaussianLogProb(x[i*a:][:a], s.mean[i*a:][:a], logStd))
	}
}

// refresh draws the matrices where a rollout begins, and every freq rounds of it.
func (m *matrices) refresh(at Moment) {
	now := drawn{rollout: at.Rollout, replaced: at.Replaced}
	if m.freq > 0 {
		now.part = int64(at.Round / m.freq)
	}
	if m.drawn == now {
		return
	}
	m.drawn = now
	for i, l := range m.logStd {
		m.std[i] = float32(math.Exp(float64(l)))
	}
	var s rng.Stream
	s.Seed(at.Key.Split("sde", int(now.rollout), int(now.part)))
	for i := range m.e {
		m.e[i] = m.std[i%len(m.std)] * float32(s.Normal())
	}
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

// Clip turns actions as they were drawn, float32 [n, Dims], into elements of the Box, [n, …] in its
// element type: clipped to the bounds, and rounded for integers. A component that is not a number
// is an error.
func (f *Frame) Clip(dst, drawn *tensor.Tensor) error {
	box := f.box()
	for i, x := range drawn.Float32s() {
		if x != x {
			return fmt.Errorf("component %d of the action of environment %d is %v", i%f.Dims, i/f.Dims, x)
		}
		r := box.Bounds(i % f.Dims)
		switch v := min(max(float64(x), r.Low), r.High); dst.DType() {
		case tensor.Float32:
			dst.Float32s()[i] = float32(v)
		case tensor.Float64:
			dst.Float64s()[i] = v
		default:
			dst.Bytes()[i] = uint8(min(max(math.RoundToEven(v), 0), 255))
		}
	}
	return nil
}

// Stored returns the element type and the shape of one action in the form that learners keep, and
// that [Distribution.LogProb] takes: elements of the space, with an axis also where it is Discrete,
// and for a Box float32 [Dims] as they were drawn.
func (f *Frame) Stored() (tensor.DType, []int) {
	switch {
	case f.Continuous():
		return tensor.Float32, []int{f.Dims}
	case f.Discrete():
		return tensor.Int64, []int{1}
	}
	return f.Spec.Action.DType(), f.Spec.Action.Shape()
}

// StoredOf returns the actions of a decision in the form of [Frame.Stored].
func StoredOf(d *vector.Decision) *tensor.Tensor {
	if d.Drawn != nil {
		return d.Drawn
	}
	return d.Actions
}
