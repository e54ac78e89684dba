package offpolicy

import (
	"fmt"

	"github.com/onnxrl/onnxrl/agents/constraint"
	"github.com/onnxrl/onnxrl/configs"
	"github.com/onnxrl/onnxrl/models/head"
	"github.com/onnxrl/onnxrl/models/layer"
	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// Inputs and outputs of the graphs of learners with constraints. The constraint's number, from 1,
// follows all names but scaleInput. Q is constraint.Config.Quantiles.
const (
	// scaleInput [1] is 1/(1 + Σ λ), penaltyInput [1] λ/(1 + Σ λ), of a tail divided by 1 − alpha.
	scaleInput   = "learner.scale"
	penaltyInput = "learner.penalty"
	// costQOutput is what the policy's action at obs_t costs: [batch], or [batch, n] for Discrete
	// actions, of a tail the quantiles [batch, Q] or [batch, n, Q]. costTarget, [batch] or [batch,
	// Q], is what the critic of the cost learns.
	costQOutput = "cost_q"
	costTarget  = "learner.cost_target"
	// offsetInput [batch] is, of a tail, what the episode had cost before the step, less ν.
	offsetInput = "learner.cost_offset"
)

// Numbered is the name of one of several.
func Numbered(name string, i int) string { return fmt.Sprint(name, i+1) }

// CostCritics appends what actions cost by each of n.Constraints, in the shape of costQOutput; build
// appends a critic of so many numbers, [batch, width].
func (n *Networks) CostCritics(g *layer.Graph, build func(g *layer.Graph, width int) onnx.Value) (costs []onnx.Value) {
	for i := range n.Constraints {
		c, each := &n.Constraints[i], 1
		if c.Tailed() {
			each = c.Quantiles
		}
		width := each
		if !n.Frame.Continuous() {
			width *= n.Frame.Heads[0]
		}
		x := build(g.In(Numbered("cost", i)), width)
		switch {
		case c.Tailed() && !n.Frame.Continuous():
			x = g.Reshape(x, -1, n.Frame.Heads[0], each)
		case !c.Tailed() && n.Frame.Continuous():
			x = g.Squeeze(x, 1)
		}
		costs = append(costs, x)
	}
	return costs
}

// OutputCosts makes what actions at obs_t cost outputs of the targets' graph.
func (n *Networks) OutputCosts(l *layer.Graph, costs []onnx.Value) {
	for i, x := range costs {
		l.Output(Numbered(costQOutput, i), x)
	}
}

// CostLoss appends what the critic of constraint i loses with each row, [batch]: (x − y)², or of
// quantiles xₘ at the levels τₘ = (m + ½)/Q, with targets y of which each is as likely,
//
//	mean over m and j of |τₘ − 1{yⱼ < xₘ}|·|yⱼ − xₘ|
//
// cost is what all actions cost, or in a Box the recorded one, and taken the recorded action.
func (n *Networks) CostLoss(l *layer.Graph, i int, cost, taken onnx.Value) onnx.Value {
	c := &n.Constraints[i]
	if !c.Tailed() {
		if !n.Frame.Continuous() {
			cost = head.Pick(l, cost, taken)
		}
		return l.Square(l.Sub(cost, l.Observation(Numbered(costTarget, i))))
	}
	if !n.Frame.Continuous() {
		cost = l.Sum(l.Mul(cost, l.Unsqueeze(n.chosen(l, taken), 2)), 1)
	}
	levels := tensor.New(tensor.Float32, c.Quantiles, 1)
	for m := range levels.Float32s() {
		levels.Float32s()[m] = (float32(m) + 0.5) / float32(c.Quantiles)
	}
	// |τ − 1{u < 0}|·|u| is τ·u + (−u)⁺.
	u := l.Sub(l.Unsqueeze(l.Observation(Numbered(costTarget, i), c.Quantiles), 1), l.Unsqueeze(cost, 2))
	pinball := l.Add(l.Mul(u, l.Const(levels)), l.Activate("relu", l.Neg(u)))
	return l.Scale(l.Sum(pinball, 1, 2), 1/float64(c.Quantiles*c.Quantiles))
}

// chosen appends 1 for the recorded one of Discrete actions and 0 for all others, [batch, n].
func (n *Networks) chosen(l *layer.Graph, taken onnx.Value) onnx.Value {
	all := tensor.New(tensor.Int64, n.Frame.Heads[0])
	for i := range all.Int64s() {
		all.Int64s()[i] = int64(i)
	}
	same := l.Op("Equal", []onnx.Value{l.Unsqueeze(taken, 1), l.Const(all)})
	return l.Op("Cast", []onnx.Value{same}, onnx.AttrInt("to", int(tensor.Float32)))
}

// Penalise appends the actor's loss per row with constraints, without which it is loss itself:
//
//	loss/(1 + Σ λ) + Σ λ/(1 + Σ λ)·(what the action costs)
//
// and of a tail, with what the episode had cost before, Σ over the quantiles x of the rest,
//
//	mean (before + x − ν)⁺/(1 − alpha)
//
// probs are the probabilities of Discrete actions, over which the cost is the mean.
func (n *Networks) Penalise(l *layer.Graph, loss onnx.Value, costs []onnx.Value, probs onnx.Value) onnx.Value {
	if len(costs) == 0 {
		return loss
	}
	one := func(name string) onnx.Value { return l.Input(name, tensor.Float32, onnx.Known(1)) }
	loss = l.Mul(one(scaleInput), loss)
	for i, x := range costs {
		if c := &n.Constraints[i]; c.Tailed() {
			axes := []int{1}
			if !n.Frame.Continuous() {
				axes = []int{1, 2}
			}
			x = l.Activate("relu", l.Add(x, l.Unsqueeze(l.Observation(Numbered(offsetInput, i)), axes...)))
			x = l.Scale(l.Sum(x, axes[len(axes)-1]), 1/float64(c.Quantiles))
		}
		if !n.Frame.Continuous() {
			x = l.Sum(l.Mul(probs, x), 1)
		}
		loss = l.Add(loss, l.Mul(one(Numbered(penaltyInput, i)), x))
	}
	return loss
}

// CheckConstraints reports what does not suit constraints.
func CheckConstraints(p *configs.Problems, list []constraint.Config, nSteps int) {
	p.Check(nSteps == 1 || constraint.Tails(list) == 0, "n_steps", "is %d, expected 1: constraints with measure: %s over episodes count what an episode had cost before each step", nSteps, constraint.CVaR)
}
