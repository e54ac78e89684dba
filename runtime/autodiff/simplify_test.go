package autodiff_test

import (
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/runtime/autodiff"
	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// TestGradientsHoldNoSuperfluousNodes lists, for small losses of h = exp x [4,3], the operators
// that the gradient of x may consist of. The last is always the product with h.
func TestGradientsHoldNoSuperfluousNodes(t *testing.T) {
	sum := func(b *onnx.Builder, v onnx.Value) onnx.Value {
		return b.Op("ReduceSum", []onnx.Value{v}, onnx.AttrInt("keepdims", 0))
	}
	pair := func(x, y onnx.Value) []onnx.Value { return []onnx.Value{x, y} }
	for _, c := range []struct {
		name string
		loss func(b *onnx.Builder, h onnx.Value) onnx.Value
		want string
	}{
		{"a seed of one is no factor", func(b *onnx.Builder, h onnx.Value) onnx.Value {
			return sum(b, b.Op("Tanh", []onnx.Value{h}))
		}, "Mul Sub Mul"},
		{"half of a square", func(b *onnx.Builder, h onnx.Value) onnx.Value {
			return sum(b, b.Op("Div", pair(b.Op("Mul", pair(h, h)), b.Float(2))))
		}, "Mul"},
		{"factors are joined", func(b *onnx.Builder, h onnx.Value) onnx.Value {
			return sum(b, b.Op("Mul", pair(b.Op("Mul", pair(h, b.Float(3))), b.Float(5))))
		}, "Mul"},
		{"reshapes are joined", func(b *onnx.Builder, h onnx.Value) onnx.Value {
			y := b.Op("Reshape", pair(b.Op("Reshape", pair(h, b.Ints(2, 6))), b.Ints(12)))
			return sum(b, b.Op("Mul", pair(y, b.Input("w", onnx.TypeOf(tensor.Float32, 12)))))
		}, "Reshape Mul"},
		{"transposes are joined", func(b *onnx.Builder, h onnx.Value) onnx.Value {
			y := b.Op("Transpose", []onnx.Value{h}, onnx.AttrInts("perm", 1, 0))
			return sum(b, b.Op("Mul", pair(b.Op("Transpose", []onnx.Value{y}, onnx.AttrInts("perm", 1, 0)), b.Input("w", onnx.TypeOf(tensor.Float32, 4, 3)))))
		}, "Mul"},
		{"a mean is not expanded", func(b *onnx.Builder, h onnx.Value) onnx.Value {
			rows := b.Op("ReduceMean", []onnx.Value{h}, onnx.AttrInts("axes", 1), onnx.AttrInt("keepdims", 0))
			return sum(b, b.Op("Mul", pair(rows, rows)))
		}, "Mul Reshape Mul Mul"},
		{"equal terms are computed once", func(b *onnx.Builder, h onnx.Value) onnx.Value {
			t := b.Op("Tanh", []onnx.Value{h})
			return sum(b, b.Op("Add", pair(b.Op("Mul", pair(t, t)), b.Op("Mul", pair(t, t)))))
		}, "Mul Mul Sub Mul Mul"},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := onnx.NewBuilder("m", autodiff.MinOpset)
			x := b.Input("x", onnx.TypeOf(tensor.Float32, 4, 3))
			loss := b.Rename(c.loss(b, b.Op("Exp", []onnx.Value{x})), "loss")
			b.Output(loss, onnx.TypeOf(tensor.Float32))
			m, err := b.Model()
			if err != nil {
				t.Fatal(err)
			}
			g, err := autodiff.Grad(m, autodiff.Options{Objectives: []autodiff.Objective{{Losses: []autodiff.Loss{{Value: "loss"}}, Wrt: []string{"x"}}}})
			if err != nil {
				t.Fatal(err)
			}
			var ops []string
			for _, n := range g.Model.Graph.Node {
				if strings.HasPrefix(n.Name, "grad/") || strings.HasPrefix(n.Output[0], "grad/") {
					ops = append(ops, n.OpType)
				}
			}
			if got := strings.Join(ops, " "); got != c.want {
				var text strings.Builder
				onnx.Fprint(&text, g.Model, onnx.PrintOptions{})
				t.Errorf("gradient nodes %q, want %q\n%s", got, c.want, &text)
			}
		})
	}
}

// TestParametersAreNotConstants differentiates with respect to an initializer that happens to hold
// ones: its place in the graph must stay.
func TestParametersAreNotConstants(t *testing.T) {
	b := onnx.NewBuilder("m", autodiff.MinOpset)
	x := b.Input("x", onnx.TypeOf(tensor.Float32, 4, 1))
	w := b.Initializer("scale", tensor.Of([]float32{1}, 1))
	y := b.Op("Mul", []onnx.Value{b.Op("Exp", []onnx.Value{b.Op("Mul", []onnx.Value{x, w})}), w})
	b.Output(b.Rename(b.Op("ReduceSum", []onnx.Value{y}, onnx.AttrInt("keepdims", 0)), "loss"), onnx.TypeOf(tensor.Float32))
	m, err := b.Model()
	if err != nil {
		t.Fatal(err)
	}
	g, err := autodiff.Grad(m, autodiff.Options{Objectives: []autodiff.Objective{{Losses: []autodiff.Loss{{Value: "loss"}}, Wrt: []string{"scale", "x"}}}})
	if err != nil {
		t.Fatal(err)
	}
	uses := 0
	for _, n := range g.Model.Graph.Node {
		for _, in := range n.Input {
			if in == "scale" {
				uses++
			}
		}
	}
	// Twice in the forward pass, and in the gradients of its two readers.
	if uses != 4 {
		var text strings.Builder
		onnx.Fprint(&text, g.Model, onnx.PrintOptions{})
		t.Errorf("the parameter is read %d times, want 4\n%s", uses, &text)
	}
}
