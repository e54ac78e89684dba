package bake

import (
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/runtime/engine/testengines"
	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// TestFixed: a model with a fixed input gives in every row what it gives when that input is the
// value, has no such input any more, and refuses what does not fit.
func TestFixed(t *testing.T) {
	b := onnx.NewBuilder("two", 18)
	batch := func(n int) onnx.TensorType {
		return onnx.TensorType{DType: tensor.Float32, Ranked: true, Dims: []onnx.Dim{onnx.Symbol("N"), onnx.Known(n)}}
	}
	x, z := b.Input("x", batch(3)), b.Input("skill", batch(2))
	w := b.Const(tensor.Of([]float32{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}, 5, 2))
	joined := b.Op("Concat", []onnx.Value{x, z}, onnx.AttrInt("axis", 1))
	b.Output(b.Rename(b.Op("MatMul", []onnx.Value{joined, w}), "y"), batch(2))
	m, err := b.Model()
	if err != nil {
		t.Fatal(err)
	}
	value := []float32{-1, 0.5}
	fixed, err := (&Fixed{Input: "skill", Value: value}).wrap(m)
	if err != nil {
		t.Fatal(err)
	}
	if len(fixed.Graph.Input) != 1 || len(m.Graph.Input) != 2 {
		t.Errorf("%d inputs of %d", len(fixed.Graph.Input), len(m.Graph.Input))
	}
	compared := 0
	for _, c := range testengines.All(t) {
		for _, rows := range []int{1, 4} {
			x, z := tensor.New(tensor.Float32, rows, 3), tensor.New(tensor.Float32, rows, 2)
			for i := range x.Float32s() {
				x.Float32s()[i] = float32(i) - 2
			}
			for i := range z.Float32s() {
				z.Float32s()[i] = value[i%2]
			}
			want, err := outputs(t, c, m, map[string]*tensor.Tensor{"x": x, "skill": z})
			if err != nil {
				t.Fatal(err)
			}
			got, err := outputs(t, c, fixed, map[string]*tensor.Tensor{"x": x})
			if err != nil {
				t.Fatal(err)
			}
			if string(got["y"].Bytes()) != string(want["y"].Bytes()) {
				t.Errorf("%v, expected %v", got["y"], want["y"])
			}
			compared++
		}
	}
	if compared < 2 {
		t.Errorf("%d comparisons", compared)
	}
	for _, f := range []struct {
		Fixed
		m    *onnx.Model
		says string
	}{{Fixed{"skill", []float32{1}}, m, "the value has 1 elements"}, {Fixed{"x", []float32{1, 2, 3}}, fixed, "no other input"}} {
		if _, err := f.wrap(f.m); err == nil || !strings.Contains(err.Error(), f.says) {
			t.Errorf("%v: %v, expected %q", f.Fixed, err, f.says)
		}
	}
}
