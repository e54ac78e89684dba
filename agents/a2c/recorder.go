package a2c

import (
	"errors"
	"fmt"
	"math"

	"github.com/onnxrl/onnxrl/agents"
	"github.com/onnxrl/onnxrl/agents/network"
	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/envs/vector"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// recorder writes a rollout of rounds · envs samples to where the learning program reads it. Sample
// t·envs + e is environment e in round t.
type recorder struct {
	frame        *network.Frame
	rounds, envs int
	gamma        float64
	learner      *learner
	// t is the number of recorded rounds; open says that the next one has begun.
	t    int
	open bool

	// obs, mask and actions are the rows of the program's inputs of each round. obs are nil for
	// windows whose features come from the bank.
	obs           [][]*tensor.Tensor
	mask, actions []*tensor.Tensor
	// f evaluates observations after which nothing is decided any more.
	f *forward
	// Where there are windows of a table, z are the program's inputs of features; sample i is the
	// window that ends with row last[i], in the chunk that begins at start[i].
	bank        *bank
	z           [][]float32
	last, start []int64

	// reward, discount and value are those of each sample's step, the latter before it; the learner
	// changes reward and discount, earned is what was really earned; ended says that an episode
	// ended there, and final is the value of its last observation.
	reward, earned, discount, value, final []float64
	ended                                  []bool
	// logMu are the log-probabilities with which the actions were drawn; nil without a correction.
	// The values are what the actor computed, until the correction computes them.
	logMu []float64
	// bootstrap are the values after the rollout, [envs].
	bootstrap []float64
}

func newRecorder(g *graphs, c Config, n int, train *minibatches, f *forward, k *bank, l *learner) *recorder {
	samples := c.NSteps * n
	floats := func() []float64 { return make([]float64, samples) }
	r := &recorder{
		frame: g.frame, rounds: c.NSteps, envs: n, gamma: c.Gamma, learner: l, f: f, bank: k,
		reward: floats(), earned: floats(), discount: floats(), value: floats(), final: floats(), ended: make([]bool, samples), bootstrap: make([]float64, n),
	}
	if c.Correction == VTrace {
		r.logMu = floats()
	}
	for t := range r.rounds {
		part := func(name string) *tensor.Tensor {
			if in := train.in[name]; in != nil {
				return in.Rows(t*n, (t+1)*n)
			}
			return nil
		}
		var obs []*tensor.Tensor
		for _, field := range g.frame.Spec.Observation {
			obs = append(obs, part(field.Name))
		}
		r.obs, r.mask, r.actions = append(r.obs, obs), append(r.mask, part(agents.MaskInput)), append(r.actions, part(actionsInput))
	}
	if k != nil {
		r.last, r.start = make([]int64, samples), make([]int64, samples)
		for _, name := range g.features {
			r.z = append(r.z, train.in[name].Float32s())
		}
	}
	return r
}

// full reports whether a rollout is complete.
func (r *recorder) full() bool { return r.t == r.rounds }

// Begin implements agents.Recorder.
func (r *recorder) Begin(b *vector.Batch, d *agents.Decision) error {
	switch {
	case r.open:
		return errors.New("a2c: record: begun twice without an end")
	case r.full():
		return fmt.Errorf("a2c: record: the rollout of %d rounds is full and waits for the learner", r.rounds)
	case len(b.Type) != r.envs:
		return fmt.Errorf("a2c: record: a batch of %d environments, expected %d", len(b.Type), r.envs)
	case r.logMu != nil && len(d.LogProb) != r.envs:
		return errors.New("a2c: record: the decision has no log-probabilities, which the correction compares with the policy's")
	case r.logMu == nil && len(d.Value) != r.envs:
		return errors.New("a2c: record: the decision has no values; it must be an actor's of this agent")
	case r.logMu == nil && d.Version != r.learner.updates:
		return fmt.Errorf("a2c: record: the decision was taken by version %d of the policy and the learner is at %d, but A2C learns on-policy; see correction", d.Version, r.learner.updates)
	}
	r.cutOff(b)
	for i, t := range r.obs[r.t] {
		if t == nil {
			continue
		}
		if err := b.Gather(i, t); err != nil {
			return fmt.Errorf("a2c: record: %w", err)
		}
	}
	if t := r.mask[r.t]; t != nil {
		copy(t.Bytes(), b.Mask.Bytes())
	}
	copy(r.actions[r.t].Bytes(), network.StoredOf(d).Bytes())
	at := r.t * r.envs
	for e := range r.envs {
		r.value[at+e] = math.NaN()
	}
	for e, v := range d.Value {
		r.value[at+e] = float64(v)
	}
	if r.logMu != nil {
		for e, l := range d.LogProb {
			r.logMu[at+e] = float64(l)
		}
	}
	if r.bank != nil {
		for e, row := range b.Rows[r.frame.Series] {
			p, err := r.bank.find(int(row), r.learner.stamp())
			if err != nil {
				return fmt.Errorf("a2c: record: %w", err)
			}
			r.bank.copyTo(r.z, at+e, p, int(row))
			r.last[at+e], r.start[at+e] = row, int64(p.start)
		}
	}
	r.open = true
	return nil
}

// End implements agents.Recorder. It evaluates the final observations of episodes that were cut
// off, and after the last round the present ones.
func (r *recorder) End(b *vector.Batch) error {
	if !r.open {
		return errors.New("a2c: record: ended without a beginning")
	}
	at := r.t * r.envs
	cut := false
	for e, t := range b.Type {
		r.reward[at+e], r.discount[at+e], r.ended[at+e] = b.Reward[e], r.gamma*b.Discount[e], t == envs.Last
		r.earned[at+e] = b.Reward[e]
		r.final[at+e] = 0
		cut = cut || r.ended[at+e] && b.Discount[e] > 0
	}
	if cut {
		if err := r.f.final(b, r.learner.stamp()); err != nil {
			return fmt.Errorf("a2c: value of final observations: %w", err)
		}
		for _, ep := range b.Ended {
			r.final[at+ep.Env] = float64(r.f.value[ep.Env])
		}
	}
	if r.t == r.rounds-1 {
		if err := r.f.current(b, r.learner.stamp()); err != nil {
			return fmt.Errorf("a2c: value after the rollout: %w", err)
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
// that its decision was taken with. Where decisions come without values, nothing can be kept.
func (r *recorder) cutOff(b *vector.Batch) {
	if r.t == 0 || !agents.CutOff(b, r.ended[(r.t-1)*r.envs:]) {
		return
	}
	r.t--
	if r.t == 0 {
		return
	}
	last := r.t * r.envs
	if math.IsNaN(r.value[last]) {
		r.t = 0
		return
	}
	for i := last - r.envs; i < last; i++ {
		if !r.ended[i] {
			r.ended[i], r.final[i] = true, r.value[i+r.envs]
		}
	}
}

// arrays lists what is recorded of a rollout.
func (r *recorder) arrays() network.Arrays {
	n := r.t * r.envs
	list := network.Arrays{
		"reward": r.reward[:n], "earned": r.earned[:n], "discount": r.discount[:n], "value": r.value[:n], "final": r.final[:n], "ended": r.ended[:n],
	}
	for t := range r.t {
		for i, x := range r.obs[t] {
			if x != nil {
				list[fmt.Sprintf("obs/%d/%d", i, t)] = x.Bytes()
			}
		}
		if x := r.mask[t]; x != nil {
			list[fmt.Sprintf("mask/%d", t)] = x.Bytes()
		}
		list[fmt.Sprintf("actions/%d", t)] = r.actions[t].Bytes()
	}
	if r.bank != nil {
		list["last"] = r.last[:n]
		list["start"] = r.start[:n]
		for i, z := range r.z {
			list[fmt.Sprintf("features/%d", i)] = z[:n*r.bank.rows.series*r.bank.width]
		}
	}
	if r.logMu != nil {
		list["log_mu"] = r.logMu[:n]
	}
	if r.full() {
		list["bootstrap"] = r.bootstrap
	}
	return list
}

// clear begins the next rollout.
func (r *recorder) clear() { r.t, r.open = 0, false }
