//go:build cgo

package ort_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/runtime/engine"
	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// Extents that follow from data may be zero, where kernels divide by them.
func TestEmptyByData(t *testing.T) {
	e := open(t)
	defer e.Close()
	one := func(b *onnx.Builder, op string, in []onnx.Value, attrs ...*onnx.Attribute) []onnx.Value {
		return []onnx.Value{b.Op(op, in, attrs...)}
	}
	cases := []struct {
		name  string
		build func(b *onnx.Builder, indices onnx.Value) []onnx.Value // of float32 indices [1, n]
	}{
		{"LpNormalization", func(b *onnx.Builder, x onnx.Value) []onnx.Value { return one(b, "LpNormalization", []onnx.Value{x}) }},
		{"TopK", func(b *onnx.Builder, x onnx.Value) []onnx.Value {
			return b.OpN("TopK", "", 2, []onnx.Value{b.Op("Transpose", []onnx.Value{x}), b.Const(tensor.Of([]int64{1}, 1))})
		}},
		{"Unique", func(b *onnx.Builder, x onnx.Value) []onnx.Value {
			return one(b, "Unique", []onnx.Value{x}, onnx.AttrInt("axis", 0))
		}},
		{"InstanceNormalization", func(b *onnx.Builder, x onnx.Value) []onnx.Value {
			y := b.Op("Unsqueeze", []onnx.Value{x, b.Const(tensor.Of([]int64{0}, 1))})
			one := b.Const(tensor.Of([]float32{1}, 1))
			return []onnx.Value{b.Op("InstanceNormalization", []onnx.Value{y, one, one})}
		}},
		{"LSTM", func(b *onnx.Builder, x onnx.Value) []onnx.Value {
			y := b.Op("Unsqueeze", []onnx.Value{b.Op("Transpose", []onnx.Value{x}), b.Const(tensor.Of([]int64{0}, 1))})
			return one(b, "LSTM", []onnx.Value{y, b.Const(tensor.New(tensor.Float32, 1, 8, 1)), b.Const(tensor.New(tensor.Float32, 1, 8, 2))}, onnx.AttrInt("hidden_size", 2))
		}},
	}
	for _, c := range cases {
		b := onnx.NewBuilder(c.name, 18)
		x := b.Input("x", onnx.TypeOf(tensor.Float32, 4))
		found := b.Op("Cast", []onnx.Value{b.Op("NonZero", []onnx.Value{x})}, onnx.AttrInt("to", int(tensor.Float32)))
		b.Output(c.build(b, found)[0], onnx.TensorType{DType: tensor.Float32})
		m, err := b.Model()
		if err != nil {
			t.Fatal(err)
		}
		// Names that a file gives to extents do not make them known.
		m.Graph.ValueInfo = []*onnx.ValueInfo{onnx.NewValueInfo(found, onnx.TensorType{DType: tensor.Float32, Ranked: true, Dims: []onnx.Dim{onnx.Known(1), onnx.Symbol("detections")}})}
		s, err := e.Compile(m, engine.Options{})
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		run := func(v ...float32) error {
			return s.Run(context.Background(), make([]*tensor.Tensor, 1), []*tensor.Tensor{tensor.Of(v, 4)})
		}
		if err := run(0, 1, 2, 0); err != nil {
			t.Errorf("%s of some: %v", c.name, err)
		}
		if err := run(0, 0, 0, 0); !errors.Is(err, engine.ErrNoElements) || !strings.Contains(err.Error(), c.name) {
			t.Errorf("%s of none: %v, expected %v", c.name, err, engine.ErrNoElements)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}

// The shapes of a run are checked before it, where the model leaves them open, and the inputs are
// named.
func TestShapesOfARun(t *testing.T) {
	e := open(t)
	defer e.Close()
	b := onnx.NewBuilder("open", 18)
	free := func(n int) onnx.TensorType {
		ty := onnx.TensorType{DType: tensor.Float32, Ranked: true}
		for range n {
			ty.Dims = append(ty.Dims, onnx.Symbol(""))
		}
		return ty
	}
	x, w, r := b.Input("x", free(3)), b.Input("w", free(3)), b.Input("r", free(3))
	b.Output(b.OpN("LSTM", "", 1, []onnx.Value{x, w, r}, onnx.AttrInt("hidden_size", 2))[0], free(4))
	m, err := b.Model()
	if err != nil {
		t.Fatal(err)
	}
	s, err := e.Compile(m, engine.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	run := func(x, w, r []int) error {
		in := []*tensor.Tensor{tensor.New(tensor.Float32, x...), tensor.New(tensor.Float32, w...), tensor.New(tensor.Float32, r...)}
		err := s.Run(context.Background(), make([]*tensor.Tensor, 1), in)
		out := tensor.New(tensor.Float32, x[0], 1, x[1], 2)
		bound, bindErr := s.Bind([]*tensor.Tensor{out}, in)
		if bindErr == nil {
			bound.Close()
		}
		if (err == nil) != (bindErr == nil) {
			t.Errorf("x %v, w %v, r %v: run %v, bind %v", x, w, r, err, bindErr)
		}
		return err
	}
	for range 2 {
		if err := run([]int{3, 1, 4}, []int{1, 8, 4}, []int{1, 8, 2}); err != nil {
			t.Error(err)
		}
		for _, c := range [][3][]int{
			{{3, 1, 4}, {1, 8, 3}, {1, 8, 2}}, {{3, 1, 4}, {1, 7, 4}, {1, 8, 2}}, {{3, 1, 4}, {1, 8, 4}, {1, 1, 2}}, {{3, 0, 4}, {1, 8, 4}, {1, 8, 2}},
		} {
			err := run(c[0], c[1], c[2])
			if !errors.As(err, new(*engine.ShapeError)) || !strings.Contains(err.Error(), "LSTM") || !strings.Contains(err.Error(), `"w" float32`) {
				t.Errorf("x %v, w %v, r %v: %v, expected a ShapeError", c[0], c[1], c[2], err)
			}
		}
	}
}
