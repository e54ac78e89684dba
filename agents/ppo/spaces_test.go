package ppo

import (
	"testing"

	"onnxrl/envs"
	"onnxrl/envs/vector"
	"onnxrl/runtime/rng"
	"onnxrl/runtime/tensor"
)

// toy answers at random: observations, masks, rewards, and whether an episode goes on, terminates or is cut off.
type toy struct {
	spec   envs.Spec
	random rng.Stream
}

func (e *toy) Spec() envs.Spec { return e.spec }
func (e *toy) Close() error    { return nil }

func (e *toy) Reset(key rng.Key, ts *envs.TimeStep) error {
	e.random.Seed(key)
	e.observe(ts)
	ts.Restart()
	return nil
}

func (e *toy) Step(action *tensor.Tensor, ts *envs.TimeStep) error {
	if err := e.spec.Action.Check(action); err != nil {
		return err
	}
	reward := e.random.Normal()
	e.observe(ts)
	switch e.random.IntN(8) {
	case 0:
		ts.Terminate(reward)
	case 1:
		ts.Truncate(reward)
	default:
		ts.Continue(reward)
	}
	return nil
}

func (e *toy) observe(ts *envs.TimeStep) {
	for i, f := range e.spec.Observation {
		if w := f.Window; w != nil {
			ts.SetWindow(i, w, w.Len()-1+e.random.IntN(w.Table().Shape()[0]-w.Len()+1))
			continue
		}
		f.Space.Sample(&e.random, nil, ts.Obs[i])
	}
	if ts.Mask == nil {
		return
	}
	mask := ts.Mask.Bools()
	for _, k := range headsOf(e.spec.Action) {
		for i := range k {
			mask[i] = e.random.IntN(2) == 0
		}
		mask[e.random.IntN(k)] = true
		mask = mask[k:]
	}
}

func headsOf(s envs.Space) []int {
	switch s := s.(type) {
	case envs.Discrete:
		return []int{s.N}
	case envs.MultiDiscrete:
		return s.N
	case envs.MultiBinary:
		list := make([]int, s.N)
		for i := range list {
			list[i] = 2
		}
		return list
	}
	return nil
}

// spec describes a toy with a vector and, beside it, something discrete.
func spec(action envs.Space, masked bool) envs.Spec {
	return envs.Spec{
		Name: "toy", Observation: envs.Dict{{Name: "x", Space: envs.Unbounded(3)}, {Name: "k", Space: envs.Discrete{N: 2}}},
		Action: action, Masked: masked, Reward: envs.Range{Low: -100, High: 100}, Random: true,
	}
}

// windows describes a toy whose observations are windows of 6 rows with 3 features, of so many assets, out of a table of 60 rows.
func windows(t testing.TB, assets int, action envs.Space, masked bool) envs.Spec {
	s := spec(action, masked)
	shape := []int{3}
	if assets > 0 {
		shape = []int{assets, 3}
	}
	table := tensor.New(tensor.Float32, append([]int{60}, shape...)...)
	rng.New(6).Stream().FillNormal32(table.Float32s(), 0, 1)
	w, err := envs.NewWindow(table, 6)
	if err != nil {
		t.Fatal(err)
	}
	s.Observation = envs.Dict{{Name: "window", Space: envs.Unbounded(append([]int{6}, shape...)...), Window: w}}
	if assets > 0 {
		s.Observation = append(s.Observation, envs.Field{Name: "position", Space: envs.Unbounded(assets)})
	}
	return s
}

// toys steps n environments of a spec.
func toys(t testing.TB, n int, s envs.Spec) *vector.Local {
	return vectorOf(t, n, func() (*toy, error) { return &toy{spec: s}, nil })
}
