package a2c

import (
	"math"
	"slices"
	"testing"

	"github.com/onnxrl/onnxrl/agents"
	"github.com/onnxrl/onnxrl/agents/agenttest"
	"github.com/onnxrl/onnxrl/agents/onpolicy"
	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/envs/vector"
	"github.com/onnxrl/onnxrl/models"
	"github.com/onnxrl/onnxrl/runtime/engine/testengines"
	"github.com/onnxrl/onnxrl/runtime/rng"
	"github.com/onnxrl/onnxrl/runtime/sorted"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// diary writes down the records of a recorder, in float64, sample by sample in the order of
// the rounds.
type diary struct {
	agents.Recorder
	x, final         [][]float64
	mask             [][]bool
	actions          [][]int64
	rewards, factors []float64
	last             []bool
	next             [][]float64
}

func row64(b *vector.Batch, obs []*tensor.Tensor, e int) []float64 {
	var x []float64
	for _, t := range obs {
		n := t.Shape()[1]
		for _, v := range t.Float32s()[e*n : (e+1)*n] {
			x = append(x, float64(v))
		}
	}
	return x
}

func (d *diary) Begin(b *vector.Batch, dec *vector.Decision) error {
	for e := range b.Type {
		d.x = append(d.x, row64(b, b.Obs, e))
		k, h := b.Mask.Shape()[1], dec.Actions.Shape()[1]
		d.mask = append(d.mask, slices.Clone(b.Mask.Bools()[e*k:(e+1)*k]))
		d.actions = append(d.actions, slices.Clone(dec.Actions.Int64s()[e*h:(e+1)*h]))
	}
	return d.Recorder.Begin(b, dec)
}

func (d *diary) End(b *vector.Batch) error {
	d.next = nil
	for e, t := range b.Type {
		d.rewards, d.factors, d.last = append(d.rewards, b.Reward[e]), append(d.factors, b.Discount[e]), append(d.last, t == envs.Last)
		d.final = append(d.final, row64(b, b.Final, e))
		d.next = append(d.next, row64(b, b.Obs, e))
	}
	return d.Recorder.End(b)
}

// linear is the policy and value of a network without hidden layers, in float64.
type linear struct {
	w, b, v []float64 // [logits, in], [logits], [in]
	c       float64
}

func newLinear(p *models.Params) linear {
	wide := func(name string) []float64 {
		var out []float64
		for _, x := range p.View(name).Float32s() {
			out = append(out, float64(x))
		}
		return out
	}
	return linear{wide("actor.logits.weight"), wide("actor.logits.bias"), wide("critic.value.weight"), wide("critic.value.bias")[0]}
}

func (l linear) value(x []float64) float64 {
	sum := l.c
	for i, v := range l.v {
		sum += v * x[i]
	}
	return sum
}

// probabilities returns those of one head, whose logits begin at from.
func (l linear) probabilities(x []float64, mask []bool, from int) []float64 {
	p := make([]float64, len(mask))
	sum := 0.0
	for a, ok := range mask {
		if ok {
			z := l.b[from+a]
			for i, v := range x {
				z += l.w[(from+a)*len(x)+i] * v
			}
			p[a] = math.Exp(z)
			sum += p[a]
		}
	}
	for a := range p {
		p[a] /= sum
	}
	return p
}

// gradients returns the gradient of the specification's loss,
//
//	L = −Σ log π(a|s)·A + c_v·Σ (V − G)² − c_e·Σ H
//
// by its formulas: returns by recursion from the end of each environment's rollout, log π and H as
// sums over the heads, advantages as constants.
func (l linear) gradients(d *diary, c Config, heads []int, n int) (w, b, v []float64, vb float64, returns []float64) {
	samples, in := len(d.x), len(d.x[0])
	returns = make([]float64, samples)
	for e := range n {
		g := l.value(d.next[e])
		for i := samples - n + e; i >= 0; i -= n {
			switch {
			case d.last[i]:
				g = d.rewards[i] + c.Gamma*d.factors[i]*l.value(d.final[i])
			default:
				g = d.rewards[i] + c.Gamma*d.factors[i]*g
			}
			returns[i] = g
		}
	}
	w, b, v = make([]float64, len(l.w)), make([]float64, len(l.b)), make([]float64, len(l.v))
	for i, x := range d.x {
		value := l.value(x)
		advantage := returns[i] - value
		dv := 2 * c.VFCoef * (value - returns[i])
		vb += dv
		for k := range v {
			v[k] += dv * x[k]
		}
		from := 0
		for h, size := range heads {
			p := l.probabilities(x, d.mask[i][from:from+size], from)
			entropy := 0.0
			for _, q := range p {
				if q > 0 {
					entropy -= q * math.Log(q)
				}
			}
			for a, q := range p {
				chosen := 0.0
				if int64(a) == d.actions[i][h] {
					chosen = 1
				}
				dz := -advantage * (chosen - q)
				if q > 0 {
					// dH/dz = −p·(log p + H)
					dz += c.EntCoef * q * (math.Log(q) + entropy)
				}
				b[from+a] += dz
				for k := range x {
					w[(from+a)*in+k] += dz * x[k]
				}
			}
			from += size
		}
	}
	return w, b, v, vb, returns
}

// TestGradientEqualsTheFormula compares gradient and metrics of a linear network with the formulas
// in float64, over several heads, masks, terminations and truncations.
func TestGradientEqualsTheFormula(t *testing.T) {
	splitSmall(t)
	n, ends := 0, 0
	for _, e := range testengines.All(t) {
		for _, threads := range []int{1, 2} {
			c := quick()
			c.Hidden, c.Reduction, c.EntCoef, c.VFCoef, c.NSteps, c.MaxGradNorm = nil, Sum, 0.3, 0.7, 13, 0
			const n2 = 3
			v := agenttest.Toys(t, n2, flatToy())
			a := agent(t, c, v, e, threads)
			for _, s := range a.learner.Params.Segments() {
				rng.New(9).Stream().FillNormal32(s.Floats(), 0, 0.5)
			}
			d := &diary{Recorder: a.Recorder()}
			if err := agents.Collect(t.Context(), v, agenttest.Actor(t, a, agents.Explore, n2), d, rng.New(4), 0, c.NSteps, nil); err != nil {
				t.Fatal(err)
			}
			l := newLinear(a.learner.Params)
			w, b, dv, vb, returns := l.gradients(d, c, []int{2, 3}, n2)
			m, err := a.Learner().Step(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			compare := func(name string, want []float64) {
				for i, s := range a.learner.Grads.Specs() {
					if s.Name != name {
						continue
					}
					off, size := a.learner.Grads.Range(i)
					for k, got := range a.learner.Grads.Floats()[off : off+size] {
						if n++; math.Abs(float64(got)-want[k]) > 1e-4*(1+math.Abs(want[k])) {
							t.Errorf("%s, %d threads: gradient of %s[%d] is %g, expected %g", e.Name(), threads, name, k, got, want[k])
						}
					}
				}
			}
			compare("actor.logits.weight", w)
			compare("actor.logits.bias", b)
			compare("critic.value.weight", dv)
			compare("critic.value.bias", []float64{vb})
			norm := vb * vb
			for _, g := range slices.Concat(w, b, dv) {
				norm += g * g
			}
			if got := m["train/grad_norm"]; math.Abs(got-math.Sqrt(norm)) > 1e-4*math.Sqrt(norm) {
				t.Errorf("grad_norm is %g, expected %g", got, math.Sqrt(norm))
			}
			var policy, value, entropy, reward float64
			for i, x := range d.x {
				from, logProb := 0, 0.0
				for h, size := range []int{2, 3} {
					p := l.probabilities(x, d.mask[i][from:from+size], from)
					logProb += math.Log(p[d.actions[i][h]])
					for _, q := range p {
						if q > 0 {
							entropy -= q * math.Log(q)
						}
					}
					from += size
				}
				diff := l.value(x) - returns[i]
				policy += logProb * diff
				value += diff * diff
				reward += d.rewards[i]
				if d.last[i] {
					ends++
				}
			}
			samples := float64(len(d.x))
			for tag, want := range sorted.All(map[string]float64{
				"train/policy_loss": policy / samples, "train/value_loss": value / samples, "train/entropy": entropy / samples, "train/entropy_loss": -entropy / samples, "train/mean_reward": reward / samples,
				"train/loss": (policy + c.VFCoef*value - c.EntCoef*entropy) / samples, "train/learning_rate": c.LearningRate, "train/n_updates": 1,
			}) {
				if n++; math.Abs(m[tag]-want) > 1e-5*(1+math.Abs(want)) {
					t.Errorf("%s is %g, expected %g", tag, m[tag], want)
				}
			}
			if ev := m["train/explained_variance"]; !(ev <= 1) {
				t.Errorf("explained variance %g", ev)
			}
		}
	}
	if n < 2*(15+5+5+1+8) || ends < 10 {
		t.Errorf("%d comparisons, %d ends of episodes", n, ends)
	}
}

// TestMasks draws many actions: none that the mask excludes is ever taken, and logits that are
// never valid get a gradient of exactly 0.
func TestMasks(t *testing.T) {
	n := 0
	for _, e := range testengines.All(t) {
		c := quick()
		c.Hidden = nil
		v := agenttest.Toys(t, 4, flatToy())
		a := agent(t, c, v, e, 1)
		explore, greedy := agenttest.Actor(t, a, agents.Explore, 4), agenttest.Actor(t, a, agents.Greedy, 4)
		for i := range 300 {
			// Action 1 of head 1 is never valid.
			for r := range 4 {
				m := v.Batch().Mask.Bools()[5*r:]
				m[3] = false
				m[2] = m[2] || !m[4]
			}
			for _, x := range []agents.Actor{greedy, explore} {
				d, err := x.Act(t.Context(), rng.New(1).Split("round", i), v.Batch())
				if err != nil {
					t.Fatal(err)
				}
				for r := range 4 {
					first, second := d.Actions.Int64s()[2*r], d.Actions.Int64s()[2*r+1]
					if n++; !v.Batch().Mask.Bools()[5*r+int(first)] || !v.Batch().Mask.Bools()[5*r+2+int(second)] {
						t.Fatalf("%s: round %d: a masked action is taken", e.Name(), i)
					}
				}
				if x != explore || i >= c.NSteps {
					continue
				}
				if err := a.Recorder().Begin(v.Batch(), d); err != nil {
					t.Fatal(err)
				}
			}
			if err := v.Step(explore.(*onpolicy.Actor).Decision.Actions); err != nil {
				t.Fatal(err)
			}
			if i < c.NSteps {
				if err := a.Recorder().End(v.Batch()); err != nil {
					t.Fatal(err)
				}
			}
		}
		if _, err := a.Learner().Step(t.Context()); err != nil {
			t.Fatal(err)
		}
		for i, s := range a.learner.Grads.Specs() {
			if s.Name != "actor.logits.bias" {
				continue
			}
			off, size := a.learner.Grads.Range(i)
			for k, g := range a.learner.Grads.Floats()[off : off+size] {
				if n++; (g == 0) != (k == 3) {
					t.Errorf("%s: the gradient of logit %d is %g", e.Name(), k, g)
				}
			}
		}
	}
	if n < 2400 {
		t.Errorf("%d checks", n)
	}
}

// TestEntropyIsMaximised learns where only the entropy counts: a policy that prefers some actions
// must become more even. The paper's algorithm has the sign the other way round.
func TestEntropyIsMaximised(t *testing.T) {
	c := quick()
	c.Hidden, c.VFCoef, c.EntCoef, c.LearningRate, c.Gamma = nil, 0, 1000, 0.02, 0
	v := agenttest.Toys(t, 4, flatToy())
	a := agent(t, c, v, testengines.Fastest(t), 1)
	copy(a.learner.Params.View("actor.logits.bias").Float32s(), []float32{1, -1, 1, 0, -1})
	r := agenttest.NewTraining(t, a, v)
	spread := func() float64 {
		b := a.learner.Params.View("actor.logits.bias").Float32s()
		return math.Abs(float64(b[0]-b[1])) + math.Abs(float64(b[2]-b[3])) + math.Abs(float64(b[3]-b[4]))
	}
	before := spread()
	for range 60 {
		r.Update(t)
	}
	if after := spread(); after > before/2 {
		t.Errorf("the logits of a head were %g apart and are now %g", before, after)
	}
}

// TestOwners checks which learning rate a parameter has, by one step of plain gradient descent.
func TestOwners(t *testing.T) {
	n := 0
	for _, encoders := range []string{Shared, Separate} {
		c := small(t, nil)
		c.Encoders, c.LearningRate, c.CriticLearningRate, c.MaxGradNorm = encoders, 0.5, 0.125, 0
		c.LearningRateSchedule.Kind, c.LearningRateSchedule.Gamma = "exponential", 0.5
		c.Freeze = []string{"*conv1.weight"}
		v := agenttest.Toys(t, 2, windowToy(t))
		a := agent(t, c, v, testengines.Fastest(t), 1)
		r := agenttest.NewTraining(t, a, v)
		factor := 1.0
		for range 2 {
			before := snapshot(a)
			m := r.Update(t)
			if m["train/learning_rate"] != 0.5*factor || m["train/learning_rate_critic"] != 0.125*factor {
				t.Errorf("learning rates %g and %g", m["train/learning_rate"], m["train/learning_rate_critic"])
			}
			for i, s := range a.learner.Grads.Specs() {
				lr := 0.5 * factor
				if len(s.Name) > 7 && s.Name[:7] == "critic." {
					lr = 0.125 * factor
				}
				off, _ := a.learner.Grads.Range(i)
				for k, now := range a.learner.Params.View(s.Name).Float32s() {
					want := float64(before[s.Name][k]) - lr*float64(a.learner.Grads.Floats()[off+k])
					if n++; math.Abs(float64(now)-want) > 1e-6*(1+math.Abs(want)) {
						t.Fatalf("%s[%d] is %g, expected %g", s.Name, k, now, want)
					}
				}
			}
			frozen := a.learner.Params.Segment(models.Frozen)
			for _, s := range frozen.Specs() {
				if n++; !slices.Equal(a.learner.Params.View(s.Name).Float32s(), before[s.Name]) {
					t.Errorf("%s has changed", s.Name)
				}
			}
			factor /= 2
		}
	}
	if n < 1000 {
		t.Errorf("%d elements", n)
	}
}

// snapshot copies all parameters.
func snapshot(a *made) map[string][]float32 {
	out := map[string][]float32{}
	for _, s := range a.learner.Params.Segments() {
		for i, p := range s.Specs() {
			out[p.Name] = slices.Clone(s.View(i).Float32s())
		}
	}
	return out
}
