package a2c

import (
	"testing"

	"onnxrl/envs"
	"onnxrl/envs/vector"
	"onnxrl/runtime/rng"
	"onnxrl/runtime/tensor"
)

// toy answers at random: observations, masks, rewards, and whether an episode goes on, terminates or is cut off. Windows jump about in their table.
type toy struct {
	spec   envs.Spec
	random rng.Stream
}

// flatToy has two vectors and two heads.
func flatToy() envs.Spec {
	return envs.Spec{
		Name: "toy", Observation: envs.Dict{{Name: "x", Space: envs.Unbounded(3)}, {Name: "y", Space: envs.Unbounded(2)}},
		Action: envs.MultiDiscrete{N: []int{2, 3}}, Masked: true, Reward: envs.Range{Low: -100, High: 100}, Random: true,
	}
}

// windowToy has windows of 6 rows of 3 assets with 4 features out of a table of 60 rows.
func windowToy(t testing.TB) envs.Spec {
	table := tensor.New(tensor.Float32, 60, 3, 4)
	rng.New(6).Stream().FillNormal32(table.Float32s(), 0, 1)
	w, err := envs.NewWindow(table, 6)
	if err != nil {
		t.Fatal(err)
	}
	s := flatToy()
	s.Observation = envs.Dict{{Name: "window", Space: envs.Unbounded(6, 3, 4), Window: w}, {Name: "position", Space: envs.Unbounded(3)}}
	s.Action = envs.MultiDiscrete{N: []int{3, 3, 3}}
	return s
}

// toys steps n environments of a spec.
func toys(t testing.TB, n int, s envs.Spec) vector.Env {
	return vectorOf(t, n, func(int) (envs.Env, error) { return &toy{spec: s}, nil })
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
	reward := e.random.Normal() + float64(action.Int64s()[0])
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
		e.random.FillNormal32(ts.Obs[i].Float32s(), 0, 1)
	}
	mask := ts.Mask.Bools()
	for _, k := range e.spec.Action.(envs.MultiDiscrete).N {
		for i := range k {
			mask[i] = e.random.IntN(2) == 0
		}
		mask[e.random.IntN(k)] = true
		mask = mask[k:]
	}
}
