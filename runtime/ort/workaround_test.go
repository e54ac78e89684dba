//go:build cgo

package ort

import (
	"context"
	"testing"

	"github.com/onnxrl/onnxrl/runtime/engine"
	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/ort/library"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

func TestNewFileFormatRuns(t *testing.T) {
	b := onnx.NewBuilder("new", 18)
	b.Output(b.Op("Neg", []onnx.Value{b.Input("x", onnx.TypeOf(tensor.Float32, 2))}), onnx.TypeOf(tensor.Float32, 2))
	m, err := b.Model()
	if err != nil {
		t.Fatal(err)
	}
	m.IrVersion = int64(onnx.Version_IR_VERSION)
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
	if m.IrVersion != int64(onnx.Version_IR_VERSION) || m.Opset("") != 27 {
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

// TestStatisticsAreNotWrittenOver runs a BatchNormalization in training mode on running statistics
// that are inputs of the graph, directly and through nodes that pass memory on.
func TestStatisticsAreNotWrittenOver(t *testing.T) {
	c, err := New(context.Background(), Options{Library: library.Options{AllowInstall: true}})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	ran := 0
	for _, through := range []string{"", "Identity", "Flatten"} {
		for outputs := 1; outputs <= 3; outputs++ {
			for _, level := range []engine.OptLevel{engine.OptAll, engine.OptExtended, engine.OptBasic, engine.OptNone} {
				b := onnx.NewBuilder("statistics", 17)
				in := []onnx.Value{
					b.Input("x", onnx.TypeOf(tensor.Float32, 4, 2)), b.Const(tensor.Of([]float32{1, 1}, 2)), b.Const(tensor.Of([]float32{0, 0}, 2)),
					b.Input("mean", onnx.TypeOf(tensor.Float32, 2)), b.Input("variance", onnx.TypeOf(tensor.Float32, 2)),
				}
				for i := 3; i < 5; i++ {
					switch through {
					case "Identity":
						in[i] = b.Op("Identity", in[i:i+1])
					case "Flatten":
						in[i] = b.Op("Reshape", []onnx.Value{b.Op("Flatten", in[i:i+1]), b.Ints(2)})
					}
				}
				out := b.OpN("BatchNormalization", "", 3, in, onnx.AttrInt("training_mode", 1))
				b.Output(out[0], onnx.TypeOf(tensor.Float32, 4, 2))
				for _, o := range out[1:outputs] {
					b.Output(o, onnx.TypeOf(tensor.Float32, 2))
				}
				m, err := b.Model()
				if err != nil {
					t.Fatal(err)
				}
				s, err := c.Compile(m, engine.Options{Optimize: level})
				if err != nil {
					t.Fatal(err)
				}
				mean, variance := tensor.Of([]float32{0, 0}, 2), tensor.Of([]float32{1, 1}, 2)
				got := make([]*tensor.Tensor, outputs)
				if err := s.Run(context.Background(), got, []*tensor.Tensor{tensor.Of([]float32{1, 2, 3, 4, 5, 6, 7, 9}, 4, 2), mean, variance}); err != nil {
					t.Fatal(err)
				}
				if mean.Float32s()[0] != 0 || mean.Float32s()[1] != 0 || variance.Float32s()[0] != 1 || variance.Float32s()[1] != 1 {
					t.Errorf("%q, %d outputs, level %v: the inputs are %v and %v after the run", through, outputs, level, mean.Float32s(), variance.Float32s())
				}
				if outputs > 1 && (got[1].Float32s()[0] < 0.39 || got[1].Float32s()[0] > 0.41) {
					t.Errorf("%q: running mean %v, expected 0.4", through, got[1].Float32s())
				}
				if err := s.Close(); err != nil {
					t.Fatal(err)
				}
				ran++
			}
		}
	}
	if ran != 36 {
		t.Errorf("%d cases", ran)
	}
}
