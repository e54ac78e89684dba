package ppo

import (
	"errors"
	"fmt"

	"github.com/onnxrl/onnxrl/agents"
	"github.com/onnxrl/onnxrl/agents/network"
	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/envs/vector"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// column keeps one tensor for each sample: its bytes, or the number of a window's last row.
type column struct {
	name   string
	size   int
	data   []byte
	window *envs.Window
	rows   []int64
}

func newColumn(name string, samples int, d tensor.DType, shape []int) *column {
	n := 1
	for _, k := range shape {
		n *= k
	}
	size := d.ByteLen(n)
	return &column{name: name, size: size, data: make([]byte, samples*size)}
}

// at returns the bytes of a sample, which are not to be changed.
func (c *column) at(i int) []byte {
	if c.window != nil {
		return c.window.At(int(c.rows[i])).Bytes()
	}
	return c.data[i*c.size : (i+1)*c.size]
}

// rollout records rounds · envs samples. Sample t·envs + e is environment e in round t.
type rollout struct {
	frame        *network.Frame
	rounds, envs int
	gamma        float64
	learner      *learner
	// t is the number of recorded rounds; open says that the next one has begun.
	t    int
	open bool

	// fields are the columns of the observation; mask is nil where there is none.
	fields        []*column
	mask, actions *column
	logProb       []float32
	// f evaluates observations after which nothing is decided any more.
	f *forward
	// begins says that an episode begins with a sample. Of a memory, initial has the states before
	// every length-th round, [sequences, width] for each state.
	begins  []bool
	memory  *states
	length  int
	initial [][]float32

	// reward, discount and value are those of each sample's step, the latter before it; the learner
	// changes reward and discount. ended says that an episode ended there, and final is the value
	// of its last observation.
	reward, discount, value, final []float64
	ended                          []bool
	// bootstrap are the values after the rollout, [envs].
	bootstrap []float64
}

func newRollout(g *graphs, c Config, n int, f *forward, m *states, l *learner) *rollout {
	samples := c.NSteps * n
	floats := func() []float64 { return make([]float64, samples) }
	dtype, shape := g.frame.Stored()
	r := &rollout{
		frame: g.frame, rounds: c.NSteps, envs: n, gamma: c.Gamma, learner: l, f: f, memory: m, length: g.length,
		actions: newColumn(actionsInput, samples, dtype, shape), logProb: make([]float32, samples), begins: make([]bool, samples),
		reward: floats(), discount: floats(), value: floats(), final: floats(), ended: make([]bool, samples), bootstrap: make([]float64, n),
	}
	for _, field := range g.frame.Spec.Observation {
		if field.Window != nil {
			r.fields = append(r.fields, &column{name: field.Name, window: field.Window, rows: make([]int64, samples)})
			continue
		}
		r.fields = append(r.fields, newColumn(field.Name, samples, field.Space.DType(), field.Space.Shape()))
	}
	if g.frame.Spec.Masked {
		r.mask = newColumn(agents.MaskInput, samples, tensor.Bool, []int{g.frame.MaskLen()})
	}
	for _, size := range g.sizes {
		r.initial = append(r.initial, make([]float32, r.units()*size))
	}
	return r
}

// units is the number of pieces that minibatches are made of: samples, or sequences of length
// rounds, of which the last of an environment may be shorter.
func (r *rollout) units() int {
	if r.length == 0 {
		return r.rounds * r.envs
	}
	return (r.rounds + r.length - 1) / r.length * r.envs
}

// columns lists everything that a graph reads as it was recorded.
func (r *rollout) columns() []*column {
	list := append([]*column{r.actions}, r.fields...)
	if r.mask != nil {
		list = append(list, r.mask)
	}
	return list
}

// full reports whether a rollout is complete.
func (r *rollout) full() bool { return r.t == r.rounds }

// Begin implements agents.Recorder.
func (r *rollout) Begin(b *vector.Batch, d *agents.Decision) error {
	switch {
	case r.open:
		return errors.New("ppo: record: begun twice without an end")
	case r.full():
		return fmt.Errorf("ppo: record: the rollout of %d rounds is full and waits for the learner", r.rounds)
	case len(b.Type) != r.envs:
		return fmt.Errorf("ppo: record: a batch of %d environments, expected %d", len(b.Type), r.envs)
	case len(d.Value) != r.envs || len(d.LogProb) != r.envs:
		return errors.New("ppo: record: the decision has no values or log-probabilities; it must be an actor's of this agent")
	case d.Version != r.learner.updates:
		return fmt.Errorf("ppo: record: the decision was taken by version %d of the policy and the learner is at %d, but PPO learns on-policy", d.Version, r.learner.updates)
	case r.memory != nil && r.memory.before == nil:
		return errors.New("ppo: record: no exploring actor for all environments has decided; a recurrent policy records its states")
	}
	r.cutOff(b)
	at := r.t * r.envs
	for i, c := range r.fields {
		if c.window != nil {
			copy(c.rows[at:], b.Rows[i])
		} else {
			copy(c.data[at*c.size:], b.Obs[i].Bytes())
		}
	}
	if r.mask != nil {
		copy(r.mask.data[at*r.mask.size:], b.Mask.Bytes())
	}
	copy(r.actions.data[at*r.actions.size:], network.StoredOf(d).Bytes())
	copy(r.logProb[at:], d.LogProb)
	for e, v := range d.Value {
		r.value[at+e] = float64(v)
		r.begins[at+e] = b.Type[e] != envs.Mid
	}
	if r.memory != nil && r.t%r.length == 0 {
		for i, before := range r.memory.before {
			copy(r.initial[i][r.t/r.length*len(before):], before)
		}
	}
	r.open = true
	return nil
}

// End implements agents.Recorder. It evaluates the final observations of episodes that were cut
// off, and after the last round the present ones.
func (r *rollout) End(b *vector.Batch) error {
	if !r.open {
		return errors.New("ppo: record: ended without a beginning")
	}
	at := r.t * r.envs
	cut := false
	for e, t := range b.Type {
		r.reward[at+e], r.discount[at+e], r.ended[at+e] = b.Reward[e], r.gamma*b.Discount[e], t == envs.Last
		r.final[at+e] = 0
		cut = cut || r.ended[at+e] && b.Discount[e] > 0
	}
	if cut {
		if err := r.f.final(b, r.memory); err != nil {
			return fmt.Errorf("ppo: value of final observations: %w", err)
		}
		for _, ep := range b.Ended {
			r.final[at+ep.Env] = float64(r.f.value[ep.Env])
		}
	}
	if r.t == r.rounds-1 {
		if err := r.f.next(b, r.memory); err != nil {
			return fmt.Errorf("ppo: value after the rollout: %w", err)
		}
		for e, v := range r.f.value {
			r.bootstrap[e] = float64(v)
		}
	}
	r.t++
	r.open = false
	return nil
}

// cutOff finds out whether the environments were reset in the middle of episodes, as they are when
// a run is resumed whose environments could not be saved. What the last round led to is then not
// known: it is dropped, and the episodes count as cut off before it, where their value is the one
// that its decision was taken with.
func (r *rollout) cutOff(b *vector.Batch) {
	if r.t == 0 || !agents.CutOff(b, r.ended[(r.t-1)*r.envs:]) {
		return
	}
	r.t--
	if r.t == 0 {
		return
	}
	last := r.t * r.envs
	for i := last - r.envs; i < last; i++ {
		if !r.ended[i] {
			r.ended[i], r.final[i] = true, r.value[i+r.envs]
		}
	}
}

// clear begins the next rollout.
func (r *rollout) clear() { r.t, r.open = 0, false }
