package bake

import (
	"math"
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/runtime/engine/testengines"
	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// scaledPolicy multiplies its observation, which is its log-probabilities, or a mean and a
// deviation, by a number.
func scaledPolicy(t *testing.T, by float32, outputs ...string) *onnx.Model {
	t.Helper()
	b := onnx.NewBuilder("policy", 17)
	row := onnx.TensorType{DType: tensor.Float32, Ranked: true, Dims: []onnx.Dim{onnx.Symbol("n"), onnx.Known(2)}}
	x := b.Input("x", row)
	for _, name := range outputs {
		y := b.Op("Mul", []onnx.Value{x, b.Float(by)})
		if name == "action_log_std" {
			y = b.Op("Mul", []onnx.Value{x, b.Float(0)})
		}
		b.Output(b.Rename(y, name), row)
	}
	m, err := b.Model()
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// TestLossesOfPolicies compares with what the formulas give.
func TestLossesOfPolicies(t *testing.T) {
	near := func(what string, have *float64, want float64) {
		t.Helper()
		if have == nil || math.Abs(*have-want) > 1e-6*(1+want) {
			t.Errorf("%s: %v, expected %g", what, have, want)
		}
	}
	cases := 0
	for _, c := range testengines.All(t) {
		// Two rows of two alternatives; the second row has a masked one.
		l, err := NewLosses(c, scaledPolicy(t, 1, "log_probs"), scaledPolicy(t, 2, "log_probs"),
			LossPolicy{Choices: []Choice{{Output: "action", Scores: "log_probs", Heads: []int{2}}}, LogProbs: "log_probs"})
		if err != nil {
			t.Fatal(err)
		}
		p, q := math.Log(0.25), math.Log(0.75)
		x := tensor.Of([]float32{float32(p), float32(q), 0, float32(math.Inf(-1))}, 2, 2)
		if err := l.Add(t.Context(), map[string]*tensor.Tensor{"x": x}, nil); err != nil {
			t.Fatal(err)
		}
		want := -(0.25*p + 0.75*q) // Σ p (log p − 2 log p)
		got := l.Loss()
		near("mean KL", got.KL, want/2)
		near("largest KL", got.MaxKL, want)
		if got.MaxAction != nil {
			t.Errorf("%+v", got)
		}
		if err := l.Close(); err != nil {
			t.Error(err)
		}
		names := []string{"action", "action_mean", "action_log_std"}
		l, err = NewLosses(c, scaledPolicy(t, 1, names...), scaledPolicy(t, 1.5, names...),
			LossPolicy{Gaussian: &Gaussian{"action", "action_mean", "action_log_std"}, Action: "action", Low: []float64{-2, -1}, High: []float64{2, 1}})
		if err != nil {
			t.Fatal(err)
		}
		if err := l.Add(t.Context(), map[string]*tensor.Tensor{"x": tensor.Of([]float32{1, 1}, 1, 2)}, nil); err != nil {
			t.Fatal(err)
		}
		got = l.Loss()
		near("KL of unit normals half apart in two dimensions", got.KL, 0.25)
		near("largest change of an action", got.MaxAction, 0.25)
		near("mean change of an action", got.MeanAction, (0.125+0.25)/2)
		if err := l.Close(); err != nil {
			t.Error(err)
		}
		l, err = NewLosses(c, scaledPolicy(t, 1, "y"), scaledPolicy(t, float32(math.Inf(1)), "y"), LossPolicy{})
		if err != nil {
			t.Fatal(err)
		}
		if err := l.Add(t.Context(), map[string]*tensor.Tensor{"x": tensor.Of([]float32{1, 1}, 1, 2)}, nil); err == nil || !strings.Contains(err.Error(), `output "y", element 0: 1 in full precision and +Inf`) {
			t.Errorf("error %v", err)
		}
		if err := l.Close(); err != nil {
			t.Error(err)
		}
		cases++
	}
	if cases == 0 {
		t.Error("no engine")
	}
}

// TestLossesRemember lets each form of a stack keep its own memory.
func TestLossesRemember(t *testing.T) {
	stacked := func(by float32) *onnx.Model {
		b := onnx.NewBuilder("frames", 17)
		x := b.Input("x", onnx.TensorType{DType: tensor.Float32, Ranked: true, Dims: []onnx.Dim{onnx.Symbol("n"), onnx.Known(2), onnx.Known(1)}})
		y := b.Op("MatMul", []onnx.Value{b.Op("Reshape", []onnx.Value{x, b.Ints(-1, 2)}), b.Initializer("w", tensor.Of([]float32{by, 1}, 2, 1))})
		b.Output(b.Rename(y, "y"), onnx.TensorType{DType: tensor.Float32, Ranked: true, Dims: []onnx.Dim{onnx.Symbol("n"), onnx.Known(1)}})
		m, err := b.Model()
		if err != nil {
			t.Fatal(err)
		}
		if m, err = Stack(m, Frames{Input: "x"}); err != nil {
			t.Fatal(err)
		}
		return m
	}
	c := testengines.All(t)[0]
	l, err := NewLosses(c, stacked(1), stacked(2), LossPolicy{Action: "y", Low: []float64{0}, High: []float64{10}})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	// The earlier observation, which only memory has, is what the forms differ by: 3 in the second
	// row, and nothing where an episode begins.
	if err := l.Add(t.Context(), map[string]*tensor.Tensor{"x": tensor.Of([]float32{3, 5, 7}, 3, 1)}, []bool{true, false, true}); err != nil {
		t.Fatal(err)
	}
	if got := l.Loss(); got.Rows != 3 || got.MaxAction == nil || math.Abs(*got.MaxAction-0.3) > 1e-6 || math.Abs(*got.MeanAction-0.1) > 1e-6 {
		t.Errorf("%+v", got)
	}
}
