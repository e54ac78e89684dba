package autodiff_test

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/runtime/autodiff"
	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/sorted"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

var update = flag.Bool("update", false, "rewrite golden files")

// TestGolden fixes the text of one small gradient graph: operators, names and order.
func TestGolden(t *testing.T) {
	g, err := autodiff.Grad(mlp(t, 2), wrt("loss", "fc*"))
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	if err := onnx.Fprint(&b, g.Model, onnx.PrintOptions{}); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join("testdata", "mlp.golden")
	if *update {
		if err := os.WriteFile(path, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if b.String() != string(want) {
		t.Errorf("the graph differs from %s; run with -update if that is meant:\n%s", path, b.String())
	}
}

// TestObjectives differentiates two objectives in one graph; each equals the graph with that
// objective alone.
func TestObjectives(t *testing.T) {
	in := map[string]*tensor.Tensor{"x": random(5, 4, 3)}
	first := autodiff.Objective{Name: "a", Losses: []autodiff.Loss{{Value: "loss"}}, Wrt: []string{"fc1.*"}}
	second := autodiff.Objective{Name: "b", Losses: []autodiff.Loss{{Value: "y", Weight: 0.5}, {Value: "loss", Weight: 2}}, Wrt: []string{"fc1.*", "x"}}
	for _, c := range engines(t) {
		both := runs(t, c, mlp(t, 4), autodiff.Options{Objectives: []autodiff.Objective{first, second}}, in)
		n := 0
		for _, o := range []autodiff.Objective{first, second} {
			for name, want := range sorted.All(runs(t, c, mlp(t, 4), autodiff.Options{Objectives: []autodiff.Objective{o}}, in)) {
				if strings.HasPrefix(name, "grad/"+o.Name+"/") {
					near(t, name, both[name].Float32s(), want.Float32s(), 1e-6)
					n++
				}
			}
		}
		if n != 5 {
			t.Errorf("%d gradients compared, expected 5", n)
		}
	}
}

// TestUnreached gives values that the loss does not depend on explicit zeros and says so.
func TestUnreached(t *testing.T) {
	m := build(t, f32(2, 3), func(b *onnx.Builder, x onnx.Value) []onnx.Value {
		b.Initializer("idle", random(1, 4))
		b.Initializer("cut", random(2, 3))
		// Floor cuts the path.
		y := b.Op("Add", []onnx.Value{x, b.Op("Floor", []onnx.Value{"cut"})})
		return []onnx.Value{b.Rename(y, "y"), b.Rename("idle", "copy")}
	})
	g, err := autodiff.Grad(m, wrt("y", "x", "idle", "cut"))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, o := range g.Outputs[0] {
		if o.Unreached {
			got = append(got, o.Wrt)
		}
	}
	if strings.Join(got, " ") != "idle cut" {
		t.Errorf("unreached: %v", got)
	}
	for _, c := range engines(t) {
		out := runs(t, c, m, wrt("y", "x", "idle", "cut"), map[string]*tensor.Tensor{"x": random(3, 2, 3)})
		near(t, "idle", out["grad/idle"].Float32s(), make([]float32, 4), 0)
		near(t, "cut", out["grad/cut"].Float32s(), make([]float32, 3), 0)
		near(t, "x", out["grad/x"].Float32s(), []float32{1, 1, 1, 1, 1, 1}, 0)
	}
}

// TestStop cuts one of two paths.
func TestStop(t *testing.T) {
	m := build(t, f32(3), func(b *onnx.Builder, x onnx.Value) []onnx.Value {
		sq := b.Rename(b.Op("Mul", []onnx.Value{x, x}), "sq")
		return []onnx.Value{b.Rename(b.Op("Mul", []onnx.Value{sq, x}), "y")}
	})
	x := []float32{1, 2, 3}
	in := map[string]*tensor.Tensor{"x": tensor.Of(x, 3)}
	stopped := wrt("y", "x")
	stopped.Objectives[0].Stop = []string{"sq"}
	for _, c := range engines(t) {
		near(t, "x³", runs(t, c, m, wrt("y", "x"), in)["grad/x"].Float32s(), []float32{3, 12, 27}, 1e-6)
		near(t, "stop(x²)·x", runs(t, c, m, stopped, in)["grad/x"].Float32s(), []float32{1, 4, 9}, 1e-6)
	}
}

// TestFanOut adds up the gradients of a value that many nodes use, and of one node that uses a
// value twice.
func TestFanOut(t *testing.T) {
	m := build(t, f32(2), func(b *onnx.Builder, x onnx.Value) []onnx.Value {
		sum := b.Op("Mul", []onnx.Value{x, x})
		for i := range 5 {
			sum = b.Op("Add", []onnx.Value{sum, b.Op("Mul", []onnx.Value{x, b.Float(float32(i))})})
		}
		return []onnx.Value{b.Rename(sum, "y")}
	})
	for _, c := range engines(t) {
		out := runs(t, c, m, wrt("y", "x"), map[string]*tensor.Tensor{"x": tensor.Of([]float32{3, -1}, 2)})
		near(t, "2x + 10", out["grad/x"].Float32s(), []float32{16, 8}, 1e-6)
	}
}

// TestInnerValue differentiates with respect to a value in the middle, which does not end the path
// to values before it.
func TestInnerValue(t *testing.T) {
	m := build(t, f32(2), func(b *onnx.Builder, x onnx.Value) []onnx.Value {
		h := b.Rename(b.Op("Mul", []onnx.Value{x, x}), "h")
		return []onnx.Value{b.Rename(b.Op("Mul", []onnx.Value{h, h}), "y")}
	})
	for _, c := range engines(t) {
		out := runs(t, c, m, wrt("y", "h", "x"), map[string]*tensor.Tensor{"x": tensor.Of([]float32{1, 2}, 2)})
		near(t, "2h", out["grad/h"].Float32s(), []float32{2, 8}, 1e-6)
		near(t, "4x³", out["grad/x"].Float32s(), []float32{4, 32}, 1e-6)
	}
}

// TestSharedGradient publishes one value as the gradient of two, and keeps adding to it elsewhere.
func TestSharedGradient(t *testing.T) {
	m := build(t, f32(2), func(b *onnx.Builder, x onnx.Value) []onnx.Value {
		p, q := b.Initializer("p", random(1, 2)), b.Initializer("q", random(2, 2))
		s := b.Op("Add", []onnx.Value{b.Op("Add", []onnx.Value{x, p}), q})
		return []onnx.Value{b.Rename(b.Op("Add", []onnx.Value{b.Op("Mul", []onnx.Value{s, s}), q}), "y")}
	})
	for _, c := range engines(t) {
		out := runs(t, c, m, wrt("y", "x", "p", "q"), map[string]*tensor.Tensor{"x": random(3, 2)})
		x, p, q := out["grad/x"].Float32s(), out["grad/p"].Float32s(), out["grad/q"].Float32s()
		near(t, "p", p, x, 0)
		near(t, "q", q, []float32{x[0] + 1, x[1] + 1}, 1e-6)
	}
}

// TestBind gives a number to a symbolic batch.
func TestBind(t *testing.T) {
	x := onnx.TensorType{DType: tensor.Float32, Ranked: true, Dims: []onnx.Dim{onnx.Symbol("batch"), onnx.Known(3)}}
	m := build(t, x, func(b *onnx.Builder, x onnx.Value) []onnx.Value {
		w := b.Initializer("w", random(1, 3))
		return []onnx.Value{b.Rename(b.Op("Mul", []onnx.Value{x, w}), "y")}
	})
	o := wrt("y", "w", "x")
	o.Bind = map[string]int{"batch": 4}
	g, err := autodiff.Grad(m, o)
	if err != nil {
		t.Fatal(err)
	}
	if got := g.Env.Type("grad/x").String(); got != "float32[4,3]" {
		t.Errorf("grad/x is %s", got)
	}
	if got := onnx.Symbols(m); len(got) != 1 {
		t.Errorf("the model that was given has symbols %v", got)
	}
}

// TestDropOutputs keeps losses and gradients alone.
func TestDropOutputs(t *testing.T) {
	o := wrt("loss", "fc2.*")
	o.DropOutputs = true
	g, err := autodiff.Grad(mlp(t, 2), o)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, v := range g.Model.Graph.Output {
		names = append(names, v.Name)
	}
	if got := strings.Join(names, " "); got != "loss grad/fc2.weight grad/fc2.bias" {
		t.Errorf("outputs %s", got)
	}
}

// TestOldOpset raises a model of opset 13 before differentiating it.
func TestOldOpset(t *testing.T) {
	b := onnx.NewBuilder("old", 13)
	x := b.Input("x", f32(2, 3))
	b.Append(&onnx.Node{OpType: "ReduceMean", Input: []string{string(x)}, Output: []string{"y"}, Attribute: []*onnx.Attribute{onnx.AttrInts("axes", 1)}})
	b.Output("y", f32(2, 1))
	m, err := b.Model()
	if err != nil {
		t.Fatal(err)
	}
	g, err := autodiff.Grad(m, wrt("y", "x"))
	if err != nil {
		t.Fatal(err)
	}
	if got := g.Model.Opset(""); got != autodiff.MinOpset {
		t.Errorf("the gradient imports opset %d", got)
	}
}
