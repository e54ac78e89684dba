package autodiff_test

import (
	"errors"
	"strconv"
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/runtime/autodiff"
	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

func f32(shape ...int) onnx.TensorType { return onnx.TypeOf(tensor.Float32, shape...) }

// build makes a model with one float input x of the given type and the outputs that f returns.
func build(t *testing.T, x onnx.TensorType, f func(b *onnx.Builder, x onnx.Value) []onnx.Value) *onnx.Model {
	t.Helper()
	b := onnx.NewBuilder("test", 19)
	for _, o := range f(b, b.Input("x", x)) {
		b.Output(o, onnx.TensorType{DType: tensor.Float32})
	}
	m, err := b.Model()
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// named is a float type with the given extents: numbers, names, or the empty text for no name.
func named(extents ...string) onnx.TensorType {
	t := onnx.TensorType{DType: tensor.Float32, Ranked: true}
	for _, e := range extents {
		if n, err := strconv.Atoi(e); err == nil {
			t.Dims = append(t.Dims, onnx.Known(n))
		} else {
			t.Dims = append(t.Dims, onnx.Symbol(e))
		}
	}
	return t
}

func wrt(loss string, names ...string) autodiff.Options {
	return autodiff.Options{Objectives: []autodiff.Objective{{Losses: []autodiff.Loss{{Value: loss}}, Wrt: names}}}
}

// odd adds a node of an operator that has no rule: a deformable convolution with zero offsets.
func odd(out string) func(b *onnx.Builder, x onnx.Value) []onnx.Value {
	return func(b *onnx.Builder, x onnx.Value) []onnx.Value {
		w, off := b.Const(tensor.New(tensor.Float32, 1, 1, 2, 2)), b.Const(tensor.New(tensor.Float32, 1, 8, 2, 2))
		b.Append(&onnx.Node{Name: "odd", OpType: "DeformConv", Input: []string{string(x), string(w), string(off)}, Output: []string{out}})
		return []onnx.Value{onnx.Value(out)}
	}
}

func TestErrors(t *testing.T) {
	relu := func(b *onnx.Builder, x onnx.Value) []onnx.Value {
		return []onnx.Value{b.Rename(b.Op("Relu", []onnx.Value{x}), "y")}
	}
	lrn := func(b *onnx.Builder, x onnx.Value) []onnx.Value {
		b.Append(&onnx.Node{Name: "n", OpType: "LRN", Input: []string{string(x)}, Output: []string{"y"}, Attribute: []*onnx.Attribute{onnx.AttrInt("size", 1)}})
		return []onnx.Value{"y"}
	}
	cases := []struct {
		name string
		x    onnx.TensorType
		f    func(b *onnx.Builder, x onnx.Value) []onnx.Value
		o    autodiff.Options
		want []string
	}{
		{"unknown operator", f32(1, 1, 3, 3), odd("y"), wrt("y", "x"), []string{`node "odd" (DeformConv)`, "no gradient rule in opset 19"}},
		{"free extent", named("batch", "1", "3", "3"), lrn, wrt("y", "x"), []string{`"x"`, "float32[batch,1,3,3]", "must be known before a run: give a number to batch"}},
		{"extent that depends on the data", named("", "1", "3", "3"), lrn, wrt("y", "x"), []string{`"n" (LRN)`, `"x"`, "must be known before a run: it depends on the data"}},
		{"no match", f32(2), relu, wrt("y", "weight*"), []string{`"weight*"`, "no floating-point value"}},
		{"no such name", f32(2), relu, wrt("y", "z"), []string{`"z"`, "no floating-point value"}},
		{"no such loss", f32(2), relu, wrt("z", "x"), []string{`loss "z"`, "no such value"}},
		{"integer loss", f32(2), func(b *onnx.Builder, x onnx.Value) []onnx.Value {
			b.Append(&onnx.Node{OpType: "ArgMax", Input: []string{string(x)}, Output: []string{"i"}})
			return []onnx.Value{x}
		}, wrt("i", "x"), []string{`loss "i"`, "must be floating-point"}},
		{"no objective", f32(2), relu, autodiff.Options{}, []string{"no objective"}},
		{"no loss", f32(2), relu, autodiff.Options{Objectives: []autodiff.Objective{{Name: "o", Wrt: []string{"x"}}}}, []string{`objective "o" has no loss`}},
		{"no such stop", f32(2), relu, autodiff.Options{Objectives: []autodiff.Objective{{
			Losses: []autodiff.Loss{{Value: "y"}}, Wrt: []string{"x"}, Stop: []string{"z"}}}}, []string{`stop-gradient value "z"`}},
		{"cotangent of another type", f32(2), func(b *onnx.Builder, x onnx.Value) []onnx.Value {
			return []onnx.Value{b.Rename(b.Op("Add", []onnx.Value{x, b.Initializer("c", tensor.New(tensor.Float32, 1))}), "y")}
		}, autodiff.Options{Objectives: []autodiff.Objective{{
			Losses: []autodiff.Loss{{Value: "y", Cotangent: "c"}}, Wrt: []string{"x"}}}}, []string{`cotangent "c" is float32[1]`, `loss "y" is float32[2]`}},
	}
	ran := 0
	for _, c := range cases {
		ran++
		t.Run(c.name, func(t *testing.T) {
			_, err := autodiff.Grad(build(t, c.x, c.f), c.o)
			if err == nil {
				t.Fatal("no error")
			}
			if !strings.HasPrefix(err.Error(), `differentiate "test": `) {
				t.Errorf("error %q does not name the graph first", err)
			}
			for _, w := range c.want {
				if !strings.Contains(err.Error(), w) {
					t.Errorf("error %q does not contain %q", err, w)
				}
			}
		})
	}
	if ran != 11 {
		t.Errorf("%d cases ran", ran)
	}
}

func TestUnsupportedError(t *testing.T) {
	m := build(t, f32(1, 1, 3, 3), odd("y"))
	_, err := autodiff.Grad(m, wrt("y", "x"))
	var u *autodiff.UnsupportedError
	if !errors.As(err, &u) || u.Op != "DeformConv" || u.Opset != 19 || u.Node != `node "odd" (DeformConv)` {
		t.Errorf("error %v, details %+v", err, u)
	}
	// Behind a stop the operator does not matter.
	m = build(t, f32(1, 1, 3, 3), func(b *onnx.Builder, x onnx.Value) []onnx.Value {
		odd("u")(b, x)
		return []onnx.Value{b.Rename(b.Op("ReduceSum", []onnx.Value{b.Op("Mul", []onnx.Value{x, b.Op("ReduceSum", []onnx.Value{"u"})})}), "y")}
	})
	o := wrt("y", "x")
	o.Objectives[0].Stop = []string{"u"}
	if _, err := autodiff.Grad(m, o); err != nil {
		t.Errorf("stopped: %v", err)
	}
}

func TestModelIsNotChanged(t *testing.T) {
	m := mlp(t, 4)
	before, err := onnx.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := autodiff.Grad(m, wrt("loss", "*")); err != nil {
		t.Fatal(err)
	}
	after, err := onnx.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	if string(before) != string(after) {
		t.Error("Grad changed the model it was given")
	}
}

func TestFreeze(t *testing.T) {
	o := wrt("loss", "*.weight", "*.bias")
	o.Objectives[0].Freeze = []string{"fc1.*"}
	g, err := autodiff.Grad(mlp(t, 4), o)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, out := range g.Outputs[0] {
		names = append(names, out.Name)
	}
	if got := strings.Join(names, " "); got != "grad/fc2.weight grad/fc2.bias" {
		t.Errorf("gradients %s", got)
	}
	// Frozen parameters cost nothing: no gradient of the hidden layer is made.
	for _, n := range g.Model.Graph.Node {
		if strings.HasPrefix(n.Name, "grad/fc1/") {
			t.Errorf("node %s differentiates a frozen layer", n.Name)
		}
	}
}
