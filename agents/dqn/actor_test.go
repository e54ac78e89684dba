package dqn

import (
	"math"
	"slices"
	"strings"
	"testing"

	"onnxrl/agents"
	"onnxrl/envs"
	"onnxrl/envs/classic"
	"onnxrl/runtime/engine/testengines"
	"onnxrl/runtime/gradcheck"
	"onnxrl/runtime/rng"
	"onnxrl/runtime/tensor"
)

// TestPolicyIsTheActor runs the complete network, with its parameters baked in, on what the environments show, and compares it with the greedy actor.
func TestPolicyIsTheActor(t *testing.T) {
	n := 0
	for _, e := range testengines.All(t) {
		for _, rows := range []int{1, 3} {
			for _, duelling := range []bool{false, true} {
				c := small(t)
				c.Duelling = duelling
				v := toys(t, rows)
				a := agent(t, c, v, e, 1, 300)
				r := newRun(t, a, v)
				r.curve(t, 12)
				net, params := a.Learner().Policy()
				m, err := net.Bake(params.View)
				if err != nil {
					t.Fatal(err)
				}
				b := v.Batch()
				in := map[string]*tensor.Tensor{agents.MaskInput: b.Mask}
				for i, f := range v.Spec().Observation {
					x := tensor.New(f.Space.DType(), append([]int{rows}, f.Space.Shape()...)...)
					if err := b.Gather(i, x); err != nil {
						t.Fatal(err)
					}
					in[f.Name] = x
				}
				out, err := gradcheck.Run(t.Context(), e, m, in)
				if err != nil {
					t.Fatal(err)
				}
				x := actorOf(t, a, agents.Greedy, rows).(*actor)
				d, err := x.Act(t.Context(), rng.New(1), b)
				if err != nil {
					t.Fatal(err)
				}
				if got := out[agents.ActionOutput]; !slices.Equal(got.Shape(), d.Actions.Shape()) || !slices.Equal(got.Int64s(), d.Actions.Int64s()) {
					t.Errorf("%s: actions %v %v, the actor's are %v", e.Name(), got, got.Int64s(), d.Actions.Int64s())
				}
				for i, q := range out[QValuesOutput].Float32s() {
					if math.Abs(float64(q-x.q[i])) > 1e-5 {
						t.Errorf("%s: value %d is %g, the actor's is %g", e.Name(), i, q, x.q[i])
					}
				}
				for i, a := range d.Actions.Int64s() {
					if !b.Mask.Bools()[i*4+int(a)] {
						t.Errorf("%s: row %d takes the invalid action %d", e.Name(), i, a)
					}
				}
				n++
			}
		}
	}
	if n < 4 {
		t.Errorf("%d cases", n)
	}
}

// TestExploration follows the exploration rate and counts random actions, which must be valid and evenly spread.
func TestExploration(t *testing.T) {
	c := Defaults()
	c.Hidden, c.BufferSize, c.LearningStarts, c.TrainFreq = []int{4}, 1000, 40, 10
	c.ExplorationFraction, c.ExplorationInitial, c.ExplorationFinal = 0.5, 0.9, 0.1
	r := flatToys(t, 2)
	a := agent(t, c, r.v, testengines.Fastest(t), 1, 400)
	*r = *newRun(t, a, r.v)
	n := 0
	for steps := int64(0); steps < 400; steps += 20 {
		want := 0.9 - 0.8*float64(steps)/200
		if steps >= 200 {
			want = 0.1
		}
		if got := a.learner.epsilon(); math.Abs(got-want) > 1e-12 {
			t.Errorf("env step %d: exploration rate %g, expected %g", steps, got, want)
		}
		if steps < 40 {
			want = 1
		}
		if got := a.learner.rate(); math.Abs(got-want) > 1e-12 {
			t.Errorf("env step %d: %g of the actions are random, expected %g", steps, got, want)
		}
		r.update(t)
		n++
	}
	if n != 20 {
		t.Errorf("%d rates", n)
	}
	// With a rate of 1 every action is random, with one of 0.1 every tenth is.
	x := r.actor.(*actor)
	b := r.v.Batch()
	greedy := actorOf(t, a, agents.Greedy, 2).(*actor)
	best, err := greedy.Act(t.Context(), rng.New(1), b)
	if err != nil {
		t.Fatal(err)
	}
	for _, rate := range []float64{1, 0.1} {
		a.learner.c.ExplorationFinal = rate
		same, counts := 0, [2][4]int{}
		const draws = 4000
		for i := range draws {
			d, err := x.Act(t.Context(), rng.New(2).Split("round", i), b)
			if err != nil {
				t.Fatal(err)
			}
			for e, k := range d.Actions.Int64s() {
				counts[e][k]++
				if k == best.Actions.Int64s()[e] {
					same++
				}
			}
		}
		want := 0.0
		for e := range counts {
			valid := 0
			for k, ok := range b.Mask.Bools()[4*e : 4*e+4] {
				if ok {
					valid++
				} else if counts[e][k] > 0 {
					t.Errorf("environment %d takes the invalid action %d", e, k)
				}
			}
			want += draws * (1 - rate + rate/float64(valid))
		}
		if math.Abs(float64(same)-want) > 5*math.Sqrt(2*draws) {
			t.Errorf("rate %g: %d actions are the best, expected about %g", rate, same, want)
		}
	}
}

func TestActAndStepAllocateNothing(t *testing.T) {
	e := testengines.Fastest(t)
	for what, change := range variants {
		c := small(t)
		change(&c)
		v := toys(t, 2)
		r := newRun(t, agent(t, c, v, e, 1, 300), v)
		r.each = nil
		r.curve(t, 30)
		if n := testing.AllocsPerRun(20, func() { r.update(t) }); n > testengines.Allocations(e) {
			t.Errorf("%s: %v allocations", what, n)
		}
	}
	if len(variants) < 4 {
		t.Errorf("%d variants", len(variants))
	}
}

func TestActRefuses(t *testing.T) {
	v := toys(t, 2)
	a := agent(t, small(t), v, testengines.Fastest(t), 1, 300)
	if _, err := a.NewActor(agents.Greedy, 0); err == nil {
		t.Error("an actor for no environment")
	}
	if _, err := actorOf(t, a, agents.Greedy, 3).Act(t.Context(), rng.New(1), v.Batch()); err == nil || !strings.Contains(err.Error(), "2 environments, expected 3") {
		t.Errorf("another number of environments: %v", err)
	}
	for _, m := range []agents.Mode{agents.Greedy, agents.Explore} {
		mask := v.Batch().Mask.Bools()
		clear(mask[4:])
		if _, err := actorOf(t, a, m, 2).Act(t.Context(), rng.New(1), v.Batch()); err == nil || !strings.Contains(err.Error(), "environment 1") {
			t.Errorf("%v: no valid action: %v", m, err)
		}
	}
}

// TestLearnsIdentity has the threshold and the number of steps of Stable-Baselines3's tests/test_identity.py.
func TestLearnsIdentity(t *testing.T) {
	c := Defaults()
	c.Gamma, c.LearningRate, c.LearningStarts, c.ExplorationFraction, c.TargetUpdateInterval, c.TrainFreq, c.BufferSize = 0.4, 2e-3, 100, 0.2, 100, 1, 1200
	id := classic.IdentityDefaults()
	v := vectorOf(t, 1, func(int) (envs.Env, error) { return classic.NewIdentity(id) })
	a := agent(t, c, v, testengines.Fastest(t), 1, 1200)
	r := newRun(t, a, v)
	for a.learner.envSteps() < 1200 {
		r.update(t)
	}
	if err := v.Reset(rng.New(3)); err != nil {
		t.Fatal(err)
	}
	x, sum, n := actorOf(t, a, agents.Greedy, 1), 0.0, 0
	for i := 0; n < 20; i++ {
		if err := agents.Collect(t.Context(), v, x, nil, rng.New(4), i, 1, nil); err != nil {
			t.Fatal(err)
		}
		for _, e := range v.Batch().Ended {
			sum += e.Return
			n++
		}
	}
	if sum/float64(n) < 90 {
		t.Errorf("a return of %g, expected at least 90", sum/float64(n))
	}
}
