package classic_test

import (
	"slices"
	"testing"

	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/runtime/rng"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// play takes n steps with a policy and returns the mean reward. look sees every step before the
// action.
func play(t *testing.T, yaml string, n int, look func(ts *envs.TimeStep), policy func(s *rng.Stream, ts *envs.TimeStep, a *tensor.Tensor)) float64 {
	t.Helper()
	f, err := open(t, yaml)
	if err != nil {
		t.Fatal(err)
	}
	e, err := f.New(envs.Train, 0)
	if err != nil {
		t.Fatal(err)
	}
	s := rng.New(3).Stream()
	ts := envs.NewTimeStep(e.Spec())
	a := tensor.New(e.Spec().Action.DType(), e.Spec().Action.Shape()...)
	ts.Type = envs.Last
	sum := 0.0
	for i := range n {
		if ts.Type == envs.Last {
			if err := e.Reset(rng.New(4).Split("episode", i), ts); err != nil {
				t.Fatal(err)
			}
		}
		if look != nil {
			look(ts)
		}
		policy(s, ts, a)
		if err := e.Step(a, ts); err != nil {
			t.Fatal(err)
		}
		if ts.Terminated() {
			t.Fatal("a toy has terminated")
		}
		sum += ts.Reward
	}
	return sum / float64(n)
}

func repeat(_ *rng.Stream, ts *envs.TimeStep, a *tensor.Tensor) { copy(a.Bytes(), ts.Obs[0].Bytes()) }

// TestToysPayForRepetition: repeating the observation always earns 1, and guessing what guessing is
// worth: the product over heads of 1 in the number of valid choices.
func TestToysPayForRepetition(t *testing.T) {
	cases := []struct {
		yaml  string
		guess float64
	}{
		{"{kind: identity}", 1. / 4},
		{"{kind: identity, space: multi_discrete, dims: [4, 2]}", 1. / 8},
		{"{kind: identity, space: multi_binary, dims: [3]}", 1. / 8},
		// Of two numbers between −1 and 1, the chance that they are within 0.5: 1 − (1 − 0.25)².
		{"{kind: identity, space: box, dims: [1], eps: 0.5}", 1 - 0.75*0.75},
		// The masked choices are not guessed.
		{"{kind: invalid_action}", 1. / 15},
		{"{kind: invalid_action, dims: [20], invalid: 19}", 1},
		{"{kind: invalid_action, space: multi_discrete, dims: [2, 3], invalid: 3}", 1},
		{"{kind: invalid_action, space: multi_binary, dims: [10], invalid: 10}", 1},
		{"{kind: invalid_action, space: multi_binary, dims: [1], invalid: 0}", 1. / 2},
	}
	for _, c := range cases {
		if got := play(t, c.yaml, 1000, nil, repeat); got != 1 {
			t.Errorf("%s: repeating earns %g", c.yaml, got)
		}
		f, err := open(t, c.yaml)
		if err != nil {
			t.Fatal(err)
		}
		e, err := f.New(envs.Train, 0)
		if err != nil {
			t.Fatal(err)
		}
		space := e.Spec().Action
		guess := play(t, c.yaml, 20000, nil, func(s *rng.Stream, ts *envs.TimeStep, a *tensor.Tensor) {
			var mask []bool
			if ts.Mask != nil {
				mask = ts.Mask.Bools()
			}
			space.Sample(s, mask, a)
		})
		// Four deviations of a mean of 20000 are at most 0.015.
		if guess < c.guess-0.015 || guess > c.guess+0.015 {
			t.Errorf("%s: guessing earns %g, expected %g", c.yaml, guess, c.guess)
		}
	}
}

// TestInvalidActionsAreDrawnEvenly: the mask excludes as many choices as the configuration says,
// never the right one, and each wrong one equally often.
func TestInvalidActionsAreDrawnEvenly(t *testing.T) {
	const n, steps = 10, 20000
	counts := make([]int, n)
	play(t, "{kind: invalid_action, dims: [10], invalid: 4}", steps, func(ts *envs.TimeStep) {
		mask := ts.Mask.Bools()
		if !mask[ts.Obs[0].Int64s()[0]] {
			t.Fatal("the right choice is excluded")
		}
		excluded := 0
		for i, ok := range mask {
			if !ok {
				counts[i]++
				excluded++
			}
		}
		if excluded != 4 {
			t.Fatalf("%d choices are excluded", excluded)
		}
	}, repeat)
	// Each is excluded with probability 0.9·4/9 = 0.4; four deviations are 277.
	if lo, hi := slices.Min(counts), slices.Max(counts); lo < 8000-300 || hi > 8000+300 {
		t.Errorf("choices are excluded %v times, expected about 8000 each", counts)
	}
}
