package a2c

import (
	"math"
	"slices"
	"testing"

	"github.com/onnxrl/onnxrl/agents"
	"github.com/onnxrl/onnxrl/agents/agenttest"
	"github.com/onnxrl/onnxrl/agents/rlmath"
	"github.com/onnxrl/onnxrl/envs/vector"
	"github.com/onnxrl/onnxrl/runtime/engine/testengines"
	"github.com/onnxrl/onnxrl/runtime/longtest"
	"github.com/onnxrl/onnxrl/runtime/rng"
	"github.com/onnxrl/onnxrl/runtime/sorted"
)

// TestVTraceEqualsReturnsOnPolicy trains with and without the correction, where nothing is to be
// corrected: decisions, losses and parameters agree up to rounding, for whole returns and shorter
// ones, flat observations and windows, in one run and in several.
func TestVTraceEqualsReturnsOnPolicy(t *testing.T) {
	splitSmall(t)
	n := 0
	for _, e := range testengines.All(t) {
		for what, world := range sorted.All(longtest.Few(t, map[string]func() vector.Env{
			"corridor": func() vector.Env { return corridors(t, 3) },
			"flat":     func() vector.Env { return agenttest.Toys(t, 3, flatToy()) },
			"windows":  func() vector.Env { return agenttest.Toys(t, 2, windowToy(t)) },
			"box":      func() vector.Env { return spaces(t)[5].world(3) },
		}, 2)) {
			for _, lambda := range []float64{1, 0.8} {
				c := small(t, nil)
				if what != "windows" {
					c = quick()
					c.Optimizer.Kind = "sgd"
				}
				c.GAELambda = lambda
				plain, corrected := c, c
				corrected.Correction = VTrace
				threads := 1
				if what == "flat" || what == "windows" {
					threads = 2
				}
				a, b := learn(t, plain, world(), e, threads, 3), learn(t, corrected, world(), e, threads, 3)
				if !slices.Equal(a.actions, b.actions) {
					t.Errorf("%s, %s: actions differ", e.Name(), what)
				}
				for name, d := range sorted.All(map[string]float64{"parameters": apart(a.params, b.params), "numbers": apart(a.numbers, b.numbers)}) {
					if n++; d > 2e-5 {
						t.Errorf("%s, %s, λ %g: %s are apart by %g", e.Name(), what, lambda, name, d)
					}
				}
				for i, loss := range a.loss {
					if n++; math.Abs(loss-b.loss[i]) > 1e-4*(1+math.Abs(loss)) {
						t.Errorf("%s, %s, λ %g: loss or norm %g, with the correction %g", e.Name(), what, lambda, loss, b.loss[i])
					}
				}
			}
		}
	}
	if n < longtest.Cases(t, 4, 2)*2*(2+6) {
		t.Errorf("%d comparisons", n)
	}
}

// TestVTraceCorrects records what strangers did. Actions that the policy prefers to the stranger
// are not weighted more than 1; those that it does not count less, as rlmath.VTrace says, which the
// published vectors check.
func TestVTraceCorrects(t *testing.T) {
	n := 0
	for _, e := range testengines.All(t) {
		for _, shift := range []float32{0, float32(math.Ln2), -float32(math.Ln2)} {
			c := quick()
			c.Correction, c.NSteps, c.VTrace.ClipPGRho = VTrace, 6, 1.5
			v := agenttest.Toys(t, 3, flatToy())
			a := agent(t, c, v, e, 1)
			x := agenttest.Actor(t, a, agents.Explore, 3)
			if err := agents.Collect(t.Context(), v, agenttest.Stranger{Actor: x, Shift: shift}, a.Recorder(), rng.New(4), 0, 6, nil); err != nil {
				t.Fatal(err)
			}
			r := a.learner.Rollout
			reward, discount := slices.Clone(r.Reward), slices.Clone(r.Discount)
			m, err := a.Learner().Step(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			rho := math.Exp(float64(shift))
			if n++; math.Abs(m["train/mean_rho"]-rho) > 1e-4 {
				t.Errorf("shift %g: the weights are %g on average, expected %g", shift, m["train/mean_rho"], rho)
			}
			// The same with weights that are known.
			rlmath.FoldTruncation(reward, discount, r.Final, r.Ended)
			vs, pg, weights := make([]float64, 18), make([]float64, 18), slices.Repeat([]float64{rho}, 18)
			next := slices.Concat(r.Value[3:], r.Bootstrap)
			rlmath.VTrace(vs, pg, reward, discount, r.Value, next, weights, rlmath.VTraceConfig{Lambda: 1, ClipRho: 1, ClipC: 1, ClipPGRho: 1.5}, 3)
			for i := range vs {
				if n++; math.Abs(a.learner.Target[i]-vs[i]) > 1e-4*(1+math.Abs(vs[i])) || math.Abs(a.learner.Advantage[i]-pg[i]) > 1e-4*(1+math.Abs(pg[i])) {
					t.Errorf("shift %g, sample %d: target %g and advantage %g, expected %g and %g", shift, i, a.learner.Target[i], a.learner.Advantage[i], vs[i], pg[i])
				}
			}
		}
	}
	if n < 3*19 {
		t.Errorf("%d comparisons", n)
	}
}

// TestVTraceNeedsLogProbabilities: without them nothing can be corrected.
func TestVTraceNeedsLogProbabilities(t *testing.T) {
	c := quick()
	c.Correction = VTrace
	v := corridors(t, 1)
	a := agent(t, c, v, testengines.Fastest(t), 1)
	d, err := agenttest.Actor(t, a, agents.Greedy, 1).Act(t.Context(), rng.New(1), v.Batch())
	if err != nil {
		t.Fatal(err)
	}
	bare := *d
	bare.LogProb = nil
	if err := a.Recorder().Begin(v.Batch(), &bare); err == nil {
		t.Error("a decision without log-probabilities is recorded")
	}
}
