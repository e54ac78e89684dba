package offpolicy

import (
	"errors"
	"math"
	"slices"

	"github.com/onnxrl/onnxrl/agents"
	"github.com/onnxrl/onnxrl/agents/constraint"
	"github.com/onnxrl/onnxrl/agents/replay"
	"github.com/onnxrl/onnxrl/agents/rlmath"
	"github.com/onnxrl/onnxrl/envs/vector"
	"github.com/onnxrl/onnxrl/models/checkpoint"
	"github.com/onnxrl/onnxrl/runtime/rng"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// Constraints are those of a learner: the multipliers, and what critics and actor are given. A nil
// one does nothing.
type Constraints struct {
	set *constraint.Set
	l   *Learner
	// costs are those of the batch's transitions, [batch, width]: the environment's, and of each
	// constraint on a tail what the episode had cost before, from the column before on.
	costs *tensor.Tensor
	width int
	list  []constrained
	scale []float32
	// charge is scratch, [batch]. stream draws one of Discrete actions at obs_t, where there is a
	// tail of what follows.
	charge, totals []float32
	stream         *rng.Stream
}

// constrained is what one constraint has in the programs.
type constrained struct {
	// next is costQOutput, y costTarget, penalty penaltyInput and offset offsetInput.
	next, y, penalty, offset []float32
	// before is the column of what the episode had cost, for a tail, and atRisk is ν, not a number
	// before the first update.
	before int
	atRisk float64
}

// Constrain makes the constraints of Networks.Constraints, none where there are none. It follows
// Build.
func (l *Learner) Constrain(s *Settings) error {
	list := l.Networks.Constraints
	if len(list) == 0 {
		return nil
	}
	if l.Setup.Offline() {
		return errors.New("constraints are on what episodes of the present policy cost, and from a data set alone there are none")
	}
	set, err := constraint.New(list, &l.Setup.Spec, l.Setup.Envs)
	if err != nil {
		return err
	}
	n, own := s.BatchSize, len(l.Setup.Spec.Costs)
	c := &Constraints{set: set, l: l, width: own + constraint.Tails(list), scale: l.Actor.Input(scaleInput).Float32s(), charge: make([]float32, n)}
	c.costs = tensor.New(tensor.Float32, n, c.width)
	before := own
	for i := range list {
		x := constrained{next: l.Targets.Output(Numbered(costQOutput, i)).Float32s(), y: l.Critic.Input(Numbered(costTarget, i)).Float32s(), penalty: l.Actor.Input(Numbered(penaltyInput, i)).Float32s()}
		if list[i].Tailed() {
			x.before, x.atRisk, x.offset = before, math.NaN(), l.Actor.Input(Numbered(offsetInput, i)).Float32s()
			before++
		}
		c.list = append(c.list, x)
	}
	l.Batch.Cost = c.costs
	if before > own {
		l.Batch.Ended = make([]bool, n)
		if !l.Networks.Frame.Continuous() {
			c.stream = l.Stream("costs")
		}
	}
	l.Constraints = c
	return nil
}

// Set returns the multipliers.
func (c *Constraints) Set() *constraint.Set {
	if c == nil {
		return nil
	}
	return c.set
}

// Excess implements agents.Limited.
func (l *Learner) Excess() float64 { return l.Constraints.Set().Excess() }

// Begin moves the multipliers at the beginning of a learner step. While nothing is learnt actions
// are random, and what they cost is forgotten.
func (c *Constraints) Begin(learns bool) error {
	switch {
	case c == nil:
		return nil
	case learns:
		return c.set.Update()
	}
	c.set.Forget()
	return nil
}

// Feed writes, once the targets' program has run, what the critics of costs learn: cost + γ·q' of
// the target critic for the policy's action, or its mean over logProb [batch, n] of Discrete ones;
// of a tail the quantiles of the rest of the episode, which are not discounted and end with it,
// whatever ends it, for one action that is drawn. It writes the multipliers into the actor's
// program, too.
func (c *Constraints) Feed(logProb []float32) {
	if c == nil {
		return
	}
	l, scale := c.l, c.set.Rescale()
	b, all := &l.Batch, c.costs.Float32s()
	c.scale[0] = float32(scale)
	for k := range c.list {
		x, column := &c.list[k], c.set.Column(k)
		x.penalty[0] = float32(c.set.Lambda(k) * scale)
		if x.offset != nil {
			x.penalty[0] /= float32(1 - c.set.Alpha(k))
			c.quantiles(x, column, logProb)
			c.follow(x, c.set.Alpha(k))
			v := float32(c.set.Threshold(k, x.atRisk))
			for i := range x.offset {
				x.offset[i] = all[i*c.width+x.before] - v
			}
			continue
		}
		for i := range c.charge {
			c.charge[i] = float32(c.set.Charge(k, 0, float64(all[i*c.width+column])))
		}
		if l.Networks.Frame.Continuous() {
			rlmath.TwinTargets(x.y, c.charge, b.Discount, x.next, x.next)
		} else {
			rlmath.DiscreteSoftTargets(x.y, c.charge, b.Discount, x.next, x.next, logProb, 0)
		}
	}
}

// quantiles writes the targets of a critic of quantiles.
func (c *Constraints) quantiles(x *constrained, column int, logProb []float32) {
	n, all := len(c.charge), c.costs.Float32s()
	q := len(x.y) / n
	for i, ended := range c.l.Batch.Ended {
		y, next := x.y[i*q:][:q], x.next[i*(len(x.next)/n):][:len(x.next)/n]
		if actions := len(next) / q; actions > 1 {
			next = next[c.stream.Categorical(logProb[i*actions:][:actions])*q:][:q]
		}
		for j := range y {
			y[j] = all[i*c.width+column]
			if !ended {
				y[j] += next[j]
			}
		}
	}
}

// follow moves ν towards the quantile of what the episodes of the batch cost in all, as the critic
// expects it of the present policy.
func (c *Constraints) follow(x *constrained, alpha float64) {
	n, all := len(c.charge), c.costs.Float32s()
	q := len(x.y) / n
	c.totals = c.totals[:0]
	for i := range n {
		for _, y := range x.y[i*q:][:q] {
			c.totals = append(c.totals, all[i*c.width+x.before]+y)
		}
	}
	slices.Sort(c.totals)
	v := float64(c.totals[min(int(alpha*float64(len(c.totals))), len(c.totals)-1)])
	if math.IsNaN(x.atRisk) {
		x.atRisk = v
	}
	x.atRisk += followRate * (v - x.atRisk)
}

// followRate is the weight of the newest batch in ν, which is to be quicker than the policy.
const followRate = 0.05

// Recorder returns a recorder of the learner's replay that tells the constraints what is recorded.
func (c *Constraints) Recorder(b replay.Buffer) replay.Buffer {
	if c == nil {
		return b
	}
	r := &constrainedRecorder{Buffer: b, c: c}
	if own := len(c.l.Setup.Spec.Costs); c.width > own {
		r.costs = make([][]float64, c.l.Setup.Envs)
		for e := range r.costs {
			r.costs[e] = make([]float64, c.width)
		}
	}
	return r
}

// Measure writes the metrics.
func (c *Constraints) Measure(m agents.Metrics) {
	if c != nil {
		c.set.Measure(m)
	}
}

func (c *Constraints) save(w *checkpoint.Writer) error {
	if c == nil {
		return nil
	}
	w = w.Scope("constraints")
	if v := c.atRisk(); len(v) > 0 {
		w.PutFloat64s("at_risk", v)
	}
	return c.set.SaveState(w)
}

func (c *Constraints) load(r *checkpoint.Reader) error {
	if c == nil {
		return nil
	}
	r = r.Scope("constraints")
	if v := c.atRisk(); len(v) > 0 {
		if err := r.Float64sInto("at_risk", v, len(v)); err != nil {
			return err
		}
		for k := range c.list {
			if x := &c.list[k]; x.offset != nil {
				x.atRisk, v = v[0], v[1:]
			}
		}
	}
	return c.set.LoadState(r)
}

// atRisk returns ν of each constraint on a tail.
func (c *Constraints) atRisk() (list []float64) {
	for k := range c.list {
		if x := &c.list[k]; x.offset != nil {
			list = append(list, x.atRisk)
		}
	}
	return list
}

// constrainedRecorder tells the constraints of the rounds that the replay records.
type constrainedRecorder struct {
	replay.Buffer
	c *Constraints
	// batch is what the replay is given, and costs its costs, with what episodes had cost before.
	batch vector.Batch
	costs [][]float64
}

// given returns a batch with the costs that the replay keeps.
func (r *constrainedRecorder) given(b *vector.Batch) *vector.Batch {
	if r.costs == nil || len(b.Costs) != len(r.costs) {
		return b
	}
	r.batch = *b
	r.batch.Costs = r.costs
	for e, row := range r.costs {
		copy(row, b.Costs[e])
		for k := range r.c.list {
			if x := &r.c.list[k]; x.offset != nil {
				row[x.before] = r.c.set.Spent(k, e)
			}
		}
	}
	return &r.batch
}

// Begin implements agents.Recorder.
func (r *constrainedRecorder) Begin(b *vector.Batch, d *vector.Decision) error {
	if err := r.Buffer.Begin(r.given(b), d); err != nil {
		return err
	}
	r.c.set.Begin(b)
	return nil
}

// End implements agents.Recorder.
func (r *constrainedRecorder) End(b *vector.Batch) error {
	if err := r.Buffer.End(r.given(b)); err != nil {
		return err
	}
	r.c.set.End(b)
	return nil
}
