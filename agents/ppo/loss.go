package ppo

import (
	"math"

	"github.com/onnxrl/onnxrl/agents/network"
	"github.com/onnxrl/onnxrl/agents/rlmath"
	"github.com/onnxrl/onnxrl/models/layer"
	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// Inputs and outputs of the graph that learns, beside observations, mask and states. All are
// float32 with a number per sample, except the actions.
const (
	actionsInput = "ppo.actions"
	oldInput     = "ppo.old_log_prob"
	returnsInput = "ppo.returns"
	// The least value of the surrogate, and the bounds of the value.
	floorInput = "ppo.floor"
	valueLow   = "ppo.value_low"
	valueHigh  = "ppo.value_high"
	// The weights of a sample in the three terms of the loss, signs and coefficients included.
	policyWeight  = "ppo.policy_weight"
	valueWeight   = "ppo.value_weight"
	entropyWeight = "ppo.entropy_weight"
	// The targets of costs, and their weights, have a number per sample and constraint.
	costReturns = "ppo.cost_returns"
	costWeight  = "ppo.cost_weight"
)

// inputs and outputs are those of the learning program, a number for each row; those that the
// configuration does not need are nil.
type inputs struct {
	old, returns, floor, valueLow, valueHigh, policy, value, entropy, costReturns, cost []float32
}

type outputs struct{ logProb, entropy, value, cost []float32 }

// loss appends the loss of a minibatch of n samples and returns it with the entropies,
//
//	L = −1/n Σ min(ρ·A, clip(ρ, 1−ε, 1+ε)·A) + vf_coef/n Σ (V' − G)² − ent_coef/n Σ H(π(·|s)),   ρ = π(a|s)/π_old(a|s)
//
// as Σ max(policy_weight·ρ, floor) − floor + value_weight·(V' − G)² + entropy_weight·H. With
// policy_weight = −A/n and floor = policy_weight·(1 + ε·sign A) the maximum is the paper's term: of
// the clipped ratio only one bound can ever count. What is taken off it does not depend on the
// parameters. V' is V, or V clipped to its own bounds. With constraints A is that of package
// onpolicy's EstimateConstrained, and vf_coef/n Σ (Vc − Gc)² is added for each cost. Advantages,
// returns and bounds are inputs, so no gradient flows through them.
//
// A minibatch of 64 spends as much time on starting nodes as on arithmetic, so columns [rows, 1]
// stay columns, and the maximum is a Relu. The gradient of a Relu takes two cheap nodes; that of
// Max shares among equals and takes seven, and Where is slow.
func (d *design) loss(t *layer.Graph, n *parts, logProb onnx.Value, length int) (loss, entropy onnx.Value) {
	input := func(name string, like onnx.Value) onnx.Value {
		return network.Sequence(t, name, length, tensor.Float32, ones(len(t.Dims(like))-1)...)
	}
	ratio := t.Exp(t.Sub(logProb, input(oldInput, logProb)))
	surrogate := t.Mul(input(policyWeight, logProb), ratio)
	excess := t.Activate("relu", t.Sub(surrogate, input(floorInput, logProb)))
	loss = t.Op("ReduceSum", []onnx.Value{excess}, onnx.AttrInt("keepdims", 0))

	loss = t.Add(loss, t.Dot(input(valueWeight, n.value), d.valueLoss(t, n.value, input)))
	if k := len(d.c.Constraints); k > 0 {
		each := func(name string) onnx.Value { return network.Sequence(t, name, length, tensor.Float32, k) }
		loss = t.Add(loss, t.Dot(each(costWeight), t.Square(t.Sub(n.costs, each(costReturns)))))
	}

	entropy = n.dist.Entropy()
	if d.c.EntCoef > 0 {
		loss = t.Add(loss, t.Dot(input(entropyWeight, entropy), entropy))
	}
	return loss, entropy
}

// valueLoss appends the losses of values, one for each. Of two, the larger one is a Relu again.
func (d *design) valueLoss(t *layer.Graph, value onnx.Value, input func(name string, like onnx.Value) onnx.Value) onnx.Value {
	target := input(returnsInput, value)
	of := func(v onnx.Value) onnx.Value {
		e := t.Sub(v, target)
		if d.c.VFLoss == Squared {
			return t.Square(e)
		}
		near := t.Clip(e, -d.c.HuberDelta, d.c.HuberDelta)
		return t.Mul(near, t.Sub(e, t.Mul(near, t.Float(0.5))))
	}
	if d.c.ClipRangeVF == 0 {
		return of(value)
	}
	clipped := of(t.Min(t.Max(value, input(valueLow, value)), input(valueHigh, value)))
	if d.c.VFClip == Clipped {
		return clipped
	}
	loss := of(value)
	return t.Add(loss, t.Activate("relu", t.Sub(clipped, loss)))
}

// valueLoss is the loss of the value of a row.
func (l *learner) valueLoss(row int) float64 {
	of := func(v float64) float64 {
		e := v - float64(l.in.returns[row])
		if l.c.VFLoss == Squared {
			return e * e
		}
		near := min(max(e, -l.c.HuberDelta), l.c.HuberDelta)
		return near * (e - near/2)
	}
	v := float64(l.out.value[row])
	if l.in.valueLow == nil {
		return of(v)
	}
	clipped := of(min(max(v, float64(l.in.valueLow[row])), float64(l.in.valueHigh[row])))
	if l.c.VFClip == Clipped {
		return clipped
	}
	return max(of(v), clipped)
}

// fill writes a minibatch and the inputs of its loss.
func (l *learner) fill(units []int, now coefficients) {
	m, in := l.learn, &l.in
	m.gather(units)
	l.normal = l.normal[:0]
	for row, i := range m.samples {
		if m.valid[row] {
			l.normal = append(l.normal, l.Advantage[i])
		}
	}
	if l.c.NormalizeAdvantage {
		rlmath.Normalize(l.normal)
	}
	if l.norm != nil {
		l.norm.update(l)
	}
	k := 0
	for row, i := range m.samples {
		// Copies that fill up the minibatch weigh nothing.
		w, a := 0.0, 0.0
		if m.valid[row] {
			w, a = 1/float64(m.n), l.normal[k]
			k++
		}
		bound := 1 + math.Copysign(now.clip, a)
		in.old[row], in.policy[row], in.floor[row] = l.logProb[i], float32(-w*a), float32(-w*a*bound)
		target, value := l.norm.apply(l.Target[i], l.Rollout.Value[i])
		in.returns[row], in.value[row] = float32(target), float32(w*l.c.VFCoef)
		for j, c := range l.Rollout.Channels {
			at := row*len(l.Rollout.Channels) + j
			in.costReturns[at], in.cost[at] = float32(c.Target[i]), float32(w*l.c.VFCoef)
		}
		if in.valueLow != nil {
			in.valueLow[row], in.valueHigh[row] = float32(value-now.clipVF), float32(value+now.clipVF)
		}
		if in.entropy != nil {
			in.entropy[row] = float32(-w * l.c.EntCoef)
		}
	}
}

// sums add up the diagnostics of an update, over its minibatches; kl only of the last epoch.
type sums struct {
	policy, value, entropy, clipped, kl, cost float64
	batches, klBatches                        float64
	// loss is that of the last minibatch.
	loss float64
}

// values returns the sums but cost in the order in which they are saved, and set takes them back.
func (s *sums) values() []float64 {
	return []float64{s.policy, s.value, s.entropy, s.clipped, s.kl, s.batches, s.klBatches, s.loss}
}

func (s *sums) set(v []float64) {
	*s = sums{cost: s.cost, policy: v[0], value: v[1], entropy: v[2], clipped: v[3], kl: v[4], batches: v[5], klBatches: v[6], loss: v[7]}
}

// diagnose computes the statistics of a minibatch from what its program gave, and returns its
// approx_kl: the k3 estimate, mean (ρ − 1) − log ρ.
func (l *learner) diagnose(now coefficients) float64 {
	m := l.learn
	var policy, value, entropy, clipped, kl, cost float64
	for row := range m.samples {
		if !m.valid[row] {
			continue
		}
		log := float64(l.out.logProb[row] - l.in.old[row])
		rho := math.Exp(log)
		kl += rho - 1 - log
		if math.Abs(rho-1) > now.clip {
			clipped++
		}
		policy += max(float64(l.in.policy[row])*rho, float64(l.in.floor[row]))
		value += l.valueLoss(row)
		entropy += float64(l.out.entropy[row])
		for j := range l.Rollout.Channels {
			d := float64(l.out.cost[row*len(l.Rollout.Channels)+j] - l.in.costReturns[row*len(l.Rollout.Channels)+j])
			cost += d * d
		}
	}
	n := float64(m.n)
	cost /= n
	value, entropy, kl = value/n, entropy/n, kl/n
	s := &l.sums
	s.policy, s.value, s.entropy, s.clipped = s.policy+policy, s.value+value, s.entropy+entropy, s.clipped+clipped/n
	s.batches++
	s.kl, s.klBatches = s.kl+kl, s.klBatches+1
	s.cost += cost
	s.loss = policy - l.c.EntCoef*entropy + l.c.VFCoef*(value+cost)
	return kl
}

// measure computes the metrics of the update.
func (l *learner) measure(now coefficients) {
	s, m := &l.sums, l.Metrics
	m["train/loss"], m["train/policy_gradient_loss"], m["train/value_loss"] = s.loss, s.policy/s.batches, s.value/s.batches
	m["train/entropy_loss"], m["train/clip_fraction"] = -s.entropy/s.batches, s.clipped/s.batches
	m["train/approx_kl"] = s.kl / s.klBatches
	m["train/learning_rate"], m["train/clip_range"] = now.learningRate, now.clip
	if l.c.ClipRangeVF > 0 {
		m["train/clip_range_vf"] = now.clipVF
	}
	m["train/n_updates"] = float64(l.epochs)
	if l.norm != nil {
		m["train/return_mean"], m["train/return_std"] = l.norm.moments()
	}
	if s := l.Rollout.Constraints; s != nil {
		m["train/cost_value_loss"] = l.sums.cost / l.sums.batches
		s.Measure(m)
	}
	l.Measure()
}
