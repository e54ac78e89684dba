package sac

import (
	"errors"
	"math"
	"testing"

	"github.com/onnxrl/onnxrl/agents/agenttest"
	"github.com/onnxrl/onnxrl/runtime/rng"
	"github.com/onnxrl/onnxrl/runtime/sorted"
)

// naiveTargets is the definition of V-trace's targets for one sequence, in float64, without any
// recursion:
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
			c := VTrace{Length: length, Lambda: lambda, ClipRho: 1.2, ClipC: 0.9}
			if onPolicy {
				c.ClipRho, c.ClipC = 1, 1
			}
			_, l := training(t, 1, agenttest.Box(), func(conf *Config) { conf.BatchSize, conf.Gamma, conf.VTrace = length*width, 0.9, c })
			s.FillNormal32(l.NextQ, 0, 1)
			s.FillNormal32(l.nextLogProb, -1, 1)
			s.FillNormal32(l.trace.logPi, -1, 1)
			s.FillNormal32(l.Batch.Reward, 0, 1)
			for i := range l.Batch.Reward {
				l.trace.logMu[i] = l.trace.logPi[i]
				if !onPolicy {
					l.trace.logMu[i] += float32(0.5 * s.Normal())
				}
				l.Batch.Discount[i] = 0.9
				switch l.trace.ended[i] = false; s.IntN(6) {
				case 0:
					l.trace.ended[i], l.Batch.Discount[i] = true, 0
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
				value, ended := column(l.NextQ), make([]bool, length)
				for t, x := range column(l.nextLogProb) {
					value[t] -= alpha * x
					ended[t] = l.trace.ended[t*width+j]
				}
				r, d, logPi := column(l.Batch.Reward), column(l.Batch.Discount), column(l.trace.logPi)
				want := naiveTargets(r, d, value, logPi, column(l.trace.logMu), ended, alpha, lambda, c.ClipRho, c.ClipC)
				for i, got := range column(y) {
					if compared++; math.Abs(got-want[i]) > 1e-5 {
						t.Errorf("λ %g, on-policy %v, sequence %d: target %d is %g, expected %g", lambda, onPolicy, j, i, got, want[i])
					}
				}
				if !onPolicy || lambda != 1 {
					continue
				}
				// The soft return: rewards, with the entropy of each action but the first, up to
				// the end of the episode or sequence, and the value there.
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

// TestBehaviourIsRecorded: as long as the policy does not change, the log-probabilities that were
// recorded are those that the targets program finds for the recorded actions, squashing and masks
// included.
func TestBehaviourIsRecorded(t *testing.T) {
	n := 0
	for what, x := range sorted.All(variants(t)) {
		if agenttest.Windowed(x.Spec) {
			continue
		}
		r, l := training(t, 2, x.Spec, func(c *Config) {
			*c = x.Maker.Config().(Config)
			// Actions that are squashed nearly onto their bounds lose their digits. A learner that
			// is never ready changes nothing.
			c.Constraints, c.ActionNoise, c.Conservative = nil, nil, nil
			c.LearningStarts, c.VTrace, c.BatchSize, c.NSteps, c.LogStd.High, c.TrainFreq = 0, VTrace{2, 1, 1, 1}, 32, 1, 0, 1000
		})
		r.Run(t, 25)
		if err := errors.Join(l.draw(), l.Targets.Run()); err != nil {
			t.Fatal(err)
		}
		for i, mu := range l.trace.logMu {
			if n++; math.Abs(float64(mu-l.trace.logPi[i])) > 2e-3 {
				t.Errorf("%s: log μ is %g and log π %g", what, mu, l.trace.logPi[i])
			}
		}
	}
	if n != 19*32 {
		t.Errorf("%d comparisons", n)
	}
}

// TestVTraceWaits: a learner waits until there are sequences.
func TestVTraceWaits(t *testing.T) {
	r, l := training(t, 1, agenttest.Box(), func(c *Config) { c.LearningStarts, c.VTrace.Length = 0, 4 })
	for k := range 8 {
		r.Run(t, 1)
		if want := max(0, k-2); int(l.Updates) != want {
			t.Errorf("%d updates after %d rounds, expected %d", l.Updates, k+1, want)
		}
	}
}
