package publish

import (
	"slices"
	"testing"

	"github.com/onnxrl/onnxrl/agents"
	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/envs/wrap"
	"github.com/onnxrl/onnxrl/models/artifact"
	"github.com/onnxrl/onnxrl/runtime/rng"
	"github.com/onnxrl/onnxrl/runtime/sorted"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// driving has one upper bound for all components of its actions and three lower ones, as CarRacing,
// and of its observations one lower and two upper ones.
type driving struct{}

func (driving) Spec() envs.Spec {
	return envs.Spec{
		Name: "driving", Observation: envs.Dict{{Name: "x", Space: envs.Box{Of: tensor.Float32, Dims: []int{2}, Low: []float64{0}, High: []float64{1, 10}}}},
		Action: envs.Box{Of: tensor.Float32, Dims: []int{3}, Low: []float64{-1, 0, 0}, High: []float64{1}}, Random: true,
	}
}
func (driving) Reset(rng.Key, *envs.TimeStep) error       { return nil }
func (driving) Step(*tensor.Tensor, *envs.TimeStep) error { return nil }
func (driving) Close() error                              { return nil }

type drivingFactory struct{ envs.Factory }

func (drivingFactory) New(envs.Split, int) (envs.Env, error) { return driving{}, nil }

// TestBoundsOfOneSide describes and wraps an agent whose bounds are one for all on one side only.
func TestBoundsOfOneSide(t *testing.T) {
	inner := drivingFactory{open(t, document(t, "env: {kind: corridor, cells: 5}"))}
	for _, c := range []struct{ rescale, clip bool }{{false, true}, {true, false}, {true, true}} {
		w := wrap.Defaults()
		w.RescaleAction, w.ClipAction = c.rescale, c.clip
		f, err := wrap.Apply(inner, w)
		if err != nil {
			t.Fatal(err)
		}
		e, err := f.New(envs.Train, 0)
		if err != nil {
			t.Fatal(err)
		}
		a, err := newPreprocessing(f, e)
		if err != nil {
			t.Fatal(err)
		}
		if err := a.bounds.Validate(); err != nil || !slices.Equal(a.bounds.Low, []float64{-1, 0, 0}) || !slices.Equal(a.bounds.High, []float64{1, 1, 1}) {
			t.Errorf("%+v: %+v, %v", c, a.bounds, err)
		}
		for port, n := range sorted.All(map[string]int{"x": 2, agents.ActionOutput: 3}) {
			if b := a.portOf(artifact.Port{Name: port}).Bounds; b == nil || len(b.Low) != n || len(b.High) != n {
				t.Errorf("%+v: port %s has the bounds %+v", c, port, b)
			}
		}
	}
}
