//go:build cgo

package ort

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/onnxrl/onnxrl/runtime/engine"
	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/ort/library"
	"github.com/onnxrl/onnxrl/runtime/portable"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// TestCeilPools runs pools with ceil_mode whose last window would begin outside, in versions where
// ONNX Runtime infers one element too many: as outputs of the graph, through Shape, and behind a
// free batch.
func TestCeilPools(t *testing.T) {
	c, err := New(context.Background(), Options{Library: library.Options{AllowInstall: true}})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	ran := 0
	for _, op := range []string{"MaxPool", "AveragePool", "LpPool"} {
		for _, opset := range []int{12, 18, 21, 22} {
			if op == "LpPool" && opset < 18 {
				continue // without ceil_mode
			}
			for _, free := range []bool{false, true} {
				for _, second := range []string{"whole", "partial", "counted", "unknown"} { // the last window of the second axis
					if second == "counted" && op != "AveragePool" {
						continue
					}
					name := fmt.Sprintf("%s %d, free %v, second axis %s", op, opset, free, second)
					b := onnx.NewBuilder("pool", opset)
					typ := onnx.TypeOf(tensor.Float32, 1, 1, 4, 6)
					kernel, pads, want := []int{1, 1}, []int{0, 0, 0, 0}, []int{1, 1, 2, 3}
					attrs := []*onnx.Attribute{onnx.AttrInts("strides", 2, 2), onnx.AttrInt("ceil_mode", 1)}
					if second != "whole" {
						kernel, want = []int{1, 3}, []int{1, 1, 2, 3}
					}
					if second == "counted" {
						kernel, pads = []int{1, 2}, []int{0, 1, 0, 0}
						want[3] = 4
						attrs = append(attrs, onnx.AttrInt("count_include_pad", 1))
					}
					if second == "unknown" {
						typ.Dims[3] = onnx.Symbol("W")
					}
					if free {
						typ.Dims[0] = onnx.Symbol("N")
					}
					x := b.Input("x", typ)
					y := b.Op(op, []onnx.Value{x}, append(attrs, onnx.AttrInts("kernel_shape", kernel...), onnx.AttrInts("pads", pads...))...)
					size := b.Op("Shape", []onnx.Value{y})
					flat := b.Op("Reshape", []onnx.Value{y, b.Op("Concat", []onnx.Value{b.Op("Shape", []onnx.Value{y}), b.Ints(1)}, onnx.AttrInt("axis", 0))})
					out := onnx.TensorType{DType: tensor.Float32, Ranked: true, Dims: []onnx.Dim{onnx.Symbol(""), onnx.Symbol(""), onnx.Symbol(""), onnx.Symbol("")}}
					b.Output(y, out)
					b.Output(size, onnx.TypeOf(tensor.Int64, 4))
					b.Output(flat, onnx.TensorType{DType: tensor.Float32})
					m, err := b.Model()
					if err != nil {
						t.Fatal(err)
					}
					in := []*tensor.Tensor{tensor.New(tensor.Float32, 1, 1, 4, 6)}
					for i := range in[0].Float32s() {
						in[0].Float32s()[i] = float32(i + 1)
					}
					var results [2][]*tensor.Tensor
					for i, e := range []engine.Compiler{c, portable.New()} {
						s, err := e.Compile(m, engine.Options{})
						if err != nil {
							t.Fatal(err)
						}
						results[i] = make([]*tensor.Tensor, 3)
						if err := s.Run(context.Background(), results[i], in); err != nil {
							t.Errorf("%s: %s: %v", name, e.Name(), err)
						}
						if err := s.Close(); err != nil {
							t.Fatal(err)
						}
					}
					for i, o := range results[0] {
						if p := results[1][i]; o == nil || !slices.Equal(o.Shape(), p.Shape()) || !slices.Equal(o.Bytes(), p.Bytes()) {
							t.Errorf("%s: output %d is %v, portable %v", name, i, o, p)
						}
					}
					if got := results[1][0].Shape(); !slices.Equal(got, want) {
						t.Errorf("%s: %v, expected %v", name, got, want)
					}
					ran++
				}
			}
		}
	}
	if ran != 74 {
		t.Errorf("%d cases", ran)
	}
}
