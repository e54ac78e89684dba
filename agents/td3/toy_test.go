package td3

import (
	"testing"

	"onnxrl/envs"
	"onnxrl/envs/vector"
	"onnxrl/runtime/rng"
	"onnxrl/runtime/tensor"
)

// toy answers at random: observations, rewards, and whether an episode goes on, terminates or is cut off. Windows jump about in their table.
type toy struct {
	spec   envs.Spec
	random rng.Stream
	// before is what the present observation was drawn from.
	before rng.Stream
}

// boxToy has a vector and a discrete field, and actions of two components with bounds of their own.
func boxToy() envs.Spec {
	return envs.Spec{
		Name: "toy", Observation: envs.Dict{{Name: "x", Space: envs.Unbounded(3)}, {Name: "kind", Space: envs.Discrete{N: 3}}},
		Action: envs.Box{Of: tensor.Float32, Dims: []int{2}, Low: []float64{-2, 0.1}, High: []float64{2, 0.7}}, Reward: envs.Range{Low: -100, High: 100}, Random: true,
	}
}

// wideToy has actions of float64 in rows and columns.
func wideToy() envs.Spec {
	s := boxToy()
	s.Action = envs.Box{Of: tensor.Float64, Dims: []int{2, 2}, Low: []float64{-3}, High: []float64{1}}
	return s
}

// seriesToy has windows of 8 rows with 4 features out of a table of 60, beside a vector.
func seriesToy(t testing.TB) envs.Spec {
	s := boxToy()
	s.Observation = envs.Dict{{Name: "window", Space: envs.Unbounded(8, 4), Window: windowOf(t, 60, 4)}, {Name: "x", Space: envs.Unbounded(2)}}
	return s
}

// assetsToy has windows of 3 assets, each with a component of the action, beside their positions.
func assetsToy(t testing.TB) envs.Spec {
	s := boxToy()
	s.Observation = envs.Dict{{Name: "window", Space: envs.Unbounded(8, 3, 4), Window: windowOf(t, 60, 3, 4)}, {Name: "position", Space: envs.Unbounded(3)}}
	s.Action = envs.NewBox(-1, 1, 3)
	return s
}

func windowOf(t testing.TB, shape ...int) *envs.Window {
	t.Helper()
	table := tensor.New(tensor.Float32, shape...)
	rng.New(6).Stream().FillNormal32(table.Float32s(), 0, 1)
	w, err := envs.NewWindow(table, 8)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// toys steps n environments of a spec.
func toys(t testing.TB, n int, s envs.Spec) *vector.Local {
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
	if err := e.spec.Action.Check(action); err != nil {
		return err
	}
	reward := e.random.Normal()
	if action.DType() == tensor.Float32 {
		reward += float64(action.Float32s()[0])
	}
	end := e.random.IntN(8)
	e.observe(ts)
	switch end {
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
	e.before = e.random
	for i, f := range e.spec.Observation {
		switch w := f.Window; {
		case w != nil:
			ts.SetWindow(i, w, w.Len()-1+e.random.IntN(w.Table().Shape()[0]-w.Len()+1))
		case f.Space.DType() == tensor.Int64:
			ts.Obs[i].Int64s()[0] = int64(e.random.IntN(3))
		default:
			e.random.FillNormal32(ts.Obs[i].Float32s(), 0, 1)
		}
	}
}

// SaveState implements envs.Saver.
func (e *toy) SaveState() ([]byte, error) { return e.before.MarshalBinary() }

// LoadState implements envs.Saver.
func (e *toy) LoadState(data []byte, ts *envs.TimeStep) error {
	if err := e.random.UnmarshalBinary(data); err != nil {
		return err
	}
	e.observe(ts)
	ts.Continue(0)
	return nil
}
