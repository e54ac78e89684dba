// Package offlinetest makes data sets for tests of agents that learn from them.
package offlinetest

import (
	"path/filepath"
	"testing"

	"github.com/onnxrl/onnxrl/agents"
	"github.com/onnxrl/onnxrl/agents/offline"
	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/runtime/rng"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// Dataset writes a data set of so many episodes of 1 to 20 transitions that no environment has
// given: observations and valid actions are drawn from their spaces, and every other episode was
// cut off.
func Dataset(t testing.TB, spec envs.Spec, episodes int) *offline.Dataset {
	t.Helper()
	m := offline.Describe(spec)
	m.Behaviours = []offline.Behaviour{{Algorithm: "random"}}
	dir := filepath.Join(t.TempDir(), "dataset")
	w, err := offline.Create(dir, m)
	if err != nil {
		t.Fatal(err)
	}
	s := rng.New(17).Stream()
	if err := w.Part(t.Context(), 0, func(add func(*offline.Episode) error) error {
		for k := range episodes {
			if err := add(episodeOf(spec, s, 1+s.IntN(20), k%2 == 0)); err != nil {
				return err
			}
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if err := w.Finish(); err != nil {
		t.Fatal(err)
	}
	d, err := offline.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// episodeOf draws an episode of n transitions.
func episodeOf(spec envs.Spec, s *rng.Stream, n int, truncated bool) *offline.Episode {
	e := &offline.Episode{Obs: make([][]byte, len(spec.Observation)), Rows: make([][]int64, len(spec.Observation)), Truncated: truncated, Terminated: !truncated}
	mask := []bool(nil)
	if spec.Masked {
		mask = make([]bool, envs.MaskLen(spec.Action))
	}
	action := tensor.New(spec.Action.DType(), spec.Action.Shape()...)
	for i := range n + 1 {
		for f, field := range spec.Observation {
			if w := field.Window; w != nil {
				e.Rows[f] = append(e.Rows[f], int64(w.Len()-1+s.IntN(w.Table().Shape()[0]-w.Len()+1)))
				continue
			}
			x := tensor.New(field.Space.DType(), field.Space.Shape()...)
			field.Space.Sample(s, nil, x)
			e.Obs[f] = append(e.Obs[f], x.Bytes()...)
		}
		for k := range mask {
			mask[k] = s.Bernoulli(0.7)
		}
		if mask != nil {
			// Of every head the first choice is valid.
			for at := 0; at < len(mask); at += heads(spec.Action, at) {
				mask[at] = true
			}
			for _, ok := range mask {
				b := byte(0)
				if ok {
					b = 1
				}
				e.Mask = append(e.Mask, b)
			}
		}
		if i == n {
			break
		}
		spec.Action.Sample(s, mask, action)
		discount := 1.0
		if i == n-1 && !truncated {
			discount = 0
		}
		e.Action = append(e.Action, action.Bytes()...)
		e.Reward, e.Discount, e.LogProb = append(e.Reward, s.Normal()), append(e.Discount, discount), append(e.LogProb, -1)
		for range spec.Costs {
			e.Cost = append(e.Cost, s.Float64())
		}
	}
	return e
}

// heads is the number of choices of the head of a mask that begins there.
func heads(s envs.Space, at int) int {
	switch s := s.(type) {
	case envs.MultiDiscrete:
		for _, n := range s.N {
			if at == 0 {
				return n
			}
			at -= n
		}
	case envs.MultiBinary:
		return 2
	}
	return envs.MaskLen(s)
}

// Setup returns what gives an agent a data set as its replay, without an environment.
func Setup(t testing.TB, d *offline.Dataset, spec envs.Spec) func(*agents.Setup) {
	t.Helper()
	s, err := offline.NewStore(t.Context(), d, spec, nil, 1)
	if err != nil {
		t.Fatal(err)
	}
	return func(setup *agents.Setup) { setup.Replay = s }
}
