package valuebased_test

import (
	"math"
	"testing"

	"github.com/onnxrl/onnxrl/agents"
	"github.com/onnxrl/onnxrl/agents/agenttest"
	"github.com/onnxrl/onnxrl/agents/valuebased"
	"github.com/onnxrl/onnxrl/envs/vector"
	"github.com/onnxrl/onnxrl/runtime/longtest"
	"github.com/onnxrl/onnxrl/runtime/rng"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// TestPolicyIsTheActor also compares the values of all actions, and takes valid ones only.
func TestPolicyIsTheActor(t *testing.T) {
	n := 0
	agenttest.PolicyIsTheActor(t, variants(t), func(what string, out map[string]*tensor.Tensor, x agents.Actor, greedy *vector.Decision) {
		for i, q := range out[agents.QValuesOutput].Float32s() {
			if got := valuebased.ActorValues(x)[i]; math.Abs(float64(q-got)) > 1e-5 {
				t.Errorf("%s: value %d is %g, the actor's is %g", what, i, q, got)
			}
			n++
		}
	})
	if n < 12*longtest.Cases(t, len(variants(t)), 2) {
		t.Errorf("%d values", n)
	}
}

// TestExploration follows the exploration rate and counts random actions, which must be valid and
// evenly spread.
func TestExploration(t *testing.T) {
	c := quick()
	c.Hidden, c.BufferSize, c.LearningStarts, c.TrainFreq = []int{4}, 1000, 40, 10
	c.ExplorationFraction, c.ExplorationInitial, c.ExplorationFinal = 0.5, 0.9, 0.1
	r, l := flat(t, c, 2, 400)
	n := 0
	for steps := int64(0); steps < 400; steps += 20 {
		want := 0.9 - 0.8*float64(steps)/200
		if steps >= 200 {
			want = 0.1
		}
		if got := l.Epsilon(); math.Abs(got-want) > 1e-12 {
			t.Errorf("env step %d: exploration rate %g, expected %g", steps, got, want)
		}
		if steps < 40 {
			want = 1
		}
		if got := l.Rate(); math.Abs(got-want) > 1e-12 {
			t.Errorf("env step %d: %g of the actions are random, expected %g", steps, got, want)
		}
		r.Update(t)
		n++
	}
	if n != 20 {
		t.Errorf("%d rates", n)
	}
	// With a rate of 1 every action is random, with one of 0.1 every tenth is.
	x := r.Actor
	b := r.Env.Batch()
	greedy := agenttest.Actor(t, r.Agent, agents.Greedy, 2)
	best, err := greedy.Act(t.Context(), rng.New(1), b)
	if err != nil {
		t.Fatal(err)
	}
	for _, rate := range []float64{1, 0.1} {
		l.ExploreAtLast(rate)
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

// TestActRefuses an environment without a valid action.
func TestActRefuses(t *testing.T) {
	r, _ := flat(t, quick(), 2, 300)
	b := r.Env.Batch()
	clear(b.Mask.Bools()[4:])
	for _, m := range []agents.Mode{agents.Greedy, agents.Explore} {
		_, err := agenttest.Actor(t, r.Agent, m, 2).Act(t.Context(), rng.New(1), b)
		agenttest.Has(t, err, "toy: act", "environment 1")
	}
}
