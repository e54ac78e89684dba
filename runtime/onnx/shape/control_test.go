package shape

import (
	"errors"
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// node builds a node from "Op(in, in) -> out, out".
func node(text string, as ...*onnx.Attribute) *onnx.Node {
	left, right, _ := strings.Cut(text, " -> ")
	op, args, _ := strings.Cut(strings.TrimSuffix(left, ")"), "(")
	split := func(s string) []string {
		if s == "" {
			return nil
		}
		return strings.Split(s, ", ")
	}
	n := &onnx.Node{OpType: op, Input: split(args), Output: split(right), Attribute: as}
	if i := strings.LastIndex(op, "."); i >= 0 {
		n.Domain, n.OpType = op[:i], op[i+1:]
	}
	return n
}

// infos declares values from "name float32[2,n]"; a name alone declares no type.
func infos(tb testing.TB, texts ...string) (vs []*onnx.ValueInfo) {
	tb.Helper()
	for _, s := range texts {
		name, typ, ok := strings.Cut(s, " ")
		if !ok {
			vs = append(vs, &onnx.ValueInfo{Name: name})
			continue
		}
		f, err := parseFact(typ)
		if err != nil {
			tb.Fatal(err)
		}
		vs = append(vs, onnx.NewValueInfo(onnx.Value(name), f.Type))
	}
	return vs
}

func model(opset int, g *onnx.Graph) *onnx.Model {
	return &onnx.Model{IrVersion: 8, Graph: g, OpsetImport: []*onnx.OperatorSet{{Version: int64(opset)}}}
}

// wantTypes checks inferred types written as "name float32[2,n]".
func wantTypes(t *testing.T, e *Env, want ...string) {
	t.Helper()
	for _, w := range want {
		name, typ, _ := strings.Cut(w, " ")
		f, ok := e.Fact(onnx.Value(name))
		if got := printFact(f, strings.Contains(typ, "=")); !ok || got != typ {
			t.Errorf("%s is %s, want %s", name, got, typ)
		}
	}
}

func TestIfJoinsBranches(t *testing.T) {
	branch := func(n ...*onnx.Node) *onnx.Graph {
		return &onnx.Graph{Node: n, Output: infos(t, "y")}
	}
	mul := branch(node("Concat(x, x) -> y", onnx.AttrInt("axis", 1)))
	id := branch(node("Relu(x) -> y"))
	g := &onnx.Graph{
		Input:       infos(t, "x float32[b,3]", "c bool[]"),
		Initializer: []*onnx.TensorProto{onnx.ProtoOf("yes", tensor.Scalar(true))},
		Node: []*onnx.Node{
			node("If(c) -> either", onnx.AttrGraph("then_branch", mul), onnx.AttrGraph("else_branch", id)),
			node("If(yes) -> taken", onnx.AttrGraph("then_branch", mul), onnx.AttrGraph("else_branch", id)),
			node("If(c) -> ranks", onnx.AttrGraph("then_branch", branch(node("ReduceSum(x) -> y", onnx.AttrInt("keepdims", 0)))), onnx.AttrGraph("else_branch", id)),
		},
		Output: infos(t, "either", "taken", "ranks"),
	}
	e, err := Infer(model(13, g), nil)
	if err != nil {
		t.Fatal(err)
	}
	wantTypes(t, e, "either float32[b,?]", "taken float32[b,6]", "ranks float32[...]")
	if got := e.Body(id).Type("y").String(); got != "float32[b,3]" {
		t.Errorf("body of the branch has y as %s", got)
	}
	g.Node = g.Node[:1]
	g.Node[0].Attribute[0].G = branch(node("Cast(x) -> y", onnx.AttrInt("to", int(tensor.Int64))))
	if _, err = Infer(model(13, g), nil); err == nil || !strings.Contains(err.Error(), "once") {
		t.Errorf("branches of different types: %v", err)
	}
	g.Node[0].Attribute[0].G = branch(node("Reshape(x, y) -> y"))
	if _, err = Infer(model(13, g), nil); err == nil || !strings.Contains(err.Error(), `node If -> "either" > node Reshape -> "y": input 1 "y" is not defined before it is used`) {
		t.Errorf("an error in a branch: %v", err)
	}
}

func TestLoopJoinsCarriedTypes(t *testing.T) {
	body := &onnx.Graph{
		Input: infos(t, "i int64[]", "cond bool[]", "grow", "fix"),
		Node: []*onnx.Node{
			node("Identity(cond) -> cond_out"),
			node("Concat(grow, outer) -> grow_out", onnx.AttrInt("axis", 0)),
			node("Relu(fix) -> fix_out"),
			node("Cast(i) -> each", onnx.AttrInt("to", 1)),
		},
		Output: infos(t, "cond_out", "grow_out", "fix_out", "each"),
	}
	g := &onnx.Graph{
		Input:       infos(t, "start float32[1,3]", "outer float32[2,3]", "fix0 float32[b,7]", "n int64[]"),
		Initializer: []*onnx.TensorProto{onnx.ProtoOf("five", tensor.Scalar(int64(5))), onnx.ProtoOf("yes", tensor.Scalar(true))},
		Node: []*onnx.Node{
			node("Loop(five, yes, start, fix0) -> grown, fixed, all", onnx.AttrGraph("body", body)),
			node("Loop(n, , start, fix0) -> grown2, fixed2, all2", onnx.AttrGraph("body", body)),
		},
	}
	e, err := Infer(model(13, g), nil)
	if err != nil {
		t.Fatal(err)
	}
	wantTypes(t, e, "grown float32[?,3]", "fixed float32[b,7]", "all float32[5]", "all2 float32[?]")
	// The body's facts are those that hold in every iteration.
	if got := e.Body(body).Type("grow").String(); got != "float32[?,3]" {
		t.Errorf("inside the body, grow is %s", got)
	}
}

func TestScanKeepsStateAndAddsAxes(t *testing.T) {
	body := &onnx.Graph{
		Input:  infos(t, "s", "x"),
		Node:   []*onnx.Node{node("Add(s, x) -> s_out"), node("Identity(s_out) -> y")},
		Output: infos(t, "s_out", "y"),
	}
	g := &onnx.Graph{
		Input: infos(t, "s0 float32[b,4]", "xs float32[b,t,4]"),
		Node: []*onnx.Node{node("Scan(s0, xs) -> last, ys", onnx.AttrGraph("body", body), onnx.AttrInt("num_scan_inputs", 1),
			onnx.AttrInts("scan_input_axes", 1), onnx.AttrInts("scan_output_axes", -1))},
	}
	e, err := Infer(model(13, g), nil)
	if err != nil {
		t.Fatal(err)
	}
	wantTypes(t, e, "last float32[b,4]", "ys float32[b,4,t]")
	body.Node[0] = node("Concat(s, x) -> s_out", onnx.AttrInt("axis", 1))
	if _, err := Infer(model(13, g), nil); err == nil {
		t.Error("a state that changes its shape gave no error")
	}
}

func TestSequenceMap(t *testing.T) {
	body := &onnx.Graph{Input: infos(t, "x"), Node: []*onnx.Node{node("Shape(x) -> y")}, Output: infos(t, "y")}
	g := &onnx.Graph{
		Input: infos(t, "a float32[2,3]", "b float32[2,4]"),
		Node:  []*onnx.Node{node("SequenceConstruct(a, b) -> s"), node("SequenceMap(s) -> shapes", onnx.AttrGraph("body", body))},
	}
	e, err := Infer(model(18, g), nil)
	if err != nil {
		t.Fatal(err)
	}
	wantTypes(t, e, "s seq float32[2,?]", "shapes seq int64[2]")
}

func TestFunctionsAreInferredThroughTheirBodies(t *testing.T) {
	f := &onnx.Function{
		Name: "Scale", Domain: "mine", Input: []string{"x", "k", "bias"}, Output: []string{"y"}, Attribute: []string{"axis", "to"},
		AttributeProto: []*onnx.Attribute{onnx.AttrInt("keep", 0)},
		OpsetImport:    []*onnx.OperatorSet{{Version: 13}},
		Node: []*onnx.Node{
			node("Mul(x, k) -> m"),
			node("Clip(m, bias) -> n"),
			node("ReduceSum(n, axes) -> r", &onnx.Attribute{Name: "keepdims", Type: onnx.AttributeProto_INT, RefAttrName: "keep"}),
			node("Cast(r) -> y", &onnx.Attribute{Name: "to", Type: onnx.AttributeProto_INT, RefAttrName: "to"}),
		},
	}
	f.Node = append([]*onnx.Node{node("Constant() -> axes", &onnx.Attribute{Name: "value_ints", Type: onnx.AttributeProto_INTS, RefAttrName: "axis"})}, f.Node...)
	g := &onnx.Graph{
		Input: infos(t, "x float32[b,3]", "k float32[3]"),
		Node:  []*onnx.Node{node("mine.Scale(x, k) -> y", onnx.AttrInts("axis", 1), onnx.AttrInt("to", int(tensor.Float64)))},
	}
	m := model(18, g)
	m.Functions = []*onnx.Function{f}
	e, err := Infer(m, nil)
	if err != nil {
		t.Fatal(err)
	}
	wantTypes(t, e, "y float64[b]")
	g.Node[0].Input = append(g.Node[0].Input, "x")
	if _, err := Infer(m, nil); err == nil || !strings.Contains(err.Error(), `> node Clip -> "n"`) {
		t.Errorf("a bad bound inside a function: %v", err)
	}
	// A function that calls itself ends in an error, not in the stack.
	f.Node = append(f.Node, node("mine.Scale(x, k) -> z", onnx.AttrInts("axis", 1), onnx.AttrInt("to", 1)))
	g.Node[0].Input = g.Node[0].Input[:2]
	if _, err := Infer(m, nil); err == nil || !strings.Contains(err.Error(), "call itself") {
		t.Errorf("recursion: %v", err)
	}
}

func TestNestedWorkIsBounded(t *testing.T) {
	g := &onnx.Graph{Input: infos(t, "x float32[2]", "c bool[]"), Node: []*onnx.Node{node("Relu(x) -> y")}, Output: infos(t, "y")}
	for range 40 {
		inner := &onnx.Graph{Node: g.Node, Output: infos(t, "y")}
		g.Node = []*onnx.Node{node("If(c) -> y", onnx.AttrGraph("then_branch", inner), onnx.AttrGraph("else_branch", inner))}
	}
	_, err := Infer(model(13, g), nil)
	var at *Error
	if !errors.As(err, &at) || !strings.Contains(err.Error(), "nested too deeply") {
		t.Errorf("two to the power of forty branches: %v", err)
	}
}
