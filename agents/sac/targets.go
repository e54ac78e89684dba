package sac

import "github.com/onnxrl/onnxrl/agents/rlmath"

// bellman writes what the critics learn, given the outputs of the targets program:
//
//	y = r + γ·(min q' − α·log π)
//
// and the expectation of the bracket for Discrete actions. CQL leaves out the entropy unless its
// backup is soft.
func (l *learner) bellman(y []float32) {
	b, alpha := &l.Batch, l.temperature.alpha()
	if c := l.c.Conservative; c != nil && !c.SoftQBackup {
		alpha = 0
	}
	switch {
	case l.trace != nil:
		l.trace.targets(y, l, alpha)
	case l.Networks.Frame.Continuous():
		rlmath.SoftTargets(y, b.Reward, b.Discount, l.NextQ, l.NextQ, l.nextLogProb, alpha)
	default:
		rlmath.DiscreteSoftTargets(y, b.Reward, b.Discount, l.NextQ, l.NextQ, l.nextLogProb, alpha)
	}
}

// trace computes targets by V-trace. Its slices are [length, width], sequences side by side.
type trace struct {
	c     rlmath.VTraceConfig
	width int
	// logPi is the present policy's log-probability of the recorded actions, logMu that of the
	// policy that took them.
	logPi, logMu []float32
	// ended says that an episode ended with the transition.
	ended []bool

	zero, value, before, reward, discount, rho, vs, pg []float32
}

func newTrace(c VTrace, batch int) *trace {
	t := &trace{c: c.config(), width: batch / c.Length, ended: make([]bool, batch), logMu: make([]float32, batch)}
	for _, x := range []*[]float32{&t.zero, &t.value, &t.before, &t.reward, &t.discount, &t.rho, &t.vs, &t.pg} {
		*x = make([]float32, batch)
	}
	return t
}

func (c VTrace) config() rlmath.VTraceConfig {
	return rlmath.VTraceConfig{Lambda: c.Lambda, ClipRho: c.ClipRho, ClipC: c.ClipC, ClipPGRho: c.ClipRho}
}

// targets writes yₜ = rₜ + γₜ·(vₜ + λ·(vsₜ − vₜ)), where vₜ is the soft value min q' − α·log π of
// the observation after the step, and vs V-trace's estimate of it along the rest of the sequence,
// whose rewards include the entropy of the policy: rₖ − α·log π(aₖ|sₖ).
func (t *trace) targets(y []float32, l *learner, alpha float32) {
	b, n := &l.Batch, t.width
	// With a reward of 0 and a discount of 1 the target is the value itself.
	clear(t.zero)
	for i := range t.discount {
		t.discount[i] = 1
	}
	if l.Networks.Frame.Continuous() {
		rlmath.SoftTargets(t.value, t.zero, t.discount, l.NextQ, l.NextQ, l.nextLogProb, alpha)
	} else {
		rlmath.DiscreteSoftTargets(t.value, t.zero, t.discount, l.NextQ, l.NextQ, l.nextLogProb, alpha)
	}
	copy(t.reward, b.Reward)
	copy(t.discount, b.Discount)
	rlmath.FoldTruncation(t.reward, t.discount, t.value, t.ended)
	copy(y, t.reward)
	for i := range t.reward {
		t.reward[i] -= alpha * t.logPi[i]
	}
	// The value before a step is that after the one before it. Where an episode began in between it
	// is another one's, and the discount of 0 keeps it out of what is used; that before the first
	// step is not used.
	copy(t.before[n:], t.value[:len(t.value)-n])
	rlmath.Ratios(t.rho, t.logPi, t.logMu)
	rlmath.VTrace(t.vs, t.pg, t.reward, t.discount, t.before, t.value, t.rho, t.c, n)
	for i := range y {
		v := t.value[i]
		if k := i + n; k < len(y) {
			v += float32(t.c.Lambda) * (t.vs[k] - t.before[k])
		}
		y[i] += t.discount[i] * v
	}
}
