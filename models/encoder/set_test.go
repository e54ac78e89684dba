package encoder_test

import (
	"context"
	"math"
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/models/encoder"
	"github.com/onnxrl/onnxrl/models/encoder/encodertest"
	"github.com/onnxrl/onnxrl/models/layer"
	"github.com/onnxrl/onnxrl/runtime/engine"
	"github.com/onnxrl/onnxrl/runtime/engine/testengines"
	"github.com/onnxrl/onnxrl/runtime/rng"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

func smallSet(t *testing.T) *encoder.Set {
	t.Helper()
	e, err := encoder.NewSet(encoder.SetConfig{Members: 3, Features: 2, DModel: 4, NLayers: 1, NHeads: 2, FFMult: 2, Activation: "tanh"})
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func TestSet(t *testing.T) {
	r := encodertest.Run(t, encodertest.Suite{Encoder: smallSet(t), Engines: testengines.All(t), Shapes: [][]int{{12}, {17}}})
	if r.Features == 0 {
		t.Errorf("%+v", r)
	}
}

// TestSetMembers: who is not there changes nothing, and neither does the order.
func TestSetMembers(t *testing.T) {
	g := layer.New("set", rng.New(1), layer.Options{})
	z, err := smallSet(t).Build(g.In("encoder"), g.Observation("x", 13))
	if err != nil {
		t.Fatal(err)
	}
	g.Output("z", z)
	m, err := g.Model()
	if err != nil {
		t.Fatal(err)
	}
	rows := [][]float32{
		{1, 2, -3, 4, 0, 0 /**/, 1, 1, 0 /**/, 0, 1, 0, 9},
		{1, 2, -3, 4, 5, 6 /**/, 1, 1, 0 /**/, 0, 1, 0, 9}, // the third is not there
		{5, 6, -3, 4, 1, 2 /**/, 0, 1, 1 /**/, 0, 1, 0, 9}, // another order
		{1, 2, -3, 4, 0, 0 /**/, 1, 1, 1 /**/, 0, 1, 0, 9}, // the third is there
		{1, 2, -3, 4, 5, 6 /**/, 0, 0, 0 /**/, 0, 0, 0, 9}, // nobody is
	}
	x := tensor.New(tensor.Float32, len(rows), 13)
	for i, r := range rows {
		copy(x.Float32s()[i*13:], r)
	}
	for _, c := range testengines.All(t) {
		s, err := c.Compile(m, engine.Options{})
		if err != nil {
			t.Fatal(err)
		}
		in, out := make([]*tensor.Tensor, len(s.Inputs())), make([]*tensor.Tensor, 1)
		for i, p := range s.Inputs() {
			if p.Name == "x" {
				in[i] = x
				continue
			}
			t.Fatalf("input %v", p)
		}
		if err := s.Run(context.Background(), out, in); err != nil {
			t.Fatal(err)
		}
		row := func(i int) []float32 { return out[0].Float32s()[i*9 : (i+1)*9] }
		apart := func(a, b []float32) (d float64) {
			for i := range a {
				d = max(d, math.Abs(float64(a[i]-b[i])))
			}
			return d
		}
		if d := apart(row(0), row(1)); d > 1e-6 {
			t.Errorf("who is not there changes the result by %g", d)
		}
		if d := apart(row(0), row(2)); d > 1e-5 {
			t.Errorf("the order changes the result by %g", d)
		}
		if d := apart(row(0), row(3)); d < 1e-4 {
			t.Errorf("another member changes the result by %g only", d)
		}
		for i, v := range row(4)[:8] {
			if v != 0 {
				t.Errorf("without members element %d is %g", i, v)
			}
		}
		if v := row(4)[8]; v != 9 {
			t.Errorf("the rest is %g", v)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestSetRefuses(t *testing.T) {
	g := layer.New("set", rng.New(1), layer.Options{})
	if _, err := smallSet(t).Build(g, g.Observation("x", 11)); err == nil || !strings.Contains(err.Error(), "expected at least 12") {
		t.Errorf("%v", err)
	}
	if _, err := encoder.NewSet(encoder.SetConfig{DModel: 3, NHeads: 2}); err == nil || !strings.Contains(err.Error(), "n_heads") {
		t.Errorf("%v", err)
	}
}
