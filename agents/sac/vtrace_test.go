package sac

import (
	"math"
	"testing"

	"onnxrl/runtime/engine/testengines"
	"onnxrl/runtime/rng"
)

// naiveTargets is the definition of V-trace's targets for one sequence, in float64, without any recursion:
//
//	yₜ = rₜ + γₜ·(vₜ + λ·Σₖ (Πⱼ γⱼ·λ·cⱼ)·ρₖ·δₖ),  δₖ = rₖ − α·log π(aₖ|sₖ) + γₖ·vₖ − vₖ₋₁,  k from t+1 to the end of the episode or sequence
func naiveTargets(r, d, v, logPi, logMu []float64, ended []bool, alpha, lambda, clipRho, clipC float64) []float64 {
	y := make([]float64, len(r))
	for t := range r {
		tail, product := 0.0, lambda
		for k := t + 1; k < len(r) && !ended[k-1]; k++ {
			rho := math.Exp(logPi[k] - logMu[k])
			tail += product * min(clipRho, rho) * (r[k] - alpha*logPi[k] + d[k]*v[k] - v[k-1])
			product *= d[k] * lambda * min(clipC, rho)
		}
		y[t] = r[t] + d[t]*(v[t]+tail)
	}
	return y
}

// TestVTraceTargets compares with the definition, and on-policy with the soft return of n steps.
func TestVTraceTargets(t *testing.T) {
	const length, width, alpha = 5, 6, 0.3
	s := rng.New(4).Stream()
	compared := 0
	for _, lambda := range []float64{1, 0.8} {
		for _, onPolicy := range []bool{false, true} {
			c := small()
			c.BatchSize, c.Gamma, c.VTrace = length*width, 0.9, VTrace{Length: length, Lambda: lambda, ClipRho: 1.2, ClipC: 0.9}
			if onPolicy {
				c.VTrace.ClipRho, c.VTrace.ClipC = 1, 1
			}
			v := toys(t, 1, boxToy())
			l := &agent(t, c, v, testengines.Fastest(t), 1).learner
			s.FillNormal32(l.nextQ, 0, 1)
			s.FillNormal32(l.nextLogProb, -1, 1)
			s.FillNormal32(l.trace.logPi, -1, 1)
			s.FillNormal32(l.batch.Reward, 0, 1)
			for i := range l.batch.Reward {
				l.trace.logMu[i] = l.trace.logPi[i]
				if !onPolicy {
					l.trace.logMu[i] += float32(0.5 * s.Normal())
				}
				l.batch.Discount[i] = 0.9
				switch l.trace.ended[i] = false; s.IntN(6) {
				case 0:
					l.trace.ended[i], l.batch.Discount[i] = true, 0
				case 1:
					l.trace.ended[i] = true
				}
			}
			y := make([]float32, length*width)
			l.trace.targets(y, l, alpha)
			for j := range width {
				column := func(x []float32) []float64 {
					out := make([]float64, length)
					for t := range out {
						out[t] = float64(x[t*width+j])
					}
					return out
				}
				value, ended := column(l.nextQ), make([]bool, length)
				for t, x := range column(l.nextLogProb) {
					value[t] -= alpha * x
					ended[t] = l.trace.ended[t*width+j]
				}
				r, d, logPi := column(l.batch.Reward), column(l.batch.Discount), column(l.trace.logPi)
				want := naiveTargets(r, d, value, logPi, column(l.trace.logMu), ended, alpha, lambda, c.VTrace.ClipRho, c.VTrace.ClipC)
				for i, got := range column(y) {
					if compared++; math.Abs(got-want[i]) > 1e-5 {
						t.Errorf("λ %g, on-policy %v, sequence %d: target %d is %g, expected %g", lambda, onPolicy, j, i, got, want[i])
					}
				}
				if !onPolicy || lambda != 1 {
					continue
				}
				// The soft return: rewards, with the entropy of each action but the first, up to the end of the episode or sequence, and the value there.
				for i, got := range column(y) {
					sum, product := 0.0, 1.0
					for k := i; k < length; k++ {
						sum += product * r[k]
						if k > i {
							sum -= product * alpha * logPi[k]
						}
						if product *= d[k]; ended[k] || k == length-1 {
							sum += product * value[k]
							break
						}
					}
					if compared++; math.Abs(got-sum) > 1e-5 {
						t.Errorf("sequence %d: target %d is %g, the soft return %g", j, i, got, sum)
					}
				}
			}
		}
	}
	if compared != 4*30+30 {
		t.Errorf("%d comparisons", compared)
	}
}

// TestBehaviourIsRecorded: as long as the policy does not change, the log-probabilities that were recorded are those that the targets program finds for the recorded actions, squashing and masks included.
func TestBehaviourIsRecorded(t *testing.T) {
	n := 0
	for what, x := range variants(t) {
		c := small()
		x.change(&c)
		// Actions that are squashed nearly onto their bounds lose their digits.
		c.LearningStarts, c.VTrace, c.BatchSize, c.NSteps, c.LogStd.High = 0, VTrace{2, 1, 1, 1}, 32, 1, 0
		if x.spec.Observation[0].Window != nil {
			continue
		}
		v := toys(t, 2, x.spec)
		a := agent(t, c, v, testengines.Fastest(t), 1)
		// A learner that is never ready changes nothing.
		a.c.TrainFreq, a.learner.c.TrainFreq = 1000, 1000
		r := newTraining(t, a, v)
		if err := r.run(t.Context(), 25, nil); err != nil {
			t.Fatal(err)
		}
		if err := a.draw(); err != nil {
			t.Fatal(err)
		}
		if err := a.targets.Run(); err != nil {
			t.Fatal(err)
		}
		for i, mu := range a.trace.logMu {
			if n++; math.Abs(float64(mu-a.trace.logPi[i])) > 2e-3 {
				t.Errorf("%s: log μ is %g and log π %g", what, mu, a.trace.logPi[i])
			}
		}
	}
	if n != 7*32 {
		t.Errorf("%d comparisons", n)
	}
}

// TestVTraceWaits: a learner waits until there are sequences.
func TestVTraceWaits(t *testing.T) {
	c := small()
	c.LearningStarts, c.VTrace.Length = 0, 4
	v := toys(t, 1, boxToy())
	r := newTraining(t, agent(t, c, v, testengines.Fastest(t), 1), v)
	for k := range 8 {
		if err := r.run(t.Context(), 1, nil); err != nil {
			t.Fatal(err)
		}
		if want := max(0, k-2); int(r.a.updates) != want {
			t.Errorf("%d updates after %d rounds, expected %d", r.a.updates, k+1, want)
		}
	}
}
