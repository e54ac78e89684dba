package onpolicy

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/onnxrl/onnxrl/agents"
	"github.com/onnxrl/onnxrl/agents/constraint"
	"github.com/onnxrl/onnxrl/agents/network"
	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/envs/vector"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// Column keeps one tensor for each sample of a rollout: its bytes, or the number of a window's last
// row.
type Column struct {
	Name string
	// Data has Size bytes for each sample.
	Data []byte
	Size int
	// Window is nil for other columns, Rows for those of windows only.
	Window *envs.Window
	Rows   []int64

	all *tensor.Tensor
}

// NewColumn returns a column over a tensor of all samples [samples, …].
func NewColumn(name string, all *tensor.Tensor) *Column {
	b := all.Bytes()
	return &Column{Name: name, Data: b, Size: len(b) / all.Shape()[0], all: all}
}

// At returns the bytes of a sample, which are not to be changed.
func (c *Column) At(i int) []byte {
	if c.Window != nil {
		return c.Window.At(int(c.Rows[i])).Bytes()
	}
	return c.Data[i*c.Size : (i+1)*c.Size]
}

// record writes field i of a batch from a sample on.
func (c *Column) record(b *vector.Batch, i, at int) error {
	switch {
	case c.Window != nil:
		copy(c.Rows[at:], b.Rows[i])
	case b.Obs[i] != nil:
		copy(c.Data[at*c.Size:], b.Obs[i].Bytes())
	default:
		return b.Gather(i, c.all.Rows(at, at+len(b.Type)))
	}
	return nil
}

// Rollout records Rounds · Envs samples. Sample t·Envs + e is environment e in round t. It
// implements agents.Recorder.
type Rollout struct {
	Rounds, Envs int
	// T is the number of recorded rounds.
	T int

	// Fields are the columns of the observation, nil where one is not recorded; Mask is nil where
	// there is none.
	Fields        []*Column
	Mask, Actions *Column

	// Reward, Discount and Value are those of each sample's step, the latter before it; learners
	// change Reward and Discount, Earned is what was given. Ended says that an episode ended there,
	// and Final is the value of its last observation. Value is NaN where the decision had none.
	Reward, Earned, Discount, Value, Final []float64
	Ended                                  []bool
	// Present says which samples there are; nil where all rows were present. Nothing is learnt from
	// the others, whose steps have reward and discount 0 and end an episode, so that nothing
	// reaches over them.
	Present []bool
	// Seeds are what the dropout masks of the samples' decisions were drawn from, once in a rollout
	// for each environment, see [Masks]; nil without dropout.
	Seeds []int64
	// Gamma multiplies the discounts of the steps that are recorded.
	Gamma float64
	// Bootstrap are the values after the rollout, [Envs].
	Bootstrap []float64
	// Constraints are those of the learner, with a channel each; nil without: see Constrain.
	Constraints *constraint.Set
	Channels    []*Channel

	// OffPolicy lets decisions come from another policy, without values. Check, unless nil, refuses
	// others. Record, unless nil, writes what the algorithm needs besides, from sample at on.
	OffPolicy bool
	Check     func(d *vector.Decision) error
	Record    func(b *vector.Batch, d *vector.Decision, at int) error

	learner *Learner
	// forward evaluates observations after which nothing is decided any more.
	forward *Forward
	// open says that the next round has begun.
	open bool
}

// NewRollout makes the learner's rollout. column returns what keeps a field of the observation, the
// mask and the actions, by name. f evaluates the values that returns end with.
func NewRollout(l *Learner, rounds int, gamma float64, f *Forward, actions string, column func(name string, f *envs.Field) *Column) *Rollout {
	samples := rounds * l.Setup.Envs
	floats := func() []float64 { return make([]float64, samples) }
	r := &Rollout{
		Rounds: rounds, Envs: l.Setup.Envs, learner: l, Gamma: gamma, forward: f,
		Reward: floats(), Earned: floats(), Discount: floats(), Value: floats(), Final: floats(), Ended: make([]bool, samples), Bootstrap: make([]float64, l.Setup.Envs),
	}
	if len(l.Networks.Masks) > 0 {
		r.Seeds = make([]int64, samples)
	}
	spec := l.Networks.Frame.Spec
	for i := range spec.Observation {
		r.Fields = append(r.Fields, column(spec.Observation[i].Name, &spec.Observation[i]))
	}
	if spec.Masked {
		r.Mask = column(agents.MaskInput, nil)
	}
	r.Actions = column(actions, nil)
	l.Rollout, l.Advantage, l.Target, l.Next = r, floats(), floats(), floats()
	l.Scratch = [2][]float64{floats(), floats()}
	return r
}

// Samples is the number of samples of a complete rollout.
func (r *Rollout) Samples() int { return r.Rounds * r.Envs }

// Has reports whether there is a sample, whose row was present.
func (r *Rollout) Has(i int) bool { return r.Present == nil || r.Present[i] }

// Select returns those of x [samples] whose rows were present, over dst; x itself where all were.
func (r *Rollout) Select(dst, x []float64) []float64 {
	if r.Present == nil {
		return x
	}
	dst = dst[:0]
	for i, here := range r.Present {
		if here {
			dst = append(dst, x[i])
		}
	}
	return dst
}

// Spread is the inverse of Select: it puts x to its places in dst.
func (r *Rollout) Spread(dst, x []float64) {
	k := 0
	for i := range dst {
		if r.Has(i) {
			dst[i] = x[k]
			k++
		}
	}
}

// Full reports whether a rollout is complete.
func (r *Rollout) Full() bool { return r.T == r.Rounds }

// Clear begins the next rollout.
func (r *Rollout) Clear() { r.T, r.open = 0, false }

// Begin implements agents.Recorder.
func (r *Rollout) Begin(b *vector.Batch, d *vector.Decision) error {
	if err := r.begin(b, d); err != nil {
		return fmt.Errorf("%s: record: %w", r.learner.Name, err)
	}
	r.open = true
	return nil
}

func (r *Rollout) begin(b *vector.Batch, d *vector.Decision) error {
	switch {
	case r.open:
		return errors.New("begun twice without an end")
	case r.Full():
		return fmt.Errorf("the rollout of %d rounds is full and waits for the learner", r.Rounds)
	case len(b.Type) != r.Envs:
		return fmt.Errorf("a batch of %d environments, expected %d", len(b.Type), r.Envs)
	case len(d.LogProb) != r.Envs || !r.OffPolicy && len(d.Value) != r.Envs:
		return errors.New("the decision has no values or log-probabilities; it must be an actor's of this agent")
	case r.Seeds != nil && len(d.Dropout) != r.Envs:
		return errors.New("the decision does not say what its dropout was drawn from; it must be an actor's of this agent")
	case !r.OffPolicy && d.Version != r.learner.Updates:
		return fmt.Errorf("the decision was taken by version %d of the policy and the learner is at %d, but %s learns on-policy", d.Version, r.learner.Updates, r.learner.Name)
	}
	if r.Check != nil {
		if err := r.Check(d); err != nil {
			return err
		}
	}
	r.cutOff(b)
	at := r.T * r.Envs
	for i, c := range r.Fields {
		if c == nil {
			continue
		}
		if err := c.record(b, i, at); err != nil {
			return err
		}
	}
	if c := r.Mask; c != nil {
		copy(c.Data[at*c.Size:], b.Mask.Bytes())
	}
	copy(r.Actions.Data[at*r.Actions.Size:], network.StoredOf(d).Bytes())
	for e := range r.Envs {
		r.Value[at+e] = math.NaN()
	}
	for e, v := range d.Value {
		r.Value[at+e] = float64(v)
	}
	if r.Seeds != nil {
		copy(r.Seeds[at:], d.Dropout)
	}
	r.attend(b, at)
	if err := r.beginCosts(b, d, at); err != nil {
		return err
	}
	if r.Record == nil {
		return nil
	}
	return r.Record(b, d, at)
}

// attend records which rows are present, from sample at on.
func (r *Rollout) attend(b *vector.Batch, at int) {
	switch {
	case b.Present != nil:
		if r.Present == nil {
			r.setPresent()
		}
		copy(r.Present[at:], b.Present)
	case r.Present != nil:
		for e := range b.Type {
			r.Present[at+e] = true
		}
	}
}

// setPresent begins to keep which rows are present; so far all of them were.
func (r *Rollout) setPresent() {
	r.Present = slices.Repeat([]bool{true}, r.Samples())
}

// End implements agents.Recorder. It evaluates the final observations of episodes that were cut
// off, and after the last round the present ones.
func (r *Rollout) End(b *vector.Batch) error {
	if !r.open {
		return fmt.Errorf("%s: record: ended without a beginning", r.learner.Name)
	}
	at := r.T * r.Envs
	cut := false
	for e, t := range b.Type {
		r.Reward[at+e], r.Discount[at+e], r.Ended[at+e] = b.Reward[e], r.Gamma*b.Discount[e], t == envs.Last
		r.Earned[at+e], r.Final[at+e] = b.Reward[e], 0
		cut = cut || r.Ended[at+e] && b.Discount[e] > 0
		if !r.Has(at + e) {
			r.Reward[at+e], r.Discount[at+e], r.Ended[at+e], r.Earned[at+e] = 0, 0, true, 0
		}
	}
	r.endCosts(b, at)
	// Returns end with the value of the network that acted.
	r.forward.masks.FillRollout(r, at)
	if cut {
		if err := r.forward.Final(b); err != nil {
			return fmt.Errorf("%s: value of final observations: %w", r.learner.Name, err)
		}
		for _, ep := range b.Ended {
			r.Final[at+ep.Env] = float64(r.forward.Value[ep.Env])
			for k, c := range r.Channels {
				c.Final[at+ep.Env] = float64(r.forward.CostValue[ep.Env*len(r.Channels)+k])
			}
		}
	}
	if r.T == r.Rounds-1 {
		if err := r.forward.Current(b); err != nil {
			return fmt.Errorf("%s: value after the rollout: %w", r.learner.Name, err)
		}
		for e, v := range r.forward.Value {
			r.Bootstrap[e] = float64(v)
			for k, c := range r.Channels {
				c.Bootstrap[e] = float64(r.forward.CostValue[e*len(r.Channels)+k])
			}
		}
	}
	r.T++
	r.open = false
	return nil
}

// cutOff finds out whether the environments were reset in the middle of episodes, as they are when
// a run is resumed whose environments could not be saved. What the last round led to is then not
// known: it is dropped, and the episodes count as cut off before it, where their value is the one
// that its decision was taken with. Where decisions come without values, nothing can be kept.
func (r *Rollout) cutOff(b *vector.Batch) {
	if r.T == 0 || !agents.CutOff(b, r.Ended[(r.T-1)*r.Envs:]) {
		return
	}
	r.T--
	if r.T == 0 {
		return
	}
	last := r.T * r.Envs
	if math.IsNaN(r.Value[last]) {
		r.T = 0
		return
	}
	for i := last - r.Envs; i < last; i++ {
		if !r.Ended[i] {
			r.Ended[i], r.Final[i] = true, r.Value[i+r.Envs]
			for _, c := range r.Channels {
				c.Final[i] = c.Value[i+r.Envs]
			}
		}
	}
}

// After writes the values after each sample's step to dst, given those before it, [samples].
func (r *Rollout) After(dst, v []float64) {
	copy(dst, v[r.Envs:])
	copy(dst[len(dst)-r.Envs:], r.Bootstrap)
}

// Arrays lists the numbers that are recorded, as far as they are, by the names of a checkpoint.
func (r *Rollout) Arrays() network.Arrays {
	n := r.T * r.Envs
	list := network.Arrays{"reward": r.Reward[:n], "discount": r.Discount[:n], "value": r.Value[:n], "final": r.Final[:n], "ended": r.Ended[:n]}
	if r.Full() {
		list["bootstrap"] = r.Bootstrap
	}
	if r.Present != nil {
		list["present"] = r.Present[:n]
	}
	if r.Seeds != nil {
		list["dropout"] = r.Seeds[:n]
	}
	r.costArrays(list, n)
	return list
}
