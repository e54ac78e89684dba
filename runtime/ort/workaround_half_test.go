//go:build cgo

package ort

import (
	"context"
	"testing"

	"github.com/onnxrl/onnxrl/runtime/engine"
	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/ort/library"
	"github.com/onnxrl/onnxrl/runtime/sorted"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// TestHalfPrecisionAttentionCompiles: a part of a transformer that PyTorch has exported in float16,
// cut down to what still crashed ONNX Runtime 1.27 and 1.32 while it was optimised.
func TestHalfPrecisionAttentionCompiles(t *testing.T) {
	m, err := onnx.Load("testdata/float16_attention.onnx")
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
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// TestHalfPrecisionIsTold: float16 weights that are widened before use do not count.
func TestHalfPrecisionIsTold(t *testing.T) {
	half := tensor.New(tensor.Float16, 2, 2)
	for name, c := range sorted.All(map[string]struct {
		build func(b *onnx.Builder) onnx.Value
		want  engine.OptLevel
	}{
		"float32": {func(b *onnx.Builder) onnx.Value { return b.Input("x", onnx.TypeOf(tensor.Float32, 2, 2)) }, engine.OptAll},
		"widened weights": {func(b *onnx.Builder) onnx.Value {
			w := b.Op("Cast", []onnx.Value{b.Initializer("w", half)}, onnx.AttrInt("to", int(tensor.Float32)))
			return b.Op("MatMul", []onnx.Value{b.Input("x", onnx.TypeOf(tensor.Float32, 2, 2)), w})
		}, engine.OptAll},
		"a product in float16": {func(b *onnx.Builder) onnx.Value {
			x := b.Op("CastLike", []onnx.Value{b.Input("x", onnx.TypeOf(tensor.Float32, 2, 2)), b.Initializer("w", half)})
			return b.Op("Cast", []onnx.Value{b.Op("MatMul", []onnx.Value{x, "w"})}, onnx.AttrInt("to", int(tensor.Float32)))
		}, engine.OptExtended},
		"an input of bfloat16": {func(b *onnx.Builder) onnx.Value {
			return b.Op("Cast", []onnx.Value{b.Input("x", onnx.TypeOf(tensor.BFloat16, 2, 2))}, onnx.AttrInt("to", int(tensor.Float32)))
		}, engine.OptExtended},
	}) {
		b := onnx.NewBuilder("half", 18)
		b.Output(b.Op("Neg", []onnx.Value{c.build(b)}), onnx.TypeOf(tensor.Float32, 2, 2))
		m, err := b.Model()
		if err != nil {
			t.Fatal(err)
		}
		if got := levelFor(m, engine.OptAll); got != c.want {
			t.Errorf("%s: level %d, want %d", name, got, c.want)
		}
		if got := levelFor(m, engine.OptNone); got != engine.OptNone {
			t.Errorf("%s: the level that was asked for has changed to %d", name, got)
		}
	}
}
