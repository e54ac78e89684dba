package bake

import (
	"testing"

	"github.com/onnxrl/onnxrl/runtime/engine/testengines"
	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// TestKeptFloat lists what stays float32, and why.
func TestKeptFloat(t *testing.T) {
	t.Parallel()
	m := products(t, 13)
	b := onnx.Extend(m)
	picked := b.Op("Gather", []onnx.Value{b.Initializer("table", normals(2, 64, 32)), b.Const(tensor.Of([]int64{1}, 1))})
	b.Output(b.Rename(picked, "picked"), onnx.TypeOf(tensor.Float32, 1, 32))
	for _, n := range m.Graph.Node {
		if n.In(1) == "gemm" {
			n.SetAttr(onnx.AttrFloat("alpha", 2))
		}
	}
	for _, k := range []struct {
		make func(*onnx.Model) (*onnx.Model, int, error)
		want []Kept
	}{
		{Float16, nil},
		{Int8, []Kept{{"gemm", 640 * 24, "its Gemm has transA, alpha or beta"}, {"table", 64 * 32, "it is read by Gather, not only as the weight of MatMul, Gemm or Conv"}}},
	} {
		low, _, err := k.make(m)
		if err != nil {
			t.Fatal(err)
		}
		list, small := KeptFloat(m, low)
		if len(list) != len(k.want) || small != 2 {
			t.Fatalf("%v and %d small ones, expected %v", list, small, k.want)
		}
		for i, w := range k.want {
			if list[i] != w {
				t.Errorf("%+v, expected %+v", list[i], w)
			}
		}
	}
}

// TestFixedBatch measures a loss in blocks of the rows that a model takes.
func TestFixedBatch(t *testing.T) {
	t.Parallel()
	b := onnx.NewBuilder("fixed", 18)
	x := b.Input("x", onnx.TypeOf(tensor.Float32, 4, 64))
	b.Output(b.Rename(b.Op("MatMul", []onnx.Value{x, b.Initializer("w", normals(3, 64, 64))}), "y"), onnx.TypeOf(tensor.Float32, 4, 64))
	m, err := b.Model()
	if err != nil {
		t.Fatal(err)
	}
	low, _, err := Int8(m)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range testengines.All(t) {
		l, err := NewLosses(c, m, low, LossPolicy{})
		if err != nil {
			t.Fatal(err)
		}
		if err := l.Add(t.Context(), map[string]*tensor.Tensor{"x": normals(1, 12, 64)}, nil); err != nil {
			t.Fatal(err)
		}
		if got := l.Loss(); got.Rows != 12 || got.MaxDelta == 0 {
			t.Errorf("%s: %+v", c.Name(), got)
		}
		if err := l.Add(t.Context(), map[string]*tensor.Tensor{"x": normals(1, 10, 64)}, nil); err == nil || err.Error() != "measure loss: 10 rows for a model that takes 4 at once: expected a multiple" {
			t.Errorf("%s: %v", c.Name(), err)
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
