package autodiff_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/onnxrl/onnxrl/runtime/autodiff"
	"github.com/onnxrl/onnxrl/runtime/engine"
	"github.com/onnxrl/onnxrl/runtime/gradcheck"
	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/portable"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// engines opens every engine and closes it after the test.
func engines(t *testing.T) []engine.Compiler {
	t.Helper()
	list := append(native(t), portable.New())
	t.Cleanup(func() {
		for _, c := range list {
			if err := c.Close(); err != nil {
				t.Error(err)
			}
		}
	})
	return list
}

func random(seed uint64, shape ...int) *tensor.Tensor {
	r := rand.New(rand.NewPCG(seed, 7))
	t := tensor.New(tensor.Float32, shape...)
	for i := range t.Float32s() {
		t.Float32s()[i] = float32(r.NormFloat64() * 0.5)
	}
	return t
}

// mlp is x [batch,3] → fc1 (4, tanh) → fc2 (2) → y, and loss = Σ y²/batch, the mean over the batch
// of the squared outputs.
func mlp(t *testing.T, batch int) *onnx.Model {
	t.Helper()
	b := onnx.NewBuilder("mlp", autodiff.MinOpset)
	x := b.Input("x", f32(batch, 3))
	w1, b1 := b.Initializer("fc1.weight", random(1, 4, 3)), b.Initializer("fc1.bias", random(2, 4))
	w2, b2 := b.Initializer("fc2.weight", random(3, 2, 4)), b.Initializer("fc2.bias", random(4, 2))
	node := func(op, name string, out string, in ...onnx.Value) onnx.Value {
		n := &onnx.Node{OpType: op, Name: name, Output: []string{out}}
		for _, v := range in {
			n.Input = append(n.Input, string(v))
		}
		if op == "Gemm" {
			n.SetAttr(onnx.AttrInt("transB", 1))
		}
		b.Append(n)
		return onnx.Value(out)
	}
	h := node("Tanh", "act", "h", node("Gemm", "fc1", "a", x, w1, b1))
	y := node("Gemm", "fc2", "y", h, w2, b2)
	sq := node("Mul", "square", "sq", y, y)
	sum := b.Op("ReduceSum", []onnx.Value{sq}, onnx.AttrInt("keepdims", 0))
	loss := b.Rename(b.Op("Div", []onnx.Value{sum, b.Float(float32(batch))}), "loss")
	b.Output(y, f32(batch, 2))
	b.Output(loss, f32())
	m, err := b.Model()
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// runs differentiates and runs; gradients and outputs are returned by name.
func runs(t *testing.T, c engine.Compiler, m *onnx.Model, o autodiff.Options, in map[string]*tensor.Tensor) map[string]*tensor.Tensor {
	t.Helper()
	g, err := autodiff.Grad(m, o)
	if err != nil {
		t.Fatal(err)
	}
	out, err := gradcheck.Run(t.Context(), c, g.Model, in)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func near(t *testing.T, what string, got, want []float32, tol float64) {
	t.Helper()
	if len(got) != len(want) {
		t.Errorf("%s: %d elements, expected %d", what, len(got), len(want))
		return
	}
	most := 0.0
	for _, w := range want {
		most = max(most, math.Abs(float64(w)))
	}
	for i := range want {
		if d := math.Abs(float64(got[i] - want[i])); !(d <= tol*(1e-6+most)) {
			t.Errorf("%s: element %d is %v, expected %v", what, i, got[i], want[i])
			return
		}
	}
}

var params = []string{"fc1.weight", "fc1.bias", "fc2.weight", "fc2.bias"}

func TestMLP(t *testing.T) {
	for _, c := range engines(t) {
		r, err := gradcheck.Check(t.Context(), c, gradcheck.Problem{Model: mlp(t, 5), Inputs: map[string]*tensor.Tensor{"x": random(9, 5, 3)},
			Wrt: append([]string{"x"}, params...), Outputs: []string{"loss", "y"}}, gradcheck.Options{Full: 64})
		if err != nil {
			t.Errorf("%s: %v", c.Name(), err)
		}
		if r.Level.Name != "double" || r.Comparisons < 40 {
			t.Errorf("%s: %+v", c.Name(), r)
		}
	}
}

// TestHessianVector differentiates a gradient: the gradient of ⟨∂loss, v⟩ is the Hessian times v,
// compared with differences of the gradient.
func TestHessianVector(t *testing.T) {
	g, err := autodiff.Grad(mlp(t, 5), wrt("loss", params...))
	if err != nil {
		t.Fatal(err)
	}
	outs := make([]string, len(params))
	for i, p := range params {
		outs[i] = "grad/" + p
	}
	for _, c := range engines(t) {
		r, err := gradcheck.Check(t.Context(), c, gradcheck.Problem{Model: g.Model, Inputs: map[string]*tensor.Tensor{"x": random(9, 5, 3)},
			Wrt: params, Outputs: outs, Name: "second"}, gradcheck.Options{Full: 64})
		if err != nil {
			t.Errorf("%s: %v", c.Name(), err)
		}
		if r.Level.Name != "double" || r.Comparisons < 30 {
			t.Errorf("%s: %+v", c.Name(), r)
		}
	}
}

// TestMetamorphic checks properties that need no reference: permuting the batch permutes input
// gradients and leaves parameter gradients, a weight of the loss scales all gradients, and the
// gradients of the parts of a batch add up to that of the whole.
func TestMetamorphic(t *testing.T) {
	const batch = 6
	x := random(11, batch, 3)
	rows := func(order ...int) *tensor.Tensor {
		p := tensor.New(tensor.Float32, len(order), 3)
		for i, j := range order {
			copy(p.Float32s()[3*i:3*i+3], x.Float32s()[3*j:3*j+3])
		}
		return p
	}
	in := func(x *tensor.Tensor) map[string]*tensor.Tensor { return map[string]*tensor.Tensor{"x": x} }
	o := wrt("loss", append([]string{"x"}, params...)...)
	for _, c := range engines(t) {
		whole := runs(t, c, mlp(t, batch), o, in(x))
		order := []int{3, 0, 5, 1, 4, 2}
		mixed := runs(t, c, mlp(t, batch), o, in(rows(order...)))
		for i, j := range order {
			near(t, "permuted input gradient", mixed["grad/x"].Float32s()[3*i:3*i+3], whole["grad/x"].Float32s()[3*j:3*j+3], 1e-5)
		}
		scaled := o
		scaled.Objectives = []autodiff.Objective{o.Objectives[0]}
		scaled.Objectives[0].Losses = []autodiff.Loss{{Value: "loss", Weight: -2.5}}
		times := runs(t, c, mlp(t, batch), scaled, in(x))
		left := runs(t, c, mlp(t, 2), o, in(rows(0, 1)))
		right := runs(t, c, mlp(t, 4), o, in(rows(2, 3, 4, 5)))
		for _, p := range params {
			name := "grad/" + p
			w := whole[name].Float32s()
			near(t, "permuted batch: "+name, mixed[name].Float32s(), w, 1e-5)
			want, sum := make([]float32, len(w)), make([]float32, len(w))
			for i := range w {
				want[i] = -2.5 * w[i]
				// The loss is a mean, so the parts count with their share of the rows.
				sum[i] = (2*left[name].Float32s()[i] + 4*right[name].Float32s()[i]) / batch
			}
			near(t, "scaled loss: "+name, times[name].Float32s(), want, 1e-5)
			near(t, "split batch: "+name, sum, w, 1e-5)
		}
	}
}
