package evaluate_test

import (
	"context"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/agents"
	"github.com/onnxrl/onnxrl/agents/evaluate"
	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/envs/vector"
	"github.com/onnxrl/onnxrl/runtime/rng"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// member always decides the same.
type member struct{ d vector.Decision }

func (m member) NewActor(agents.Mode, int) (agents.Actor, error) { return m, nil }
func (m member) Act(context.Context, rng.Key, *vector.Batch) (*vector.Decision, error) {
	return &m.d, nil
}
func (member) Remembers() bool            { return false }
func (member) Sync(context.Context) error { return nil }
func (member) Close() error               { return nil }

// drawn is a member with probabilities of a head of 2 and one of 3 choices, whose best are its
// actions.
func drawn(p ...float64) member {
	d := vector.Decision{Actions: tensor.New(tensor.Int64, 1, 2), Logits: tensor.New(tensor.Float32, 1, 5)}
	for i, x := range p {
		d.Logits.Float32s()[i] = float32(math.Log(x))
	}
	for h, head := range [][]float64{p[:2], p[2:]} {
		d.Actions.Int64s()[h] = int64(slices.Index(head, slices.Max(head)))
	}
	return member{d}
}

func boxed(x ...float32) member {
	d := vector.Decision{Actions: tensor.New(tensor.Float32, 1, len(x))}
	copy(d.Actions.Float32s(), x)
	return member{d}
}

func TestEnsemble(t *testing.T) {
	heads := envs.MultiDiscrete{N: []int{2, 3}}
	// Two are sure a little of one thing, and one very much of another.
	list := []evaluate.Actors{drawn(0.6, 0.4, 0.5, 0.4, 0.1), drawn(0.6, 0.4, 0.1, 0.8, 0.1), drawn(0.1, 0.9, 0.5, 0.4, 0.1)}
	cases := []struct {
		e    evaluate.Ensemble
		want []int64
	}{
		{evaluate.Ensemble{Members: list, By: evaluate.ByMean, Action: heads}, []int64{1, 1}},
		{evaluate.Ensemble{Members: list, By: evaluate.ByMajority, Action: heads}, []int64{0, 0}},
		{evaluate.Ensemble{Members: list[1:2], By: evaluate.ByMean, Action: heads}, []int64{0, 1}},
		// All differ: the first one counts.
		{evaluate.Ensemble{Members: []evaluate.Actors{drawn(0.4, 0.6, 0.1, 0.1, 0.8), drawn(0.6, 0.4, 0.8, 0.1, 0.1)}, By: evaluate.ByMajority, Action: heads}, []int64{1, 2}},
	}
	act := func(e evaluate.Ensemble) (*vector.Decision, error) {
		a, err := e.NewActor(agents.Greedy, 1)
		if err != nil {
			return nil, err
		}
		defer a.Close()
		return a.Act(t.Context(), rng.New(1), nil)
	}
	for i, c := range cases {
		d, err := act(c.e)
		if err != nil {
			t.Fatal(err)
		}
		if got := d.Actions.Int64s(); !slices.Equal(got, c.want) {
			t.Errorf("case %d: %v, expected %v", i, got, c.want)
		}
	}
	box := envs.NewBox(-1, 1, 2)
	d, err := act(evaluate.Ensemble{Members: []evaluate.Actors{boxed(0.5, -1), boxed(0, 0)}, By: evaluate.ByMean, Action: box})
	if err != nil || !slices.Equal(d.Actions.Float32s(), []float32{0.25, -0.5}) {
		t.Errorf("%v: %v", d, err)
	}
	// An actor that is asked again allocates nothing.
	a, err := cases[0].e.NewActor(agents.Greedy, 1)
	if err != nil {
		t.Fatal(err)
	}
	if n := testing.AllocsPerRun(100, func() {
		if _, err := a.Act(t.Context(), rng.New(1), nil); err != nil {
			t.Fatal(err)
		}
	}); n > 3 { // the members' copies
		t.Errorf("%g allocations", n)
	}
	silent := member{vector.Decision{Actions: tensor.New(tensor.Int64, 1, 2)}}
	refused := 0
	for _, c := range []struct {
		e    evaluate.Ensemble
		want string
	}{
		{evaluate.Ensemble{By: evaluate.ByMean, Action: heads}, "needs members"},
		{evaluate.Ensemble{Members: list, By: "vote", Action: heads}, `by "vote"`},
		{evaluate.Ensemble{Members: list, By: evaluate.ByMajority, Action: box}, "cannot act in"},
		{evaluate.Ensemble{Members: []evaluate.Actors{silent}, By: evaluate.ByMean, Action: heads}, "has no probabilities"},
	} {
		if _, err := act(c.e); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("error %v, expected %q", err, c.want)
			continue
		}
		refused++
	}
	if _, err := cases[0].e.NewActor(agents.Explore, 1); err == nil || refused != 4 {
		t.Errorf("%d refused; drawing actions: %v", refused, err)
	}
}
