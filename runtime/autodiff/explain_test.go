package autodiff_test

import (
	"slices"
	"testing"

	"github.com/onnxrl/onnxrl/runtime/autodiff"
	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// net is a two-layer model with a composite operator (Mish) between; objective names and node names
// both hold slashes.
func net(t *testing.T) *onnx.Model {
	t.Helper()
	b := onnx.NewBuilder("net", 18)
	x := b.Input("x", onnx.TypeOf(tensor.Float32, 3, 2))
	w := b.Initializer("w", tensor.Of([]float32{1, 2, 3, 4}, 2, 2))
	b.SetScope("/fc/")
	h := b.Op("MatMul", []onnx.Value{x, w})
	b.SetScope("/act/")
	h = b.Op("MeanVarianceNormalization", []onnx.Value{h}, onnx.AttrInts("axes", 1))
	b.SetScope("/head/")
	y := b.Op("MatMul", []onnx.Value{h, w})
	b.Output(y, onnx.TypeOf(tensor.Float32, 3, 2))
	m, err := b.Model()
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestEveryGradientNodeIsExplained(t *testing.T) {
	m := net(t)
	for _, name := range []string{"", "actor", "critic/1"} {
		g, err := autodiff.Grad(m, autodiff.Options{Objectives: []autodiff.Objective{{Name: name, Losses: []autodiff.Loss{{Value: "/head/MatMul"}}, Wrt: []string{"w", "x"}}}})
		if err != nil {
			t.Fatal(err)
		}
		e := autodiff.Explain(g.Model, m, func(v onnx.Value) (onnx.TensorType, bool) { t := g.Env.Type(v); return t, t.DType != tensor.Undefined })
		var nodes []string
		for _, l := range e.Forward {
			nodes = append(nodes, l.Node)
			if len(l.Gradients) == 0 || len(l.Gradients) != len(l.GradientOps) {
				t.Errorf("objective %q: %s has gradient nodes %v", name, l.Node, l.Gradients)
			}
		}
		if want := []string{"/fc/MatMul", "/act/MeanVarianceNormalization", "/head/MatMul"}; !slices.Equal(nodes, want) {
			t.Errorf("objective %q: forward nodes %v, expected %v", name, nodes, want)
		}
		if l := e.Forward[1]; l.Expanded < 3 || l.Op != "MeanVarianceNormalization" {
			t.Errorf("objective %q: %s was expanded into %d nodes", name, l.Node, l.Expanded)
		}
		if l := e.Forward[0]; l.ForwardFLOPs != 2*3*2*2 || l.GradientFLOPs < 2*l.ForwardFLOPs {
			t.Errorf("objective %q: %s takes %d and %d operations", name, l.Node, l.ForwardFLOPs, l.GradientFLOPs)
		}
		// w is used twice, so there is one sum; nothing may be left over.
		if len(e.Sums) != 1 || len(e.Lost) != 0 {
			t.Errorf("objective %q: sums %v, lost %v", name, e.Sums, e.Lost)
		}
		if want := []string{name}; name != "" && !slices.Equal(e.Objectives, want) || name == "" && len(e.Objectives) > 0 {
			t.Errorf("objectives %v, expected %v", e.Objectives, want)
		}
		total := len(e.Seeds) + len(e.Sums)
		for _, l := range e.Forward {
			total += len(l.Gradients) + max(l.Expanded, 1)
		}
		if total != len(g.Model.Graph.Node) {
			t.Errorf("objective %q: %d nodes explained of %d", name, total, len(g.Model.Graph.Node))
		}
	}
}

func TestOrigin(t *testing.T) {
	m := &onnx.Model{Graph: &onnx.Graph{}}
	for _, n := range []string{"a", "a/b", "/c", "actor", "grad/a/Mul"} {
		m.Graph.Node = append(m.Graph.Node, &onnx.Node{OpType: "Relu", Name: n})
	}
	e := autodiff.Explain(m, nil, nil)
	tests := []struct {
		name string
		want autodiff.Origin
	}{
		{"grad/a/Mul", autodiff.Origin{Role: autodiff.RoleGradient, Forward: "a"}},
		{"grad/a/b/Mul", autodiff.Origin{Role: autodiff.RoleGradient, Forward: "a/b"}},
		{"grad//c/Mul", autodiff.Origin{Role: autodiff.RoleGradient, Forward: "/c"}},
		{"grad/pi//c/Mul", autodiff.Origin{Role: autodiff.RoleGradient, Objective: "pi", Forward: "/c"}},
		{"grad/actor//c/Mul", autodiff.Origin{Role: autodiff.RoleGradient, Objective: "actor", Forward: "/c"}},
		{"grad/grad/a/Mul/Neg", autodiff.Origin{Role: autodiff.RoleGradient, Forward: "grad/a/Mul"}},
		{"grad/loss/Mul", autodiff.Origin{Role: autodiff.RoleSeed}},
		{"grad/pi/loss/Mul", autodiff.Origin{Role: autodiff.RoleSeed, Objective: "pi"}},
		{"grad/Add", autodiff.Origin{Role: autodiff.RoleSum}},
		{"grad/pi/Add", autodiff.Origin{Role: autodiff.RoleSum, Objective: "pi"}},
		{"grad//gone/Mul", autodiff.Origin{Role: autodiff.RoleLost, Forward: "/gone"}},
	}
	for _, c := range tests {
		if got, is := e.Origin(c.name); !is || got != c.want {
			t.Errorf("%s: got %+v, expected %+v", c.name, got, c.want)
		}
	}
	if _, is := e.Origin("a/b"); is {
		t.Error("a forward node has an origin")
	}
}
