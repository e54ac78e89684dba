package ppo

import (
	"context"
	"math"

	"github.com/onnxrl/onnxrl/agents"
	"github.com/onnxrl/onnxrl/agents/onpolicy"
	"github.com/onnxrl/onnxrl/agents/rlmath"
)

// offPolicy evaluates a rollout with the present parameters, for V-trace.
type offPolicy struct {
	m              *minibatch
	logProb, value []float32
	order          []int
	// rho are the ratios of the present policy to the one that acted, now the present values,
	// targets and advantages the results; all [samples].
	rho, now, next, targets, advantages []float64
}

func newOffPolicy(m *minibatch, samples, units int) *offPolicy {
	floats := func() []float64 { return make([]float64, samples) }
	o := &offPolicy{m: m, logProb: m.prog.Output(onpolicy.LogProbOutput).Float32s(), value: m.prog.Output(agents.ValueOutput).Float32s(), order: make([]int, units), rho: floats(), now: floats(), next: floats(), targets: floats(), advantages: floats()}
	for i := range o.order {
		o.order[i] = i
	}
	return o
}

// correct replaces advantages and returns by those of V-trace under the present policy. Advantages
// are not weighed by min(ρ̄, ρ), because the surrogate weighs them by ρ itself. The values that
// sequences end with, after the rollout and where an episode was cut off, remain those of the
// rollout.
func (l *learner) correct(ctx context.Context) error {
	o, r, n := l.off, l.Rollout, l.Rollout.Envs
	watch := l.Setup.Profile.Start()
	for from := 0; from < len(o.order); from += o.m.units {
		if err := l.Setup.Between(ctx, l.at.Epoch*len(o.order), l.c.NEpochs*len(o.order)); err != nil {
			return err
		}
		o.m.gather(o.order[from:min(from+o.m.units, len(o.order))])
		watch = watch.Lap(agents.Sampling)
		if err := o.m.prog.Run(); err != nil {
			return err
		}
		watch = watch.Lap(agents.Gradient)
		for row, i := range o.m.samples {
			if o.m.valid[row] {
				o.rho[i], o.now[i] = math.Exp(float64(o.logProb[row])-float64(l.logProb[i])), float64(o.value[row])
			}
		}
	}
	r.After(o.next, o.now)
	c := rlmath.VTraceConfig{Lambda: l.c.GAELambda, ClipRho: l.c.VTrace.ClipRho, ClipC: l.c.VTrace.ClipC, ClipPGRho: 1}
	rlmath.VTrace(l.Target, l.Advantage, r.Reward, r.Discount, o.now, o.next, o.rho, c, n)
	for i := range l.Advantage {
		// The error of the step after, by the targets.
		e := 0.0
		if i+n < len(l.Target) {
			e = l.Target[i+n] - o.now[i+n]
		}
		l.Advantage[i] = r.Reward[i] + r.Discount[i]*(o.next[i]+l.c.GAELambda*e) - o.now[i]
	}
	watch.Lap(agents.Sampling)
	return nil
}
