package gymnasium_test

import (
	"math"
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/envs/gymnasium"
	"github.com/onnxrl/onnxrl/envs/vector"
	"github.com/onnxrl/onnxrl/runtime/longtest"
	"github.com/onnxrl/onnxrl/runtime/sorted"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// TestSpaces steps an environment that has every space there is, in every space of actions.
func TestSpaces(t *testing.T) {
	inf := math.Inf(1)
	observation := envs.Dict{
		{Name: "bits", Space: envs.MultiBinary{N: 4}},
		{Name: "choice", Space: envs.Discrete{N: 4, Start: 2}},
		{Name: "image", Space: envs.Box{Of: tensor.Uint8, Dims: []int{2, 3}, Low: []float64{0}, High: []float64{255}}},
		{Name: "inner/choices", Space: envs.MultiDiscrete{N: []int{2, 2}, Start: []int64{1, 0}}},
		{Name: "inner/exact", Space: envs.NewBox(-inf, inf, 2)},
		{Name: "inner/numbers", Space: envs.NewBox(-9, 9, 2)},
		{Name: "single", Space: envs.NewBox(-inf, inf, 1)},
	}
	cases := map[string]struct {
		space  envs.Space
		action *tensor.Tensor
		// sum is that of the action's elements as Python sees them.
		sum float64
	}{
		"discrete":      {envs.Discrete{N: 3, Start: -1}, tensor.Of([]int64{2, 0}, 2), 1},
		"multidiscrete": {envs.MultiDiscrete{N: []int{2, 3}, Start: []int64{5, 0}}, tensor.Of([]int64{1, 2, 0, 0}, 2, 2), 8},
		"multibinary":   {envs.MultiBinary{N: 3}, tensor.Of([]bool{true, false, true, false, false, false}, 2, 3), 2},
		"box":           {envs.Box{Of: tensor.Float32, Dims: []int{2}, Low: []float64{-1, -2}, High: []float64{1, 2}}, tensor.Of([]float32{0.5, -2, 0, 0}, 2, 2), -1.5},
		"box64":         {envs.NewBox(-0.4, 0.4, 2), tensor.Of([]float32{0.1, 0.4, 0, 0}, 2, 2), float64(float32(0.1)) + 0.4},
	}
	for name, c := range sorted.All(longtest.Few(t, cases, 2)) {
		t.Run(name, func(t *testing.T) {
			f := open(t, config("Spaces-v0", map[string]any{"action": name}))
			want := envs.Spec{
				Name: "Spaces-v0", Observation: observation, Action: c.space, Reward: envs.Range{Low: -inf, High: inf}, MaxSteps: 15, Random: true,
			}
			if spec := f.Spec(); !spec.Equal(&want) {
				t.Errorf("the spec is %+v, expected %+v", spec, want)
			}
			v := openVector(t, f, 2, vector.Options{Workers: 1, Check: true})
			reset(t, v, 1)
			for range 5 {
				if err := v.Step(c.action); err != nil {
					t.Fatal(err)
				}
			}
			b := v.Batch()
			if b.Reward[0] != c.sum || b.Obs[6].Float32s()[0] != float32(c.sum) {
				t.Errorf("Python sees an action whose sum is %g, expected %g", b.Reward[0], c.sum)
			}
			// The fifth step of any episode.
			k := float64(5)
			for i, want := range []any{[]bool{true, false, true, true}, []int64{1}, []uint8{5, 1, 2, 3, 4, 255}, []int64{1, 0}, []float32{float32(0.1 * k), float32(1.0 / 3)}, []float32{5, -9}} {
				if got := b.Obs[i].Rows(1, 2); !equal(got, want) {
					t.Errorf("observation %q is %v, expected %v", observation[i].Name, got.Bytes(), want)
				}
			}
		})
	}
}

// equal compares elements.
func equal(t *tensor.Tensor, want any) bool {
	var other *tensor.Tensor
	switch w := want.(type) {
	case []bool:
		other = tensor.Of(w, len(w))
	case []int64:
		other = tensor.Of(w, len(w))
	case []uint8:
		other = tensor.Of(w, len(w))
	case []float32:
		other = tensor.Of(w, len(w))
	}
	return t.DType() == other.DType() && string(t.Bytes()) == string(other.Bytes())
}

// TestSpacesThatAreNotSupported: the error names the space and the place.
func TestSpacesThatAreNotSupported(t *testing.T) {
	for want, kwargs := range sorted.All(longtest.Few(t, map[string]map[string]any{
		"the action is a space Tuple":          {"action": "tuple"},
		"the action is a space Dict":           {"action": "dict"},
		"the action is a box of int32":         {"action": "int box"},
		"the observation is a space Tuple":     {"observation": "tuple"},
		"the observation a/b is a space Tuple": {"observation": "deep tuple"},
	}, 2)) {
		if _, err := gymnasium.Open(t.Context(), config("Spaces-v0", kwargs)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not said: %v", want, err)
		}
	}
}
