package onpolicy

import (
	"errors"
	"fmt"

	"github.com/onnxrl/onnxrl/agents/constraint"
	"github.com/onnxrl/onnxrl/agents/network"
	"github.com/onnxrl/onnxrl/agents/rlmath"
	"github.com/onnxrl/onnxrl/envs/vector"
)

// Channel is what a rollout has of one constraint's cost, as it has of the reward.
type Channel struct {
	// Cost is what a sample's step cost, Before what its episode had cost until then, Value the
	// critic's estimate before the step and Final that of the last observation of an episode that
	// was cut off, [samples]. Advantage and Target are what the samples are learnt with.
	Cost, Before, Value, Final, Advantage, Target []float64
	// Bootstrap are the values after the rollout, [Envs].
	Bootstrap []float64
}

// Constrain makes the rollout record what the constraints need, and tells them of its episodes. The
// acting network must have [agents.CostValueOutput].
func (r *Rollout) Constrain(s *constraint.Set) {
	r.Constraints = s
	for range s.Len() {
		floats := func() []float64 { return make([]float64, r.Samples()) }
		r.Channels = append(r.Channels, &Channel{Cost: floats(), Before: floats(), Value: floats(), Final: floats(), Advantage: floats(), Target: floats(), Bootstrap: make([]float64, r.Envs)})
	}
}

// beginCosts records what the decision's samples had cost before, from sample at on.
func (r *Rollout) beginCosts(b *vector.Batch, d *vector.Decision, at int) error {
	k := len(r.Channels)
	if k == 0 {
		return nil
	}
	if len(d.CostValue) != k*r.Envs {
		return errors.New("the decision has no values of costs; it must be an actor's of this agent")
	}
	r.Constraints.Begin(b)
	for i, c := range r.Channels {
		for e := range r.Envs {
			c.Before[at+e], c.Value[at+e] = r.Constraints.Spent(i, e), float64(d.CostValue[e*k+i])
		}
	}
	return nil
}

// endCosts records what the steps cost, from sample at on.
func (r *Rollout) endCosts(b *vector.Batch, at int) {
	if len(r.Channels) == 0 {
		return
	}
	r.Constraints.End(b)
	for i, c := range r.Channels {
		for e := range r.Envs {
			c.Cost[at+e], c.Final[at+e] = 0, 0
			if r.Has(at + e) {
				c.Cost[at+e] = b.Costs[e][r.Constraints.Column(i)]
			}
		}
	}
}

// Excess implements agents.Limited.
func (l *Learner) Excess() float64 { return l.Rollout.Constraints.Excess() }

// costArrays adds the arrays of n samples to those of a checkpoint.
func (r *Rollout) costArrays(list network.Arrays, n int) {
	for i, c := range r.Channels {
		name := fmt.Sprintf("cost%d/", i)
		list[name+"cost"], list[name+"before"], list[name+"value"], list[name+"final"] = c.Cost[:n], c.Before[:n], c.Value[:n], c.Final[:n]
		if r.Full() {
			list[name+"bootstrap"] = c.Bootstrap
		}
	}
}

// EstimateConstrained is Estimate where there are constraints, after which Advantage is
//
//	(A − Σ λ·A of the cost)/(1 + Σ λ)
func (l *Learner) EstimateConstrained(lambda float64) {
	r := l.Rollout
	charge, discount := l.Scratch[0], l.Scratch[1]
	for k, c := range r.Channels {
		for i, x := range c.Cost {
			charge[i] = r.Constraints.Charge(k, c.Before[i], x)
		}
		copy(discount, r.Discount)
		rlmath.FoldTruncation(charge, discount, c.Final, r.Ended)
		copy(l.Next, c.Value[r.Envs:])
		copy(l.Next[len(l.Next)-r.Envs:], c.Bootstrap)
		rlmath.GAE(c.Advantage, charge, discount, c.Value, l.Next, lambda, r.Envs)
		rlmath.AddTo(c.Target, c.Advantage, c.Value)
	}
	l.Estimate(lambda)
	scale := r.Constraints.Rescale()
	for i := range l.Advantage {
		a := l.Advantage[i]
		for k, c := range r.Channels {
			a -= r.Constraints.Lambda(k) * c.Advantage[i]
		}
		l.Advantage[i] = a * scale
	}
}
