package program

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/models"
	"github.com/onnxrl/onnxrl/runtime/autodiff"
	"github.com/onnxrl/onnxrl/runtime/engine"
	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// programOf compiles a model with the output "loss" for 12 rows.
func programOf(t *testing.T, c engine.Compiler, m *onnx.Model, shards int, gradients []*models.Segment) (*Program, *models.Params, error) {
	t.Helper()
	net, values, err := models.FromModel(m, models.Options{})
	if err != nil {
		t.Fatal(err)
	}
	params, err := models.NewParams(net, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := params.Close(); err != nil {
			t.Error(err)
		}
	})
	if err := params.Load(values); err != nil {
		t.Fatal(err)
	}
	p, err := New(net, params, Config{
		Engine: c, Batch: 12, BatchSymbol: "batch", Shards: shards, Gradients: gradients,
		Objectives: []autodiff.Objective{{Losses: []autodiff.Loss{{Value: "loss"}}}},
	})
	if err == nil {
		t.Cleanup(func() {
			if err := p.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	return p, params, err
}

// lookup is a network of integers only: Σ rows of f(table[x]).
func lookup(t *testing.T, f func(b *onnx.Builder, h onnx.Value) onnx.Value) *onnx.Model {
	t.Helper()
	b := onnx.NewBuilder("lookup", 18)
	x := b.Input("x", onnx.TensorType{DType: tensor.Int64, Ranked: true, Dims: []onnx.Dim{onnx.Symbol("batch"), onnx.Known(3)}})
	table := tensor.New(tensor.Float32, 7, 2)
	for i := range table.Float32s() {
		table.Float32s()[i] = float32(math.Sin(float64(i)))
	}
	h := f(b, b.Op("Gather", []onnx.Value{b.Initializer("table", table), x}))
	loss := b.Rename(b.Op("ReduceSum", []onnx.Value{h}, onnx.AttrInt("keepdims", 0)), "loss")
	b.Output(loss, onnx.TypeOf(tensor.Float32))
	m, err := b.Model()
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestRowsThatDependOnEachOtherAreFoundAmongIntegers(t *testing.T) {
	engines(t, func(t *testing.T, c engine.Compiler) {
		square := lookup(t, func(b *onnx.Builder, h onnx.Value) onnx.Value { return b.Op("Mul", []onnx.Value{h, h}) })
		if _, _, err := programOf(t, c, square, 3, nil); err != nil {
			t.Error(err)
		}
		// A softmax over the batch makes rows compete, which equal rows would hide.
		compete := lookup(t, func(b *onnx.Builder, h onnx.Value) onnx.Value {
			s := b.Op("Softmax", []onnx.Value{h}, onnx.AttrInt("axis", 0))
			return b.Op("Mul", []onnx.Value{s, s})
		})
		if _, _, err := programOf(t, c, compete, 3, nil); !errors.Is(err, ErrNotSeparable) {
			t.Errorf("error %v, want ErrNotSeparable", err)
		}
	})
}

// TestLogarithmsCanBeProved: on negative numbers the graph gives NaN, on which nothing can be
// compared.
func TestLogarithmsCanBeProved(t *testing.T) {
	build := func(op string) *onnx.Model {
		b := onnx.NewBuilder("log", 18)
		x := b.Input("x", onnx.TensorType{DType: tensor.Float32, Ranked: true, Dims: []onnx.Dim{onnx.Symbol("batch"), onnx.Known(3)}})
		w := tensor.Of([]float32{0.5, -0.25, 1}, 3)
		h := b.Op("Mul", []onnx.Value{b.Op("Log", []onnx.Value{x}), b.Initializer("w", w)})
		b.Output(b.Rename(b.Op(op, []onnx.Value{b.Op("Mul", []onnx.Value{h, h})}, onnx.AttrInt("keepdims", 0)), "loss"), onnx.TypeOf(tensor.Float32))
		m, err := b.Model()
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	engines(t, func(t *testing.T, c engine.Compiler) {
		if _, _, err := programOf(t, c, build("ReduceSum"), 2, nil); err != nil {
			t.Error(err)
		}
		if _, _, err := programOf(t, c, build("ReduceMean"), 2, nil); !errors.Is(err, ErrNotSeparable) {
			t.Errorf("error %v, want ErrNotSeparable", err)
		}
	})
}

func TestProgramsShareGradientSegments(t *testing.T) {
	engines(t, func(t *testing.T, c engine.Compiler) {
		own, params, err := programOf(t, c, mlp(t, false), 2, nil)
		if err != nil {
			t.Fatal(err)
		}
		grads, err := params.Segment(models.Trainable).Like()
		if err != nil {
			t.Fatal(err)
		}
		for _, shards := range []int{1, 2} {
			p, _, err := programOf(t, c, mlp(t, false), shards, []*models.Segment{grads})
			if err != nil {
				t.Fatal(err)
			}
			if p.Gradients(0) != grads {
				t.Fatal("the gradients are not where they were asked for")
			}
			clear(grads.Floats())
			fillBatch(p)
			fillBatch(own)
			if err := errors.Join(p.Run(), own.Run()); err != nil {
				t.Fatal(err)
			}
			if shards == 2 && !slices.Equal(grads.Floats(), own.Gradients(0).Floats()) {
				t.Error("shared and own gradients differ")
			}
			if _, bad := differs(own.Gradients(0).Floats(), grads.Floats()); bad {
				t.Errorf("%d shards: the gradients differ", shards)
			}
		}
		// Closing a program only gives up its hold.
		if err := grads.Close(); err != nil {
			t.Error(err)
		}
		wrong, err := models.NewSegment(models.Trainable, []models.Spec{{Name: "w", Shape: []int{3}}})
		if err != nil {
			t.Fatal(err)
		}
		defer wrong.Close()
		if _, _, err := programOf(t, c, mlp(t, false), 1, []*models.Segment{wrong}); err == nil || !strings.Contains(err.Error(), "not in the layout of the trainable parameters") {
			t.Errorf("error %v", err)
		}
	})
}

// TestShapesFromDataAreNotSeparable: how many elements there are may depend on the batch as a
// whole, which a random batch need not show.
func TestShapesFromDataAreNotSeparable(t *testing.T) {
	engines(t, func(t *testing.T, c engine.Compiler) {
		m := lookup(t, func(b *onnx.Builder, h onnx.Value) onnx.Value {
			at := b.Op("NonZero", []onnx.Value{b.Op("Greater", []onnx.Value{h, b.Float(-1000)})})
			return b.Op("GatherND", []onnx.Value{h, b.Op("Transpose", []onnx.Value{at})})
		})
		if _, _, err := programOf(t, c, m, 1, nil); err != nil {
			t.Error(err)
		}
		_, _, err := programOf(t, c, m, 3, nil)
		if !errors.Is(err, ErrNotSeparable) || !strings.Contains(err.Error(), "depends on the data") {
			t.Errorf("error %v, want ErrNotSeparable", err)
		}
	})
}
