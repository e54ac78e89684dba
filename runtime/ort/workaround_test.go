//go:build cgo

package ort

import (
	"context"
	"testing"

	"onnxrl/runtime/engine"
	"onnxrl/runtime/onnx"
	"onnxrl/runtime/ort/library"
	"onnxrl/runtime/tensor"
)

func TestNewFileFormatRuns(t *testing.T) {
	b := onnx.NewBuilder("new", 18)
	b.Output(b.Op("Neg", []onnx.Value{b.Input("x", onnx.TypeOf(tensor.Float32, 2))}), onnx.TypeOf(tensor.Float32, 2))
	m, err := b.Model()
	if err != nil {
		t.Fatal(err)
	}
	m.IrVersion = 99
	m.SetOpset("", 27)
	c, err := New(context.Background(), Options{Library: library.Options{AllowInstall: true}})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	s, err := c.Compile(m, engine.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	out := make([]*tensor.Tensor, 1)
	if err := s.Run(context.Background(), out, []*tensor.Tensor{tensor.Of([]float32{1, 2}, 2)}); err != nil || out[0].Float32s()[1] != -2 {
		t.Errorf("%v, %v", out, err)
	}
	if m.IrVersion != 99 || m.Opset("") != 27 {
		t.Error("the caller's model has changed")
	}
}

func TestSplitWithAbsentOutputsRuns(t *testing.T) {
	b := onnx.NewBuilder("split", 18)
	x := b.Input("x", onnx.TypeOf(tensor.Float32, 4))
	b.Append(&onnx.Node{OpType: "Split", Input: []string{string(x), string(b.Ints(1, 3))}, Output: []string{"", "tail"}})
	b.Output("tail", onnx.TypeOf(tensor.Float32, 3))
	m, err := b.Model()
	if err != nil {
		t.Fatal(err)
	}
	c, err := New(context.Background(), Options{Library: library.Options{AllowInstall: true}})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	s, err := c.Compile(m, engine.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	out := make([]*tensor.Tensor, 1)
	if err := s.Run(context.Background(), out, []*tensor.Tensor{tensor.Of([]float32{1, 2, 3, 4}, 4)}); err != nil {
		t.Fatal(err)
	}
	if got := out[0].Float32s(); len(got) != 3 || got[0] != 2 || got[2] != 4 {
		t.Errorf("tail is %v", got)
	}
	if m.Graph.Node[0].Output[0] != "" {
		t.Error("the caller's model has changed")
	}
}
