package trace_test

import (
	"context"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/runtime/engine"
	"github.com/onnxrl/onnxrl/runtime/engine/trace"
	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/portable"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// logs is y = tanh(x·w) + log(x)·zero with a symbolic batch; log(0) is -Inf and -Inf·0 is NaN.
func logs(t *testing.T) *onnx.Model {
	t.Helper()
	b := onnx.NewBuilder("logs", 18)
	x := b.Input("x", onnx.TensorType{DType: tensor.Float32, Ranked: true, Dims: []onnx.Dim{onnx.Symbol("batch"), onnx.Known(2)}})
	w := b.Initializer("w", tensor.Of([]float32{1, 2, 3, 4}, 2, 2))
	zero := b.Initializer("zero", tensor.Scalar(float32(0)))
	h := b.Op("Tanh", []onnx.Value{b.Op("MatMul", []onnx.Value{x, w})})
	l := b.Op("Log", []onnx.Value{x})
	y := b.Rename(b.Op("Add", []onnx.Value{h, b.Op("Mul", []onnx.Value{l, zero})}), "y")
	b.Output(y, onnx.TensorType{DType: tensor.Float32})
	m, err := b.Model()
	if err != nil {
		t.Fatal(err)
	}
	if err := onnx.Check(m); err != nil {
		t.Fatal(err)
	}
	return m
}

func xs(v ...float32) map[string]*tensor.Tensor {
	return map[string]*tensor.Tensor{"x": tensor.Of(v, len(v)/2, 2)}
}

func TestValuesInOrder(t *testing.T) {
	m := logs(t)
	// A budget of one byte makes one run per value; the visits must be the same.
	for _, budget := range []int64{0, 1, 40} {
		var names []string
		y := float32(0)
		err := trace.Values(t.Context(), []engine.Compiler{portable.New(), portable.New()}, m, xs(1, 2, 3, 4), trace.Options{Budget: budget}, func(v trace.Visit) error {
			names = append(names, string(v.Value))
			if len(v.Got) != 2 || !slices.Equal(v.Got[0].Bytes(), v.Got[1].Bytes()) {
				t.Errorf("%s: %v", v.Value, v.Got)
			}
			if v.Value == "y" {
				y = v.Got[0].Float32s()[3]
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if got, want := strings.Join(names, " "), "x w zero MatMul Tanh Log Mul Add y"; got != want {
			t.Errorf("budget %d: visited %s, expected %s", budget, got, want)
		}
		if y != float32(math.Tanh(22)) {
			t.Errorf("budget %d: y is %v", budget, y)
		}
	}
	if m.Graph.Output[0].Name != "y" || len(m.Graph.Output) != 1 || len(m.Graph.Node) != 6 {
		t.Errorf("the model was changed: %v", m.Graph.Output)
	}
}

func TestFirstNonFinite(t *testing.T) {
	for _, budget := range []int64{0, 1} {
		rep, err := trace.FirstNonFinite(t.Context(), portable.New(), logs(t), xs(1, 2, 0, 4), trace.Options{Budget: budget}, nil)
		if err != nil {
			t.Fatal(err)
		}
		f := rep.First
		if f == nil || f.Value != "Log" || f.Op != "Log" || f.Range.NegInf != 1 || f.Range.First != 2 || f.Range.NonFinite() != 1 {
			t.Fatalf("first: %+v", f)
		}
		if len(f.Inputs) != 1 || f.Inputs[0].Value != "x" || f.Inputs[0].Range.Min != 0 || f.Inputs[0].Range.Max != 4 {
			t.Errorf("inputs of the first: %+v", f.Inputs)
		}
		n := rep.FirstNaN
		if n == nil || n.Value != "Mul" || n.Range.NaN != 1 || len(n.Inputs) != 2 || n.Inputs[0].Range.NegInf != 1 {
			t.Errorf("first NaN: %+v", n)
		}
	}
	rep, err := trace.FirstNonFinite(t.Context(), portable.New(), logs(t), xs(1, 2), trace.Options{}, nil)
	if err != nil || rep.First != nil || rep.FirstNaN != nil || rep.Values != 9 {
		t.Errorf("finite run: %+v, %v", rep, err)
	}
	// Weights and inputs come before everything that is computed.
	m := logs(t)
	nan := float32(math.NaN())
	m.Graph.Initializer[0] = onnx.ProtoOf("w", tensor.Of([]float32{1, nan, 3, nan}, 2, 2))
	if rep, err = trace.FirstNonFinite(t.Context(), portable.New(), m, xs(1, 2), trace.Options{}, nil); err != nil {
		t.Fatal(err)
	}
	if f := rep.First; f == nil || f.Value != "w" || f.Source != trace.Initializer || f.Range.NaN != 2 || f.Range.First != 1 || f.Node != "" {
		t.Errorf("NaN weights: %+v", rep.First)
	}
	// An infinite constant, as masks are made with, is mentioned but is no finding.
	m = logs(t)
	m.Graph.Initializer = append(m.Graph.Initializer, onnx.ProtoOf("mask", tensor.Scalar(float32(math.Inf(-1)))))
	if rep, err = trace.FirstNonFinite(t.Context(), portable.New(), m, xs(1, 2), trace.Options{}, nil); err != nil || rep.First != nil || !slices.Equal(rep.InfiniteConstants, []onnx.Value{"mask"}) {
		t.Errorf("infinite constant: %+v, %v", rep, err)
	}
	// So are scores that it masks, but not the logarithm of 0 beside them, nor what becomes NaN.
	b := onnx.Extend(m)
	scores := b.Op("Add", []onnx.Value{"Tanh", "mask"})
	b.Output(b.Op("Softmax", []onnx.Value{scores}), onnx.TensorType{DType: tensor.Float32})
	if rep, err = trace.FirstNonFinite(t.Context(), portable.New(), m, xs(1, 2), trace.Options{}, func(trace.Visit, trace.Range) {}); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(rep.Masks, []onnx.Value{scores}) || rep.First == nil || rep.First.Op != "Softmax" || rep.First.Range.NaN != 2 {
		t.Errorf("masked scores: masks %v, first %+v", rep.Masks, rep.First)
	}
}

// other is an engine that computes one operator as another.
type other struct {
	engine.Compiler
	from, to string
}

func (o other) Compile(m *onnx.Model, opts engine.Options) (engine.Session, error) {
	m = m.ShallowClone()
	for _, n := range m.Graph.Node {
		if n.OpType == o.from {
			n.OpType = o.to
		}
	}
	return o.Compiler.Compile(m, opts)
}

func TestCompareFindsTheNode(t *testing.T) {
	m, in := logs(t), xs(1, 2, 3, 4)
	a := portable.New()
	b := other{portable.New(), "Tanh", "Sigmoid"}
	outs, err := trace.Outputs(t.Context(), a, b, m, in, trace.Options{})
	if err != nil || len(outs) != 1 || outs[0].Value != "y" || outs[0].Within(trace.DefaultTolerance) {
		t.Fatalf("outputs: %+v, %v", outs, err)
	}
	for _, budget := range []int64{0, 1} {
		d, agreed, err := trace.Compare(t.Context(), a, b, m, in, trace.DefaultTolerance, trace.Options{Budget: budget})
		if err != nil {
			t.Fatal(err)
		}
		if d == nil || d.Value != "Tanh" || d.Op != "Tanh" || agreed != 1 || d.Error < 1e-4 || len(d.Inputs) != 1 || d.Inputs[0].Value != "MatMul" {
			t.Errorf("budget %d: %+v after %d", budget, d, agreed)
		}
	}
	if d, agreed, err := trace.Compare(t.Context(), a, portable.New(), m, in, trace.Tolerance{}, trace.Options{}); err != nil || d != nil || agreed != 6 {
		t.Errorf("equal engines: %+v, %d agreed, %v", d, agreed, err)
	}
}

func TestDiff(t *testing.T) {
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	f := func(v ...float32) *tensor.Tensor { return tensor.Of(v, len(v)) }
	tests := []struct {
		name    string
		a, b    *tensor.Tensor
		err     float64
		problem string
	}{
		{"equal", f(1, 2), f(1, 2), 0, ""},
		{"relative to the largest", f(1, -4), f(1.5, -4), 0.5 / 4.000001, ""},
		{"same NaN and infinities", f(nan, inf, -inf), f(nan, inf, -inf), 0, ""},
		{"NaN on one side", f(1, 2), f(1, nan), 0, "element 1 is 2 and NaN"},
		{"opposite infinities", f(inf), f(-inf), 0, "element 0 is +Inf and -Inf"},
		{"shape", f(1, 2), tensor.Of([]float32{1, 2}, 1, 2), 0, "[2]"},
		{"type", f(1), tensor.Of([]float64{1}, 1), 0, "float64"},
		{"integers are exact", tensor.Of([]int64{1e9}, 1), tensor.Of([]int64{1e9 + 1}, 1), 0, "element 0"},
		{"strings", tensor.OfStrings([]string{"a"}, 1), tensor.OfStrings([]string{"b"}, 1), 0, `"a" and "b"`},
	}
	for _, c := range tests {
		d := trace.Diff(c.a, c.b)
		if math.Abs(d.Error-c.err) > 1e-9 || (c.problem == "") != (d.Problem == "") || !strings.Contains(d.Problem, c.problem) {
			t.Errorf("%s: %+v, expected error %v, problem %q", c.name, d, c.err, c.problem)
		}
	}
}

func TestBindErrors(t *testing.T) {
	m := logs(t)
	tests := []struct {
		name string
		in   map[string]*tensor.Tensor
		says string
	}{
		{"missing", nil, `input "x" (float32[batch,2]) is not given`},
		{"type", map[string]*tensor.Tensor{"x": tensor.New(tensor.Int64, 1, 2)}, "expected float32[batch,2], got"},
		{"extent", map[string]*tensor.Tensor{"x": tensor.New(tensor.Float32, 1, 3)}, "expected float32[batch,2], got"},
		{"unknown", map[string]*tensor.Tensor{"x": tensor.New(tensor.Float32, 1, 2), "z": tensor.New(tensor.Float32)}, `no input "z"`},
	}
	for _, c := range tests {
		if _, err := trace.Bind(m, c.in); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, expected %q", c.name, err, c.says)
		}
	}
	if bind, err := trace.Bind(m, xs(1, 2, 3, 4)); err != nil || bind["batch"] != 2 {
		t.Errorf("bind: %v, %v", bind, err)
	}
}

func TestEnd(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := trace.FirstNonFinite(ctx, portable.New(), logs(t), xs(1, 2), trace.Options{}, nil); err == nil {
		t.Error("a cancelled run gave no error")
	}
}

func TestRange(t *testing.T) {
	r := trace.RangeOf(tensor.Of([]float32{1, -3, float32(math.NaN()), float32(math.Inf(1))}, 2, 2))
	if got, want := r.String(), "float32[2 2] in [-3, 1], mean -1, 1 NaN, 1 +Inf of 4, the first at element 2"; got != want {
		t.Errorf("got %q, expected %q", got, want)
	}
	r = trace.RangeOf(tensor.Of([]float64{math.MaxFloat64, math.MaxFloat64}, 2))
	if r.Mean != math.MaxFloat64 {
		t.Errorf("mean %v overflowed", r.Mean)
	}
	if r = trace.RangeOf(tensor.Of([]bool{true, false}, 2)); r.Mean != 0.5 {
		t.Errorf("booleans: %+v", r)
	}
}
