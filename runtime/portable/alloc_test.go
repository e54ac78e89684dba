package portable_test

import (
	"testing"

	"github.com/onnxrl/onnxrl/runtime/engine"
	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/portable"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// steady is one operator whose repeated runs must not allocate.
type steady struct {
	name  string
	in    []*tensor.Tensor
	build func(b *onnx.Builder, in []onnx.Value) onnx.Value
}

func f32(shape ...int) *tensor.Tensor {
	t := tensor.New(tensor.Float32, shape...)
	for i := range t.Float32s() {
		t.Float32s()[i] = float32(i%7) - 2.5
	}
	return t
}

func op(name string, attrs ...*onnx.Attribute) func(*onnx.Builder, []onnx.Value) onnx.Value {
	return func(b *onnx.Builder, in []onnx.Value) onnx.Value { return b.Op(name, in, attrs...) }
}

// withInts calls an operator with a constant list of integers as its last input.
func withInts(name string, v ...int) func(*onnx.Builder, []onnx.Value) onnx.Value {
	return func(b *onnx.Builder, in []onnx.Value) onnx.Value { return b.Op(name, append(in, b.Ints(v...))) }
}

var steadyOps = []steady{
	{"add", []*tensor.Tensor{f32(4, 8), f32(4, 8)}, op("Add")},
	{"add row", []*tensor.Tensor{f32(4, 8), f32(8)}, op("Add")},
	{"mul column", []*tensor.Tensor{f32(4, 8), f32(4, 1)}, op("Mul")},
	{"relu", []*tensor.Tensor{f32(4, 8)}, op("Relu")},
	{"tanh", []*tensor.Tensor{f32(4, 8)}, op("Tanh")},
	{"exp", []*tensor.Tensor{f32(4, 8)}, op("Exp")},
	{"max", []*tensor.Tensor{f32(4, 8), f32(8), f32(1)}, op("Max")},
	{"sum", []*tensor.Tensor{f32(4, 8), f32(4, 8), f32(8)}, op("Sum")},
	{"greater and cast", []*tensor.Tensor{f32(4, 8), f32(4, 8)}, func(b *onnx.Builder, in []onnx.Value) onnx.Value {
		return b.Op("Cast", []onnx.Value{b.Op("Greater", in)}, onnx.AttrInt("to", int(tensor.Float32)))
	}},
	{"where", []*tensor.Tensor{f32(4, 8), f32(8)}, func(b *onnx.Builder, in []onnx.Value) onnx.Value {
		return b.Op("Where", []onnx.Value{b.Op("Less", in), in[0], in[1]})
	}},
	{"gemm", []*tensor.Tensor{f32(16, 8), f32(8, 12), f32(12)}, op("Gemm")},
	{"gemm transposed", []*tensor.Tensor{f32(8, 16), f32(12, 8), f32(12)}, op("Gemm", onnx.AttrInt("transA", 1), onnx.AttrInt("transB", 1))},
	{"gemm of one row", []*tensor.Tensor{f32(1, 300), f32(300, 300), f32(300)}, op("Gemm")},
	{"matmul batch", []*tensor.Tensor{f32(3, 16, 8), f32(3, 8, 12)}, op("MatMul")},
	{"transpose", []*tensor.Tensor{f32(3, 4, 5)}, op("Transpose", onnx.AttrInts("perm", 2, 0, 1))},
	{"reshape", []*tensor.Tensor{f32(3, 4, 5)}, func(b *onnx.Builder, in []onnx.Value) onnx.Value {
		return b.Op("Relu", []onnx.Value{b.Op("Reshape", []onnx.Value{in[0], b.Ints(-1, 5)})})
	}},
	{"unsqueeze", []*tensor.Tensor{f32(3, 4)}, func(b *onnx.Builder, in []onnx.Value) onnx.Value {
		return b.Op("Relu", []onnx.Value{b.Op("Unsqueeze", []onnx.Value{in[0], b.Ints(0, 2)})})
	}},
	{"concat", []*tensor.Tensor{f32(3, 4), f32(3, 2)}, op("Concat", onnx.AttrInt("axis", 1))},
	{"slice", []*tensor.Tensor{f32(6, 4)}, func(b *onnx.Builder, in []onnx.Value) onnx.Value {
		return b.Op("Slice", []onnx.Value{in[0], b.Ints(1), b.Ints(5), b.Ints(0), b.Ints(2)})
	}},
	{"split", []*tensor.Tensor{f32(6, 4)}, func(b *onnx.Builder, in []onnx.Value) onnx.Value {
		v := b.OpN("Split", "", 2, []onnx.Value{in[0], b.Ints(2, 4)})
		return v[1]
	}},
	{"expand", []*tensor.Tensor{f32(1, 4)}, withInts("Expand", 3, 4)},
	{"tile", []*tensor.Tensor{f32(2, 4)}, withInts("Tile", 3, 2)},
	{"pad", []*tensor.Tensor{f32(2, 4)}, withInts("Pad", 1, 1, 0, 2)},
	{"gather", []*tensor.Tensor{f32(5, 4)}, withInts("Gather", 4, 0, 2)},
	{"shape", []*tensor.Tensor{f32(5, 4)}, op("Shape")},
	{"constant of shape", []*tensor.Tensor{f32(5, 4)}, func(b *onnx.Builder, in []onnx.Value) onnx.Value {
		return b.Op("ConstantOfShape", []onnx.Value{b.Op("Shape", in)})
	}},
	{"reduce sum", []*tensor.Tensor{f32(5, 4)}, withInts("ReduceSum", 0)},
	{"reduce mean", []*tensor.Tensor{f32(5, 4)}, withInts("ReduceMean", 1)},
	{"reduce max", []*tensor.Tensor{f32(5, 4, 3)}, withInts("ReduceMax", 0, 2)},
	{"softmax", []*tensor.Tensor{f32(5, 4)}, op("Softmax")},
	{"log-softmax", []*tensor.Tensor{f32(5, 4, 2)}, op("LogSoftmax", onnx.AttrInt("axis", 1))},
	{"layer norm", []*tensor.Tensor{f32(5, 4), f32(4), f32(4)}, op("LayerNormalization")},
	{"conv", []*tensor.Tensor{f32(2, 4, 9), f32(8, 4, 3), f32(8)}, op("Conv", onnx.AttrInts("pads", 1, 1))},
	{"conv of one tap", []*tensor.Tensor{f32(2, 4, 9), f32(8, 4, 1)}, op("Conv")},
	{"max pool", []*tensor.Tensor{f32(2, 4, 8)}, op("MaxPool", onnx.AttrInts("kernel_shape", 2))},
	{"clip", []*tensor.Tensor{f32(5, 4)}, func(b *onnx.Builder, in []onnx.Value) onnx.Value {
		return b.Op("Clip", []onnx.Value{in[0], b.Float(-1), b.Float(1)})
	}},
}

func TestSteadyRunsDoNotAllocate(t *testing.T) {
	for _, c := range steadyOps {
		b := onnx.NewBuilder(c.name, onnx.DefaultOpset)
		var in []onnx.Value
		for i, x := range c.in {
			in = append(in, b.Input(string(rune('a'+i)), onnx.TypeOf(x.DType(), x.Shape()...)))
		}
		out := c.build(b, in)
		b.Output(out, onnx.TensorType{DType: tensor.Float32})
		if c.name == "shape" {
			b.Graph().Output[0] = onnx.NewValueInfo(out, onnx.TensorType{DType: tensor.Int64})
		}
		m, err := b.Model()
		if err != nil {
			t.Fatal(err)
		}
		s, err := portable.New().Compile(m, engine.Options{})
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		got := []*tensor.Tensor{nil}
		if err := s.Run(t.Context(), got, c.in); err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		bound, err := s.Bind(got, c.in)
		if err != nil {
			t.Fatal(err)
		}
		n := testing.AllocsPerRun(10, func() {
			if err := bound.Run(); err != nil {
				t.Fatalf("%s: %v", c.name, err)
			}
		})
		if n != 0 {
			t.Errorf("%s: %v allocations per run, expected 0", c.name, n)
		}
		if err := bound.Close(); err != nil {
			t.Error(err)
		}
	}
	if len(steadyOps) != 36 {
		t.Errorf("%d operators checked, expected 36", len(steadyOps))
	}
}
