package sac

import (
	"github.com/onnxrl/onnxrl/agents"
	"github.com/onnxrl/onnxrl/agents/constraint"
	"github.com/onnxrl/onnxrl/agents/replay"
	"github.com/onnxrl/onnxrl/agents/rlmath"
	"github.com/onnxrl/onnxrl/envs/vector"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// constrained is what the learner has with constraints.
type constrained struct {
	*constraint.Set
	// costs are those of the batch's transitions, [batch, costs of the environment].
	costs *tensor.Tensor
	// next has each constraint's costQOutput, y its costTarget and penalty its penaltyInput; charge
	// is scratch, [batch].
	next, y, penalty [][]float32
	scale, charge    []float32
	recorder         *constrainedRecorder
}

// constrain makes the constraints of a learner whose programs are there.
func (l *learner) constrain() error {
	spec, n := &l.Setup.Spec, l.c.BatchSize
	set, err := constraint.New(l.c.Constraints, spec, l.Setup.Envs)
	if err != nil {
		return err
	}
	c := &constrained{Set: set, costs: tensor.New(tensor.Float32, n, len(spec.Costs)), scale: l.Actor.Input(scaleInput).Float32s(), charge: make([]float32, n), recorder: &constrainedRecorder{l.Buffer, set}}
	for i := range l.c.Constraints {
		c.next = append(c.next, l.Targets.Output(numbered(costQOutput, i)).Float32s())
		c.y = append(c.y, l.Critic.Input(numbered(costTarget, i)).Float32s())
		c.penalty = append(c.penalty, l.Actor.Input(numbered(penaltyInput, i)).Float32s())
	}
	l.constraints, l.Batch.Cost = c, c.costs
	return nil
}

// bellman writes what the critics of costs learn: cost + γ·q' of the target critic for the policy's
// action, or its expectation for Discrete ones, without entropy.
func (c *constrained) bellman(l *learner) {
	width := c.costs.Shape()[1]
	all := c.costs.Float32s()
	for k, y := range c.y {
		for i := range c.charge {
			c.charge[i] = all[i*width+c.Column(k)]
		}
		if l.Networks.Frame.Continuous() {
			rlmath.SoftTargets(y, c.charge, l.Batch.Discount, c.next[k], c.next[k], l.nextLogProb, 0)
		} else {
			rlmath.DiscreteSoftTargets(y, c.charge, l.Batch.Discount, c.next[k], c.next[k], l.nextLogProb, 0)
		}
	}
}

// weigh writes the multipliers into the actor's program.
func (c *constrained) weigh() {
	scale := c.Rescale()
	c.scale[0] = float32(scale)
	for k, p := range c.penalty {
		p[0] = float32(c.Lambda(k) * scale)
	}
}

// constrainedRecorder tells the constraints of the rounds that the replay records.
type constrainedRecorder struct {
	replay.Buffer
	set *constraint.Set
}

// Begin implements agents.Recorder.
func (r *constrainedRecorder) Begin(b *vector.Batch, d *agents.Decision) error {
	if err := r.Buffer.Begin(b, d); err != nil {
		return err
	}
	r.set.Begin(b)
	return nil
}

// End implements agents.Recorder.
func (r *constrainedRecorder) End(b *vector.Batch) error {
	if err := r.Buffer.End(b); err != nil {
		return err
	}
	r.set.End(b)
	return nil
}
