package onnx

import (
	"errors"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/onnxrl/onnxrl/runtime/sorted"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// evalAdd computes Add of equal shapes, and what EvalConstant does.
func evalAdd(n *Node, opset int, in []*tensor.Tensor) ([]*tensor.Tensor, error) {
	switch n.OpType {
	case "Add":
		out := tensor.New(tensor.Float32, in[0].Shape()...)
		for i := range out.Float32s() {
			out.Float32s()[i] = in[0].Float32s()[i] + in[1].Float32s()[i]
		}
		return []*tensor.Tensor{out}, nil
	case "Split":
		return []*tensor.Tensor{tensor.Of(in[0].Float32s()[:1], 1), nil, tensor.Of(in[0].Float32s()[1:], 1)}, nil
	case "Exp":
		return nil, nil
	}
	return EvalConstant(n, opset, in)
}

func TestFold(t *testing.T) {
	m := model("x,o", "a,b,o,unused", "y,z",
		node("Constant", "", "k", AttrFloats("value_floats", 3, 4)), node("Add", "a,k", "s"), node("Add", "s,b", "t"), node("Add", "x,t", "y"),
		node("Add", "a,o", "over"), node("Add", "a,b", "z"), node("Split", "t,-", "p,-,q"), node("Neg", "a", "n"), node("RandomNormalLike", "a", "r"),
		node("Mul", "p,q", "pq"), node("Add", "pq,over", "more"), node("Add", "n,r", "more2"),
		node("If", "c", "w", AttrGraph("then_branch", subgraph("", "u", node("Add", "a,s", "v"), node("Add", "v,x", "u"))), AttrGraph("else_branch", subgraph("", "e", node("Add", "x,x", "e")))))
	before := proto.Clone(m)
	c, n, err := Fold(m, evalAdd, FoldLimits{})
	if err != nil {
		t.Fatal(err)
	}
	want := "Add(x,t)->y; Add(a,o)->over; Add(a,b)->z; Neg(a)->n; RandomNormalLike(a)->r; Mul(p,q)->pq; Add(pq,over)->more; Add(n,r)->more2; If(c)->w{Add(v,x)->u => u}{Add(x,x)->e => e}"
	if got := brief(c.Graph); got != want || n != 5 {
		t.Errorf("folded %d nodes:\n%s, want\n%s", n, got, want)
	}
	if got := initNames(c.Graph); got != "a,b,o,t,p,q" {
		t.Errorf("initializers are %s", got)
	}
	for name, want := range sorted.All(map[string][]float32{"t": {5, 8}, "p": {5}, "q": {8}}) {
		x, err := TensorOf(c.Graph.FindInitializer(name))
		if err != nil {
			t.Fatal(err)
		}
		for i, v := range want {
			if x.Float32s()[i] != v {
				t.Errorf("%s is %v, want %v", name, x.Float32s(), want)
			}
		}
	}
	if v := c.Graph.Node[8].Subgraphs()[0].FindInitializer("v"); v == nil {
		t.Error("the sub-graph was not folded")
	}
	if !proto.Equal(before, m) {
		t.Error("Fold changed its argument")
	}
	for name, l := range sorted.All(map[string]FoldLimits{
		"kept":   {Keep: func(v Value) bool { return v == "a" }},
		"output": {MaxBytes: 7}, "input": {MaxInputBytes: 7}, "types": {MaxBytes: 8, Types: func(v Value) (TensorType, bool) { return TypeOf(tensor.Float32, 1<<40), true }},
	}) {
		got, _, err := Fold(m, evalAdd, l)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(brief(got.Graph), "Add(a,k)->s") {
			t.Errorf("limit %s was not kept: %s", name, brief(got.Graph))
		}
	}
}

func TestFoldReportsBadEvaluators(t *testing.T) {
	m := model("", "a", "y", node("Add", "a,a", "h"), node("Neg", "h", "y"))
	for want, eval := range sorted.All(map[string]Evaluator{
		"returned 0 outputs":        func(*Node, int, []*tensor.Tensor) ([]*tensor.Tensor, error) { return nil, nil },
		`did not return output "h"`: func(*Node, int, []*tensor.Tensor) ([]*tensor.Tensor, error) { return []*tensor.Tensor{nil}, nil },
	}) {
		if _, _, err := Fold(m, eval, FoldLimits{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want one about %q", err, want)
		}
	}
	_, n, err := Fold(m, func(*Node, int, []*tensor.Tensor) ([]*tensor.Tensor, error) { return nil, errors.New("cannot") }, FoldLimits{})
	if err != nil || n != 0 {
		t.Errorf("an evaluator that gives up: %d, %v", n, err)
	}
	m.Graph.Initializer[0].RawData = []byte{1}
	if _, _, err := Fold(m, evalAdd, FoldLimits{}); err == nil || !strings.Contains(err.Error(), "add:h") {
		t.Errorf("a broken initializer: %v", err)
	}
}

func TestEvalConstant(t *testing.T) {
	x := tensor.New(tensor.Float32, 2, 3)
	for _, c := range []struct {
		n    *Node
		want string
	}{{node("Shape", "x", "y"), "[2, 3]"}, {node("Size", "x", "y"), "6"}, {node("Constant", "", "y", AttrInt("value_int", 4)), "4"}} {
		out, err := EvalConstant(c.n, 18, []*tensor.Tensor{x})
		if err != nil {
			t.Fatal(err)
		}
		if got, _ := elementsText(out[0]); got != c.want {
			t.Errorf("%s gives %s, want %s", c.n.OpType, got, c.want)
		}
	}
	for _, n := range []*Node{node("Shape", "x", "y", AttrInt("start", 1)), node("Add", "x,x", "y")} {
		if _, err := EvalConstant(n, 18, []*tensor.Tensor{x}); err == nil {
			t.Errorf("%s was evaluated", n.OpType)
		}
	}
	for _, in := range [][]*tensor.Tensor{nil, {nil}} {
		if _, err := EvalConstant(node("Identity", "-", "y"), 18, in); err == nil {
			t.Error("an Identity of nothing was evaluated")
		}
	}
}
