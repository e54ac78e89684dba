package gradcheck_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/runtime/engine"
	"github.com/onnxrl/onnxrl/runtime/gradcheck"
	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/portable"
	"github.com/onnxrl/onnxrl/runtime/sorted"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// problem is y = f(x) at a point of three elements.
func problem(t *testing.T, f func(b *onnx.Builder, x onnx.Value) onnx.Value) gradcheck.Problem {
	t.Helper()
	b := onnx.NewBuilder("p", 18)
	x := b.Input("x", onnx.TypeOf(tensor.Float32, 3))
	y := b.Rename(f(b, x), "y")
	b.Output(y, onnx.TypeOf(tensor.Float32, 3))
	m, err := b.Model()
	if err != nil {
		t.Fatal(err)
	}
	return gradcheck.Problem{Model: m, Inputs: map[string]*tensor.Tensor{"x": tensor.Of([]float32{0.5, -1.25, 2}, 3)}, Wrt: []string{"x"}}
}

func exp(b *onnx.Builder, x onnx.Value) onnx.Value { return b.Op("Exp", []onnx.Value{x}) }

func TestLevels(t *testing.T) {
	c := portable.New()
	defer c.Close()
	p := problem(t, exp)
	r, err := gradcheck.Check(t.Context(), c, p, gradcheck.Options{})
	if err != nil || r.Level != gradcheck.DoubleLevel || r.MaxError > 1e-6 {
		t.Errorf("double: %+v, %v", r, err)
	}
	// Two products and three elements against differences, and three float32 elements against
	// float64 for each cotangent.
	if want := 2 + 3 + 3*3; r.Comparisons != want {
		t.Errorf("%d comparisons, expected %d", r.Comparisons, want)
	}
	r, err = gradcheck.Check(t.Context(), c, p, gradcheck.Options{SingleOnly: true})
	if err != nil || r.Level != gradcheck.SingleLevel || r.Comparisons != 5 {
		t.Errorf("single: %+v, %v", r, err)
	}
}

// TestDetects makes sure that wrong gradients are found: at a kink the gradient follows a
// convention that differences do not, and a stopped path lacks a part.
func TestDetects(t *testing.T) {
	c := portable.New()
	defer c.Close()
	kink := problem(t, func(b *onnx.Builder, x onnx.Value) onnx.Value { return b.Op("Relu", []onnx.Value{x}) })
	kink.Inputs["x"] = tensor.Of([]float32{1, 0, -1}, 3)
	stopped := problem(t, func(b *onnx.Builder, x onnx.Value) onnx.Value {
		return b.Op("Mul", []onnx.Value{x, b.Rename(exp(b, x), "e")})
	})
	stopped.Stop = []string{"e"}
	for name, p := range sorted.All(map[string]gradcheck.Problem{"kink": kink, "stopped": stopped}) {
		for _, single := range []bool{false, true} {
			_, err := gradcheck.Check(t.Context(), c, p, gradcheck.Options{SingleOnly: single})
			var e *gradcheck.Error
			if !errors.As(err, &e) || e.Rel <= e.Tol {
				t.Errorf("%s, single %v: %v", name, single, err)
			}
		}
	}
}

func TestZero(t *testing.T) {
	c := portable.New()
	defer c.Close()
	floor := problem(t, func(b *onnx.Builder, x onnx.Value) onnx.Value { return b.Op("Floor", []onnx.Value{x}) })
	floor.Inputs["x"] = tensor.Of([]float32{0.5, -1.25, 2.5}, 3)
	if r, err := gradcheck.Check(t.Context(), c, floor, gradcheck.Options{Zero: true}); err != nil || r.Comparisons == 0 {
		t.Errorf("floor: %+v, %v", r, err)
	}
	// Around 2 the model jumps although its gradient is zero.
	floor.Inputs["x"] = tensor.Of([]float32{0.5, -1.25, 2}, 3)
	if _, err := gradcheck.Check(t.Context(), c, floor, gradcheck.Options{Zero: true}); err == nil {
		t.Error("a jump was not noticed")
	}
	if _, err := gradcheck.Check(t.Context(), c, problem(t, exp), gradcheck.Options{Zero: true}); err == nil {
		t.Error("a gradient that is not zero was not noticed")
	}
}

// TestInitializer moves an initializer of the model.
func TestInitializer(t *testing.T) {
	c := portable.New()
	defer c.Close()
	p := problem(t, func(b *onnx.Builder, x onnx.Value) onnx.Value {
		return b.Op("Mul", []onnx.Value{exp(b, x), b.Initializer("w", tensor.Of([]float32{1, 2, 3}, 3))})
	})
	p.Wrt = []string{"w", "x"}
	r, err := gradcheck.Check(t.Context(), c, p, gradcheck.Options{})
	if err != nil || r.Comparisons < 10 {
		t.Errorf("%+v, %v", r, err)
	}
	p.Wrt = []string{"nothing"}
	if _, err := gradcheck.Check(t.Context(), c, p, gradcheck.Options{}); err == nil || !strings.Contains(err.Error(), `"nothing"`) {
		t.Errorf("unknown value: %v", err)
	}
}

func TestMissingInput(t *testing.T) {
	c := portable.New()
	defer c.Close()
	_, err := gradcheck.Run(t.Context(), c, problem(t, exp).Model, nil)
	if err == nil || !strings.Contains(err.Error(), `input "x" is not given`) {
		t.Errorf("error %v", err)
	}
}

func TestDouble(t *testing.T) {
	b := onnx.NewBuilder("d", 18)
	x := b.Input("x", onnx.TypeOf(tensor.Float32, 2))
	w := b.Initializer("w", tensor.Of([]float32{1, 2}, 2))
	y := b.Op("Cast", []onnx.Value{b.Op("Mul", []onnx.Value{x, w})}, onnx.AttrInt("to", int(tensor.Float32)))
	fill := b.Op("ConstantOfShape", []onnx.Value{b.Ints(2)}, onnx.AttrTensor("value", tensor.Of([]float32{3}, 1)))
	b.Output(b.Rename(b.Op("Add", []onnx.Value{y, fill}), "y"), onnx.TypeOf(tensor.Float32, 2))
	m, err := b.Model()
	if err != nil {
		t.Fatal(err)
	}
	d, err := gradcheck.Double(m)
	if err != nil {
		t.Fatal(err)
	}
	c := portable.New()
	defer c.Close()
	in := map[string]*tensor.Tensor{"x": tensor.Of([]float32{0.5, 4}, 2)}
	for _, k := range []struct {
		m    *onnx.Model
		want tensor.DType
	}{{m, tensor.Float32}, {d, tensor.Float64}} {
		out, err := gradcheck.Run(t.Context(), c, k.m, in)
		if err != nil {
			t.Fatal(err)
		}
		if got := out["y"].DType(); got != k.want {
			t.Errorf("output is %v, expected %v", got, k.want)
		}
	}
	if s := mustOutput(t, c, d, in); s[0] != 3.5 || s[1] != 11 {
		t.Errorf("output %v", s)
	}
}

func mustOutput(t *testing.T, c engine.Compiler, m *onnx.Model, in map[string]*tensor.Tensor) []float64 {
	t.Helper()
	out, err := gradcheck.Run(t.Context(), c, m, in)
	if err != nil {
		t.Fatal(err)
	}
	return out["y"].Float64s()
}
