package a2c

import (
	"testing"

	"onnxrl/agents"
	"onnxrl/runtime/rng"
)

// quick is a configuration that learns small things fast.
func quick() Config {
	c := Defaults()
	c.RolloutSteps, c.Reduction, c.LRActor, c.LRCritic, c.EntropyCoef, c.Hidden = 16, Mean, 3e-3, 1e-2, 0.01, []int{32}
	c.GradClip = 0.5
	return c
}

// TestLearnsTheCorridor requires that the greedy policy goes right from everywhere.
func TestLearnsTheCorridor(t *testing.T) {
	n := 0
	for _, e := range engines(t) {
		v := corridors(t, 8)
		a := agent(t, quick(), v, e, 1)
		r := newTrainingRun(t, a, v)
		var first, last float64
		for i := range 150 {
			m, err := r.update(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if last = m["train/entropy"]; i == 0 {
				first = last
			}
		}
		if last > first/2 {
			t.Errorf("%s: the entropy went from %g to %g", e.Name(), first, last)
		}
		test := corridors(t, 8)
		greedy := actorOf(t, a, agents.Greedy, 8)
		if err := agents.Collect(t.Context(), test, greedy, nil, rng.New(1), 0, 20, nil); err != nil {
			t.Fatal(err)
		}
		for i := range 20 {
			d, err := greedy.Act(t.Context(), rng.New(1), test.Batch())
			if err != nil {
				t.Fatal(err)
			}
			for _, x := range d.Actions.Int64s() {
				if n++; x != 1 {
					t.Fatalf("%s: round %d: it goes left", e.Name(), i)
				}
			}
			if err := test.Step(d.Actions); err != nil {
				t.Fatal(err)
			}
		}
	}
	if n < 160 {
		t.Errorf("%d decisions", n)
	}
}
