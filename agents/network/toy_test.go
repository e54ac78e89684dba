package network_test

import (
	"testing"

	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/envs/vector"
	"github.com/onnxrl/onnxrl/runtime/rng"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// toy answers at random: observations, masks, and whether an episode goes on, terminates or is cut
// off.
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

func (e *toy) Step(_ *tensor.Tensor, ts *envs.TimeStep) error {
	e.observe(ts)
	switch e.random.IntN(8) {
	case 0:
		ts.Terminate(1)
	case 1:
		ts.Truncate(1)
	default:
		ts.Continue(1)
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
	for _, k := range envs.Heads(e.spec.Action) {
		for i := range k {
			mask[i] = e.random.IntN(2) == 0
		}
		mask[e.random.IntN(k)] = true
		mask = mask[k:]
	}
}

// toys steps n environments of a spec, which have been reset.
func toys(t testing.TB, n int, s envs.Spec) vector.Env {
	t.Helper()
	list := make([]envs.Env, n)
	for i := range list {
		list[i] = &toy{spec: s}
	}
	v, err := vector.New(list, vector.Options{Workers: 1, Check: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := v.Close(); err != nil {
			t.Error(err)
		}
	})
	if err := v.Reset(rng.New(11)); err != nil {
		t.Fatal(err)
	}
	return v
}

// vectors are observations without a window.
func vectors() envs.Dict { return envs.Dict{{Name: "x", Space: envs.Unbounded(3)}} }

// assets are windows of 6 rows of 3 assets with 4 features out of a table of 60 rows, with position
// and cash beside them.
func assets(t testing.TB) envs.Dict {
	w := window(t, 60, 3, 4)
	return envs.Dict{{Name: "window", Space: envs.Unbounded(6, 3, 4), Window: w}, {Name: "position", Space: envs.Unbounded(3)}, {Name: "cash", Space: envs.Unbounded(1)}}
}

// tradable are the same with a field that says which assets can be traded.
func tradable(t testing.TB) envs.Dict {
	return append(assets(t), envs.Field{Name: "tradable", Space: envs.Box{Of: tensor.Uint8, Dims: []int{3}, Low: []float64{0}, High: []float64{1}}})
}

// series is a window of 6 rows of one series, with a vector and a discrete field beside it.
func series(t testing.TB) envs.Dict {
	return envs.Dict{{Name: "state", Space: envs.Discrete{N: 5}}, {Name: "window", Space: envs.Unbounded(6, 4), Window: window(t, 60, 4)}, {Name: "x", Space: envs.Unbounded(2)}}
}

func window(t testing.TB, shape ...int) *envs.Window {
	table := tensor.New(tensor.Float32, shape...)
	rng.New(6).Stream().FillNormal32(table.Float32s(), 0, 1)
	w, err := envs.NewWindow(table, 6)
	if err != nil {
		t.Fatal(err)
	}
	return w
}
