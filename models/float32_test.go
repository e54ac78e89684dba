package models

import (
	"math"
	"slices"
	"testing"

	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/sorted"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// TestInFloat32 changes everything that can name a type, in sub-graphs too.
func TestInFloat32(t *testing.T) {
	for _, d := range []tensor.DType{tensor.Float64, tensor.Float16, tensor.BFloat16} {
		typed := func(x *tensor.Tensor) *tensor.Tensor {
			y, err := tensor.FromFloat32(x, d)
			if err != nil {
				t.Fatal(err)
			}
			return y
		}
		rows := onnx.TensorType{DType: d, Ranked: true, Dims: rows.Dims}
		inner := onnx.NewBuilder("then", 18)
		inner.Output(inner.Op("Constant", nil, onnx.AttrTensor("value", typed(equalTo(2)))), onnx.TypeOf(d))
		then, err := inner.Model()
		if err != nil {
			t.Fatal(err)
		}
		other := then.Clone()
		other.Graph.Node[0].Output[0], other.Graph.Output[0].Name = "other", "other"
		b := onnx.NewBuilder("typed", 18)
		h := b.Op("MatMul", []onnx.Value{b.Input("x", rows), b.Initializer("w", typed(floats(4, 4)))})
		h = b.Op("Cast", []onnx.Value{b.Op("Cast", []onnx.Value{h}, onnx.AttrInt("to", int(tensor.Float32)))}, onnx.AttrInt("to", int(d)))
		h = b.Op("Add", []onnx.Value{h, b.Op("ConstantOfShape", []onnx.Value{b.Ints(4)}, onnx.AttrTensor("value", typed(equalTo(1, 1))))})
		h = b.Op("Add", []onnx.Value{h, b.Op("EyeLike", []onnx.Value{b.Const(tensor.New(tensor.Int64, 4, 4))}, onnx.AttrInt("dtype", int(d)))})
		h = b.Op("Mul", []onnx.Value{h, b.Op("If", []onnx.Value{b.Const(tensor.Of([]bool{true}, 1))}, onnx.AttrGraph("then_branch", then.Graph), onnx.AttrGraph("else_branch", other.Graph))})
		b.Output(b.Rename(h, "y"), onnx.TensorType{DType: d})
		m, err := b.Model()
		if err != nil {
			t.Fatal(err)
		}
		before := onnx.Sprint(m, onnx.PrintOptions{})
		c, changed, err := InFloat32(m)
		if err != nil || !changed {
			t.Fatalf("%v: changed %v, %v", d, changed, err)
		}
		if err := onnx.Check(c); err != nil {
			t.Errorf("%v: %v", d, err)
		}
		if onnx.Sprint(m, onnx.PrintOptions{}) != before {
			t.Errorf("%v: the model has changed", d)
		}
		if again, changed, err := InFloat32(c); err != nil || changed || again != c {
			t.Errorf("%v: something is left: %s", d, onnx.Sprint(c, onnx.PrintOptions{}))
		}
		err = c.EachTensor(func(p *onnx.TensorProto) error {
			if isOther := otherFloat(tensor.DType(p.DataType)); isOther {
				t.Errorf("%v: a tensor is left", d)
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
		net, values, err := FromModel(c, Options{})
		if err != nil || len(net.Specs) != 1 || values["w"].DType() != tensor.Float32 {
			t.Errorf("%v: parameters %v, %v", d, net, err)
		}
	}
}

// TestInFloat32OnlyWhereNeeded: a float32 model may compute parts in float64, and goes on doing so.
func TestInFloat32OnlyWhereNeeded(t *testing.T) {
	b := onnx.NewBuilder("mixed", 18)
	h := b.Op("Cast", []onnx.Value{b.Op("MatMul", []onnx.Value{b.Input("x", rows), b.Initializer("w", floats(4, 4))})}, onnx.AttrInt("to", int(tensor.Float64)))
	h = b.Op("Mul", []onnx.Value{h, b.Initializer("const/scale", tensor.Of([]float64{0.1}, 1))})
	b.Output(b.Rename(b.Op("Cast", []onnx.Value{h}, onnx.AttrInt("to", int(tensor.Float32))), "y"), rows)
	m, err := b.Model()
	if err != nil {
		t.Fatal(err)
	}
	if same, changed, err := InFloat32(m); err != nil || changed || same != m {
		t.Errorf("changed %v, %v", changed, err)
	}
}

// TestNumbersBeyondFloat32: masks stay finite and divisors other than zero.
func TestNumbersBeyondFloat32(t *testing.T) {
	for in, want := range sorted.All(map[float64]float32{
		-math.MaxFloat64: -math.MaxFloat32, math.MaxFloat64: math.MaxFloat32, math.Inf(-1): float32(math.Inf(-1)), 1e-300: 0x1p-126, -1e-300: -0x1p-126, 0: 0, 0.1: 0.1,
	}) {
		if got := nearestFloat32(in); got != want {
			t.Errorf("%g becomes %g, want %g", in, got, want)
		}
	}
}

// TestReweighRounds writes float32 content into a model of each type. Float64 elements that have
// not changed keep digits that float32 does not have.
func TestReweighRounds(t *testing.T) {
	for d, want := range sorted.All(map[tensor.DType][]float64{
		tensor.Float32: {float64(float32(0.1)), 2.0009765625}, tensor.Float64: {0.1, 2.0009765625}, tensor.Float16: {0.0999755859375, 2}, tensor.BFloat16: {0.10009765625, 2},
	}) {
		old := tensor.New(d, 2)
		switch d {
		case tensor.Float64:
			copy(old.Float64s(), []float64{0.1, 7})
		case tensor.Float32:
			copy(old.Float32s(), []float32{0.1, 7})
		}
		b := onnx.NewBuilder("typed", 18)
		b.Output(b.Op("Neg", []onnx.Value{b.Initializer("w", old)}), onnx.TypeOf(d, 2))
		m, err := b.Model()
		if err != nil {
			t.Fatal(err)
		}
		with := func(v float32) (*onnx.Model, error) {
			return Reweigh(m, func(string) *tensor.Tensor { return tensor.Of([]float32{0.1, v}, 2) })
		}
		out, err := with(2.0009765625)
		if err != nil {
			t.Fatal(err)
		}
		got, err := onnx.TensorOf(out.Graph.Initializer[0])
		if err != nil || got.DType() != d {
			t.Fatalf("%v: %v, %v", d, got, err)
		}
		x := got.Float64s
		if d != tensor.Float64 {
			narrow, err := tensor.ToFloat32(got)
			if err != nil {
				t.Fatal(err)
			}
			x = func() []float64 {
				return []float64{float64(narrow.Float32s()[0]), float64(narrow.Float32s()[1])}
			}
		}
		if !slices.Equal(x(), want) {
			t.Errorf("%v: %v, want %v", d, x(), want)
		}
		if _, err := with(70000); (err != nil) != (d == tensor.Float16) {
			t.Errorf("%v: 70000 gives the error %v", d, err)
		}
	}
}
