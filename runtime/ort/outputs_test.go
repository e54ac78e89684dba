//go:build cgo

package ort_test

import (
	"path/filepath"
	"slices"
	"testing"

	"github.com/onnxrl/onnxrl/runtime/engine"
	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// TestOptimizedFileKeepsNames: an output that is an input has its name in the file of the optimised
// graph, too, and its value in the session that writes it.
func TestOptimizedFileKeepsNames(t *testing.T) {
	e := open(t)
	defer e.Close()
	b := onnx.NewBuilder("passed", onnx.DefaultOpset)
	x := b.Input("x", onnx.TypeOf(tensor.Float32, 2))
	b.Output(x, onnx.TypeOf(tensor.Float32, 2))
	b.Output(b.Rename(b.Op("Neg", []onnx.Value{x}), "y"), onnx.TypeOf(tensor.Float32, 2))
	m, err := b.Model()
	if err != nil {
		t.Fatal(err)
	}
	nodes := len(m.Graph.Node)
	path := filepath.Join(t.TempDir(), "optimized.onnx")
	s, err := e.Compile(m, engine.Options{Optimized: path})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	out := []*tensor.Tensor{tensor.New(tensor.Float32, 2), tensor.New(tensor.Float32, 2)}
	if err := s.Run(t.Context(), out, []*tensor.Tensor{tensor.Of([]float32{1, 2}, 2)}); err != nil || !slices.Equal(out[0].Float32s(), []float32{1, 2}) {
		t.Errorf("%v, %v", out[0].Float32s(), err)
	}
	written, err := onnx.Load(path)
	if err != nil {
		t.Fatal(err)
	}
	if o := written.Graph.Output; len(o) != 2 || o[0].Name != "x" || o[1].Name != "y" {
		t.Errorf("the outputs of the file are %v", o)
	}
	if m.Graph.Output[0].Name != "x" || len(m.Graph.Node) != nodes {
		t.Error("the caller's model has changed")
	}
}
