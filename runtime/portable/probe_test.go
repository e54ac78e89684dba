package portable_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/runtime/engine"
	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/portable"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// TestRefusedWhenLoaded compiles nodes whose kernels do not take the types of their inputs: that is an
// error of the compilation, and names the node, in sub-graphs too. What runs is let through.
func TestRefusedWhenLoaded(t *testing.T) {
	t.Parallel()
	batch := onnx.TensorType{DType: tensor.Float32, Ranked: true, Dims: []onnx.Dim{onnx.Symbol("N"), onnx.Known(3)}}
	of := func(d tensor.DType) onnx.TensorType { c := batch; c.DType = d; return c }
	cast := func(b *onnx.Builder, v onnx.Value, to tensor.DType) onnx.Value {
		return b.Op("Cast", []onnx.Value{v}, onnx.AttrInt("to", int(to)))
	}
	inner := func(to tensor.DType) *onnx.Graph {
		return &onnx.Graph{Name: "branch", Output: []*onnx.ValueInfo{{Name: "b" + to.String()}},
			Node: []*onnx.Node{
				{Name: "inner", OpType: "Cast", Input: []string{"x"}, Output: []string{"c" + to.String()}, Attribute: []*onnx.Attribute{onnx.AttrInt("to", int(to))}},
				{OpType: "Cast", Input: []string{"c" + to.String()}, Output: []string{"b" + to.String()}, Attribute: []*onnx.Attribute{onnx.AttrInt("to", int(tensor.Float32))}},
			}}
	}
	cases := []struct {
		name   string
		input  onnx.TensorType
		build  func(b *onnx.Builder, x onnx.Value) onnx.Value
		output tensor.DType
		want   string // "" where it runs
	}{
		{"to float8", batch, func(b *onnx.Builder, x onnx.Value) onnx.Value {
			return cast(b, cast(b, x, tensor.Float8E4M3FN), tensor.Float32)
		}, tensor.Float32, `node "Cast" (Cast): converting to float8e4m3fn`},
		{"to int4", batch, func(b *onnx.Builder, x onnx.Value) onnx.Value {
			return cast(b, cast(b, x, tensor.Int4), tensor.Float32)
		}, tensor.Float32, "converting to int4"},
		{"to uint8", batch, func(b *onnx.Builder, x onnx.Value) onnx.Value {
			return cast(b, cast(b, x, tensor.Uint8), tensor.Float32)
		}, tensor.Float32, ""},
		{"to float16", batch, func(b *onnx.Builder, x onnx.Value) onnx.Value {
			return cast(b, b.Op("Relu", []onnx.Value{cast(b, x, tensor.Float16)}), tensor.Float32)
		}, tensor.Float32, ""},
		{"from float8", batch, func(b *onnx.Builder, x onnx.Value) onnx.Value {
			return b.Op("DequantizeLinear", []onnx.Value{b.Input("q", of(tensor.Float8E5M2)), b.Float(1)})
		}, tensor.Float32, "(DequantizeLinear): converting float8e5m2 to float64"},
		{"from int8", batch, func(b *onnx.Builder, x onnx.Value) onnx.Value {
			return b.Op("DequantizeLinear", []onnx.Value{b.Input("q", of(tensor.Int8)), b.Float(1)})
		}, tensor.Float32, ""},
		{"text", of(tensor.String), func(b *onnx.Builder, x onnx.Value) onnx.Value { return cast(b, x, tensor.Float32) }, tensor.Float32, ""},
		{"in a branch", batch, func(b *onnx.Builder, x onnx.Value) onnx.Value {
			return b.Op("If", []onnx.Value{b.Input("k", onnx.TypeOf(tensor.Bool))}, onnx.AttrGraph("then_branch", inner(tensor.Uint8)), onnx.AttrGraph("else_branch", inner(tensor.Float8E5M2)))
		}, tensor.Float32, `node "inner" (Cast): converting to float8e5m2`},
	}
	for _, c := range cases {
		b := onnx.NewBuilder(c.name, 19)
		y := c.build(b, b.Input("x", c.input))
		b.Output(y, of(c.output))
		m, err := b.Model()
		if err != nil {
			t.Fatal(err)
		}
		e := portable.New()
		s, err := e.Compile(m, engine.Options{})
		if err == nil {
			err = s.Close()
		}
		u := new(engine.UnsupportedError)
		switch {
		case c.want == "" && err != nil:
			t.Errorf("%s: %v", c.name, err)
		case c.want != "" && (!errors.As(err, &u) || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%s: %v, expected %q", c.name, err, c.want)
		}
	}
}
