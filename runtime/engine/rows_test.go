package engine_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/runtime/engine"
	"github.com/onnxrl/onnxrl/runtime/engine/testengines"
	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

func batch(d tensor.DType, dims ...onnx.Dim) onnx.TensorType {
	return onnx.TensorType{DType: d, Ranked: true, Dims: append([]onnx.Dim{onnx.Symbol("batch")}, dims...)}
}

// model has an input x and an output y that make gives.
func model(t *testing.T, x, y onnx.TensorType, opset int, make func(b *onnx.Builder, x onnx.Value) onnx.Value) *onnx.Model {
	t.Helper()
	b := onnx.NewBuilder("m", opset)
	b.Output(b.Rename(make(b, b.Input("x", x)), "y"), y)
	m, err := b.Model()
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestRows(t *testing.T) {
	two := batch(tensor.Float32, onnx.Known(2))
	free := batch(tensor.Float32, onnx.Symbol("length"))
	table := tensor.Of([]float32{0.5, -1, 2, 3}, 2, 2)
	on := func(op string, attrs ...*onnx.Attribute) func(*onnx.Builder, onnx.Value) onnx.Value {
		return func(b *onnx.Builder, x onnx.Value) onnx.Value { return b.Op(op, []onnx.Value{x}, attrs...) }
	}
	cases := []struct {
		name  string
		model *onnx.Model
		want  error
		says  string
	}{
		{"elementwise", model(t, two, two, 18, on("Tanh")), nil, ""},
		{"of any length", model(t, free, free, 18, on("Softmax", onnx.AttrInt("axis", 1))), nil, ""},
		{"logarithms", model(t, two, two, 18, on("Log")), nil, ""},
		{"a product", model(t, two, two, 18, func(b *onnx.Builder, x onnx.Value) onnx.Value {
			return b.Op("MatMul", []onnx.Value{x, b.Const(table)})
		}), nil, ""},
		{"a table", model(t, batch(tensor.Int64), two, 18, func(b *onnx.Builder, x onnx.Value) onnx.Value {
			return b.Op("Gather", []onnx.Value{b.Const(table), x})
		}), nil, ""},
		{"a table of one row", model(t, batch(tensor.Int64), two, 18, func(b *onnx.Builder, x onnx.Value) onnx.Value {
			return b.Op("Gather", []onnx.Value{b.Const(tensor.Of([]float32{1, 2}, 1, 2)), x})
		}), nil, ""},
		{"a softmax over the batch", model(t, two, two, 18, on("Softmax", onnx.AttrInt("axis", 0))), engine.ErrRowsDepend, `output "y"`},
		{"a sum so far", model(t, two, two, 18, func(b *onnx.Builder, x onnx.Value) onnx.Value {
			return b.Op("CumSum", []onnx.Value{x, b.Const(tensor.Scalar(int64(0)))})
		}), engine.ErrRowsDepend, `output "y"`},
		{"a largest number that matters where it is large", model(t, two, two, 18, func(b *onnx.Builder, x onnx.Value) onnx.Value {
			far := b.Op("Relu", []onnx.Value{b.Op("Sub", []onnx.Value{b.Op("ReduceMax", []onnx.Value{x}, onnx.AttrInt("keepdims", 1)), b.Float(5)})})
			return b.Op("Add", []onnx.Value{x, far})
		}), engine.ErrRowsDepend, `output "y"`},
		{"small numbers beside an excluded one", model(t, two, two, 18, func(b *onnx.Builder, x onnx.Value) onnx.Value {
			mean := b.Op("Mul", []onnx.Value{b.Op("ReduceMean", []onnx.Value{x, b.Ints(0)}), b.Float(1e-4)})
			small := b.Op("Add", []onnx.Value{b.Op("Mul", []onnx.Value{x, b.Float(1e-4)}), mean})
			return b.Op("Mul", []onnx.Value{small, b.Const(tensor.Of([]float32{-1e30, 1}, 2))})
		}), engine.ErrRowsDepend, `output "y"`},
		{"what was chosen", model(t, two, batch(tensor.Bool, onnx.Known(2)), 18, func(b *onnx.Builder, x onnx.Value) onnx.Value {
			mean := b.Op("Mul", []onnx.Value{b.Op("ReduceMean", []onnx.Value{x, b.Ints(0)}), b.Float(1e-2)})
			return b.Op("Greater", []onnx.Value{b.Op("Add", []onnx.Value{x, mean}), b.Float(0)})
		}), engine.ErrRowsDepend, "output "},
		{"other rows than came in", model(t, two, onnx.TensorType{DType: tensor.Float32, Ranked: true, Dims: []onnx.Dim{onnx.Symbol(""), onnx.Known(2)}}, 18, func(b *onnx.Builder, x onnx.Value) onnx.Value {
			return b.Op("Concat", []onnx.Value{x, x}, onnx.AttrInt("axis", 0))
		}), engine.ErrRowsDepend, "for 4 rows"},
		{"nothing but NaN", model(t, two, two, 18, func(b *onnx.Builder, x onnx.Value) onnx.Value {
			return b.Op("Log", []onnx.Value{b.Op("Sub", []onnx.Value{b.Float(-1), b.Op("Abs", []onnx.Value{x})})})
		}), engine.ErrRowsUnknown, "NaN"},
		{"a fixed batch", model(t, onnx.TypeOf(tensor.Float32, 3, 2), onnx.TypeOf(tensor.Float32, 3, 2), 18, on("Tanh")), engine.ErrRowsUnknown, "no free first extent"},
	}
	for _, e := range testengines.All(t) {
		for _, c := range cases {
			s, err := e.Compile(c.model, engine.Options{})
			if err != nil {
				t.Fatalf("%s on %s: %v", c.name, e.Name(), err)
			}
			err = engine.CheckRows(t.Context(), s, nil, e, c.model, engine.Options{})
			if !errors.Is(err, c.want) || err != nil && !strings.Contains(err.Error(), c.says) {
				t.Errorf("%s on %s: %v, expected %v", c.name, e.Name(), err, c.want)
			}
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		}
	}
}

// TestGivenRows: what random rows do not run, or do not tell, given ones may.
func TestGivenRows(t *testing.T) {
	two := batch(tensor.Float32, onnx.Known(2))
	m := model(t, two, two, 18, func(b *onnx.Builder, x onnx.Value) onnx.Value {
		far := b.Op("Relu", []onnx.Value{b.Op("Sub", []onnx.Value{b.Op("ReduceMax", []onnx.Value{x}, onnx.AttrInt("keepdims", 1)), b.Float(1000)})})
		return b.Op("Add", []onnx.Value{x, far})
	})
	for _, e := range testengines.All(t) {
		s, err := e.Compile(m, engine.Options{})
		if err != nil {
			t.Fatal(err)
		}
		given := map[string]*tensor.Tensor{"x": tensor.Of([]float32{1, 2, 1500, 3}, 2, 2)}
		if err := engine.CheckRows(t.Context(), s, given, e, m, engine.Options{}); !errors.Is(err, engine.ErrRowsDepend) {
			t.Errorf("%s: %v", e.Name(), err)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}
