//go:build cgo

package ort_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/runtime/engine"
	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// TestWrongKernelsAreRefused: what ONNX Runtime is known to compute wrongly is refused by name, in
// the graph, in a branch and in a function, and what it computes right is not.
func TestWrongKernelsAreRefused(t *testing.T) {
	e := open(t)
	defer e.Close()
	vec := func(shape ...int) onnx.TensorType { return onnx.TypeOf(tensor.Float32, shape...) }
	attention := func(mask tensor.DType, attrs ...*onnx.Attribute) func(b *onnx.Builder) *onnx.Node {
		return func(b *onnx.Builder) *onnx.Node {
			in := []string{string(b.Input("q", vec(1, 1, 2, 4))), string(b.Input("k", vec(1, 1, 3, 4))), string(b.Input("v", vec(1, 1, 3, 4)))}
			if mask != tensor.Undefined {
				in = append(in, string(b.Input("mask", onnx.TypeOf(mask, 2, 3))))
			}
			return &onnx.Node{OpType: "Attention", Name: "suspect", Input: in, Output: []string{"ignored", "", "", "y"}, Attribute: attrs}
		}
	}
	mode := func(m int) *onnx.Attribute { return onnx.AttrInt("qk_matmul_output_mode", m) }
	unpool := func(shape bool) func(b *onnx.Builder) *onnx.Node {
		return func(b *onnx.Builder) *onnx.Node {
			in := []string{string(b.Input("x", vec(1, 1, 2, 2))), string(b.Const(tensor.Of([]int64{5, 7, 13, 15}, 1, 1, 2, 2)))}
			if shape {
				in = append(in, string(b.Ints(1, 1, 5, 5)))
			}
			return &onnx.Node{OpType: "MaxUnpool", Name: "suspect", Input: in, Output: []string{"y"}, Attribute: []*onnx.Attribute{onnx.AttrInts("kernel_shape", 2, 2), onnx.AttrInts("strides", 2, 2)}}
		}
	}
	for _, c := range []struct {
		name   string
		node   func(b *onnx.Builder) *onnx.Node
		out    onnx.TensorType
		reason string
	}{
		{"unpool", unpool(false), vec(1, 1, 4, 4), ""},
		{"unpool to a shape", unpool(true), vec(1, 1, 5, 5), "indices"},
		{"scores", attention(tensor.Bool), vec(1, 1, 2, 3), ""},
		{"probabilities", attention(tensor.Bool, mode(3)), vec(1, 1, 2, 3), ""},
		{"scores with an additive mask", attention(tensor.Float32, mode(2)), vec(1, 1, 2, 3), ""},
		{"masked scores", attention(tensor.Bool, mode(2)), vec(1, 1, 2, 3), "-Inf"},
		{"causal scores", attention(tensor.Undefined, mode(1), onnx.AttrInt("is_causal", 1)), vec(1, 1, 2, 3), "-Inf"},
	} {
		for _, place := range []string{"graph", "branch"} {
			b := onnx.NewBuilder("suspects", 24)
			n := c.node(b)
			if place == "branch" {
				body := func() *onnx.Graph {
					return &onnx.Graph{Name: "body", Node: []*onnx.Node{n}, Output: []*onnx.ValueInfo{onnx.NewValueInfo("y", c.out)}}
				}
				n = &onnx.Node{OpType: "If", Input: []string{string(b.Input("flag", onnx.TypeOf(tensor.Bool)))}, Output: []string{"chosen"},
					Attribute: []*onnx.Attribute{onnx.AttrGraph("then_branch", body()), onnx.AttrGraph("else_branch", body())}}
			}
			b.Append(n)
			b.Output(onnx.Value(n.Output[len(n.Output)-1]), c.out)
			m, err := b.Model()
			if err != nil {
				t.Fatal(err)
			}
			s, err := e.Compile(m, engine.Options{})
			var u *engine.UnsupportedError
			switch {
			case c.reason == "" && err != nil:
				t.Errorf("%s in a %s: %v", c.name, place, err)
			case c.reason != "" && (!errors.As(err, &u) || !strings.Contains(u.Node, `"suspect"`) || !strings.Contains(u.Reason, c.reason)):
				t.Errorf("%s in a %s: %v, expected to be refused because of %q", c.name, place, err, c.reason)
			}
			if err == nil {
				if err := s.Close(); err != nil {
					t.Error(err)
				}
			}
		}
	}
	// A function has no types: what might be a mask of bools is taken for one.
	b := onnx.NewBuilder("function", 24)
	n := attention(tensor.Float32, mode(2))(b)
	f := &onnx.Function{Name: "Inside", Domain: "local", Input: slices.Clone(n.Input), Output: []string{"y"}, Node: []*onnx.Node{n},
		OpsetImport: []*onnx.OperatorSet{{Version: 24}}}
	b.Append(&onnx.Node{OpType: "Inside", Domain: "local", Input: n.Input, Output: []string{"z"}})
	b.Output("z", vec(1, 1, 2, 3))
	m, err := b.Model()
	if err != nil {
		t.Fatal(err)
	}
	m.Functions = append(m.Functions, f)
	m.SetOpset("local", 1)
	var u *engine.UnsupportedError
	if _, err := e.Compile(m, engine.Options{}); !errors.As(err, &u) || u.Op != "Attention" {
		t.Errorf("in a function: %v", err)
	}
}
