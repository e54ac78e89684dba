package bake

import (
	"slices"
	"testing"

	"github.com/onnxrl/onnxrl/runtime/engine/testengines"
	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/rng"
	"github.com/onnxrl/onnxrl/runtime/sorted"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// TestInt8TakesWeightsApart quantises products by the parts of one weight, split in equal and in
// given sizes along both axes.
func TestInt8TakesWeightsApart(t *testing.T) {
	s := rng.New(9).Stream()
	cases := 0
	for _, axis := range []int{0, 1, -1} {
		for _, sizes := range [][]int{nil, {40, 24}} {
			w := tensor.New(tensor.Float32, 64, 64)
			for i := range w.Float32s() {
				w.Float32s()[i] = float32(s.Normal())
			}
			b := onnx.NewBuilder("parts", 13)
			rows, columns := 64, 32
			if axis == 0 {
				rows, columns = 32, 64
			}
			in := []onnx.Value{b.Initializer("w", w)}
			if sizes != nil {
				in = append(in, b.Ints(sizes...))
				if axis == 0 {
					rows = 40
				} else {
					columns = 40
				}
			}
			form := onnx.TensorType{DType: tensor.Float32, Ranked: true, Dims: []onnx.Dim{onnx.Symbol("n"), onnx.Known(rows)}}
			parts := b.OpN("Split", "", 2, in, onnx.AttrInt("axis", axis))
			form.Dims = slices.Clone(form.Dims)
			y := b.Op("MatMul", []onnx.Value{b.Input("x", form), parts[0]})
			b.Output(b.Rename(y, "y"), onnx.TensorType{DType: tensor.Float32, Ranked: true, Dims: []onnx.Dim{onnx.Symbol("n"), onnx.Known(columns)}})
			m, err := b.Model()
			if err != nil {
				t.Fatal(err)
			}
			small, count, err := Int8(m)
			if err != nil || count != 1 {
				t.Fatalf("axis %d, sizes %v: %d weights, %v", axis, sizes, count, err)
			}
			for _, n := range small.Graph.Node {
				if n.OpType == "Split" {
					t.Errorf("axis %d, sizes %v: the weight is still split at run time", axis, sizes)
				}
			}
			x := tensor.New(tensor.Float32, 3, rows)
			for i := range x.Float32s() {
				x.Float32s()[i] = float32(s.Normal())
			}
			for _, c := range testengines.All(t) {
				l, err := NewLosses(c, m, small, LossPolicy{})
				if err != nil {
					t.Fatal(err)
				}
				if err := l.Add(t.Context(), map[string]*tensor.Tensor{"x": x}, nil); err != nil {
					t.Fatal(err)
				}
				if d := l.Loss(); d.MaxDelta > 0.6 || d.MaxDelta == 0 {
					t.Errorf("%s, axis %d, sizes %v: %+v", c.Name(), axis, sizes, d)
				}
				if err := l.Close(); err != nil {
					t.Error(err)
				}
				cases++
			}
		}
	}
	if cases != 6*len(testengines.All(t)) {
		t.Errorf("%d cases", cases)
	}
	for name, n := range sorted.All(map[string]*onnx.Node{
		"another operator": {OpType: "Concat", Output: []string{"a"}},
		"no such axis":     {OpType: "Split", Output: []string{"a", "b"}, Attribute: []*onnx.Attribute{onnx.AttrInt("axis", 2)}},
		"old sizes":        {OpType: "Split", Output: []string{"a", "b"}, Attribute: []*onnx.Attribute{onnx.AttrInts("split", 1, 3)}},
	}) {
		if _, err := evalSplit(n, 13, []*tensor.Tensor{tensor.New(tensor.Float32, 4, 4)}); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	if _, err := evalSplit(&onnx.Node{OpType: "Split", Output: []string{"a", "b"}}, 13, []*tensor.Tensor{tensor.New(tensor.Float32, 4, 4), tensor.Of([]int64{1, 2}, 2)}); err == nil {
		t.Error("sizes that leave a rest: no error")
	}
}
