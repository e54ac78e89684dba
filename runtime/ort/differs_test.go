//go:build cgo

package ort

import (
	"context"
	"fmt"
	"math"
	"os"
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/runtime/engine"
	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/ort/library"
	"github.com/onnxrl/onnxrl/runtime/portable"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// difference is a row of the page's table, and what both engines give there. The pure-Go engine
// computes what the specification says; an empty text is where it computes nothing.
type difference struct {
	row, op   string
	opset     int
	in        []*tensor.Tensor
	out       tensor.DType
	attr      *onnx.Attribute
	ort, spec string
}

func differences() []difference {
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	f := func(v ...float32) *tensor.Tensor { return tensor.Of(v, len(v)) }
	k := func(v ...int64) *tensor.Tensor { return tensor.Of(v, len(v)) }
	one := func(x ...*tensor.Tensor) []*tensor.Tensor { return x }
	scalar := onnx.AttrInt("keepdims", 0)
	to := func(d tensor.DType) *onnx.Attribute { return onnx.AttrInt("to", int(d)) }
	return []difference{
		{"NaN in ReduceMax and ReduceMin", "ReduceMax", 13, one(f(1, nan, 2)), tensor.Float32, scalar, "[2]", "[NaN]"},
		{"NaN in ReduceMax and ReduceMin", "ReduceMin", 13, one(f(1, 2, nan)), tensor.Float32, scalar, "[1]", "[NaN]"},
		{"NaN in ReduceMax and ReduceMin", "ReduceMax", 13, one(f(nan, 1, 2)), tensor.Float32, scalar, "[NaN]", "[NaN]"},
		{"NaN in MaxPool", "MaxPool", 12, one(tensor.Of([]float32{1, nan, 2, 3}, 1, 1, 4)), tensor.Float32, onnx.AttrInts("kernel_shape", 2), "[1 2 3]", "[NaN NaN 3]"},
		{"Pow of int64", "Pow", 15, one(k(3, 3037000499), k(35, 2)), tensor.Int64, nil, "[50031545098999704 9223372030926248960]", "[50031545098999707 9223372030926249001]"},
		{"Infinity to a FNUZ float8", "Cast", 19, one(f(inf, -inf)), tensor.Float8E4M3FNUZ, to(tensor.Float8E4M3FNUZ), "7fff", ""},
		{"Infinity to a FNUZ float8", "Cast", 19, one(f(inf, -inf)), tensor.Float8E5M2FNUZ, to(tensor.Float8E5M2FNUZ), "7fff", ""},
		{"Denormal numbers", "Add", 14, one(f(1e-40, 1e-38), f(1e-40, -0.9e-38)), tensor.Float32, nil, "[0 0]", "[1.99999e-40 9.99999e-40]"},
		{"Sigmoid below −18", "Sigmoid", 13, one(f(-20, -90)), tensor.Float32, nil, "[0 0]", "[2.0611537e-09 8.19401e-40]"},
		{"ReduceMean of large numbers", "ReduceMean", 13, one(f(3e38, 3e38)), tensor.Float32, scalar, "[+Inf]", "[3e+38]"},
	}
}

// TestDifferencesFromTheSpecification runs both engines where ONNX Runtime is known to give something
// else, and finds each row on the page that says so. A release that has changed fails here.
func TestDifferencesFromTheSpecification(t *testing.T) {
	page, err := os.ReadFile("../../docs/evidence/verification.md")
	if err != nil {
		t.Fatal(err)
	}
	c, err := New(context.Background(), Options{Library: library.Options{AllowInstall: true}})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for _, d := range differences() {
		if !strings.Contains(string(page), "| "+d.row+" |") {
			t.Errorf("the page has no row %q", d.row)
		}
		if got := d.run(t, c); got != d.ort {
			t.Errorf("%s: ONNX Runtime gives %s, the page says %s", d.row, got, d.ort)
		}
		if d.spec == "" {
			continue
		}
		if got := d.run(t, portable.New()); got != d.spec {
			t.Errorf("%s: the pure-Go engine gives %s, expected %s", d.row, got, d.spec)
		}
	}
}

func (d *difference) run(t *testing.T, e engine.Compiler) string {
	t.Helper()
	b := onnx.NewBuilder(d.row, d.opset)
	var in []onnx.Value
	for i, x := range d.in {
		in = append(in, b.Input(fmt.Sprintf("x%d", i), onnx.TypeOf(x.DType(), x.Shape()...)))
	}
	var attrs []*onnx.Attribute
	if d.attr != nil {
		attrs = append(attrs, d.attr)
	}
	b.Output(b.Op(d.op, in, attrs...), onnx.TensorType{DType: d.out})
	m, err := b.Model()
	if err != nil {
		t.Fatal(err)
	}
	s, err := e.Compile(m, engine.Options{})
	if err != nil {
		t.Fatalf("%s: %v", d.row, err)
	}
	defer s.Close()
	out := make([]*tensor.Tensor, 1)
	if err := s.Run(context.Background(), out, d.in); err != nil {
		t.Fatalf("%s: %v", d.row, err)
	}
	switch d.out {
	case tensor.Float32:
		return fmt.Sprint(out[0].Float32s())
	case tensor.Int64:
		return fmt.Sprint(out[0].Int64s())
	}
	return fmt.Sprintf("%x", out[0].Bytes())
}
