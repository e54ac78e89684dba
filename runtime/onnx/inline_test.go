package onnx

import (
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/onnxrl/onnxrl/runtime/tensor"
)

func function(name, in, out string, nodes ...*Node) *Function {
	return &Function{Domain: "local", Name: name, Input: fields(in), Output: fields(out), Node: nodes, OpsetImport: []*OperatorSet{{Version: DefaultOpset}, {Domain: "local", Version: 1}}}
}

func call(name, in, out string, attrs ...*Attribute) *Node {
	n := node(name, in, out, attrs...)
	n.Domain = "local"
	n.Name = "call_" + out
	return n
}

func withFunctions(m *Model, fs ...*Function) *Model {
	m.SetOpset("local", 1)
	m.Functions = fs
	return m
}

func TestInlineFunctions(t *testing.T) {
	ref := func(name, of string, typ AttributeProto_AttributeType) *Attribute {
		return &Attribute{Name: name, Type: typ, RefAttrName: of}
	}
	leaky := function("Leaky", "a", "b", node("LeakyRelu", "a", "m", ref("alpha", "slope", AttributeProto_FLOAT)), node("Neg", "m", "b"))
	leaky.Attribute = []string{"slope"}
	outer := function("Outer", "a,k", "o,p", call("Leaky", "a", "t", ref("slope", "s", AttributeProto_FLOAT)), node("Add", "t,k", "o"), node("Neg", "t", "p"))
	outer.AttributeProto = []*Attribute{AttrFloat("s", 0.5)}
	branch := function("Branch", "c,a", "y", node("If", "c", "y",
		AttrGraph("then_branch", subgraph("", "u", node("Neg", "a", "u"))),
		AttrGraph("else_branch", subgraph("", "v", node("LeakyRelu", "a", "v", ref("alpha", "s", AttributeProto_FLOAT))))))
	branch.AttributeProto = []*Attribute{AttrFloat("s", 0.25)}
	same := function("Same", "a", "a")
	twice := function("Twice", "a", "b,b", node("Neg", "a", "b"))
	optional := function("Optional", "a,lo,hi", "b", node("Clip", "a,lo,hi", "b"))
	overloaded := function("Leaky", "a", "b", node("Abs", "a", "b"))
	overloaded.Overload = "abs"
	overCall := call("Leaky", "x", "y")
	overCall.Overload = "abs"

	cases := []struct {
		name string
		m    *Model
		want string
	}{
		{"nested with attributes", model("x,k", "", "y,z", call("Outer", "x,k", "y,z", AttrFloat("s", 0.125))),
			"LeakyRelu(x)->call_y,z/call_t/m; Neg(call_y,z/call_t/m)->call_y,z/t; Add(call_y,z/t,k)->y; Neg(call_y,z/t)->z"},
		{"default and left-out output", model("x,k", "", "y", call("Outer", "x,k", "y")),
			"LeakyRelu(x)->call_y/call_t/m; Neg(call_y/call_t/m)->call_y/t; Add(call_y/t,k)->y; Neg(call_y/t)->call_y/p"},
		{"two calls", model("x", "", "z", call("Leaky", "x", "y"), call("Leaky", "y", "z")),
			"LeakyRelu(x)->call_y/m; Neg(call_y/m)->y; LeakyRelu(y)->call_z/m; Neg(call_z/m)->z"},
		{"taken names", model("x,call_y/m", "", "y", call("Leaky", "x", "y")),
			"LeakyRelu(x)->call_y/m_1; Neg(call_y/m_1)->y"},
		{"sub-graphs of the body", model("x,c", "", "y", call("Branch", "c,x", "y")),
			"If(c)->y{Neg(x)->call_y/u => call_y/u}{LeakyRelu(x)->call_y/v => call_y/v}"},
		{"call in a sub-graph", model("x,c", "", "y", node("If", "c", "y", AttrGraph("then_branch", subgraph("", "h", call("Leaky", "x", "h"))), AttrGraph("else_branch", subgraph("", "e", node("Neg", "x", "e"))))),
			"If(c)->y{LeakyRelu(x)->call_h/m; Neg(call_h/m)->h => h}{Neg(x)->e => e}"},
		{"an input passed through", model("x", "", "y", call("Same", "x", "y")), "Identity(x)->y"},
		{"one value returned twice", model("x", "", "y,z", call("Twice", "x", "y,z")), "Neg(x)->y; Identity(y)->z"},
		{"left-out inputs", model("x,h", "", "y,z", call("Optional", "x,-,h", "y"), call("Optional", "x", "z")), "Clip(x,,h)->y; Clip(x)->z"},
		{"overloads", model("x", "", "y", overCall), "Abs(x)->y"},
	}
	for _, c := range cases {
		withFunctions(c.m, leaky, outer, branch, same, twice, optional, overloaded)
		before := proto.Clone(c.m)
		got, err := InlineFunctions(c.m)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		if s := brief(got.Graph); s != c.want {
			t.Errorf("%s:\n%s, want\n%s", c.name, s, c.want)
		}
		if !proto.Equal(before, c.m) {
			t.Errorf("%s: the model or a function was changed", c.name)
		}
		if len(got.Functions) != 0 || got.Opset("local") != 0 {
			t.Errorf("%s: functions or their domain are left", c.name)
		}
	}
	slopes := func(m *Model) (out []float32) {
		got, err := InlineFunctions(m)
		if err != nil {
			t.Fatal(err)
		}
		_ = got.EachGraph(func(g *Graph) error {
			for _, n := range g.Node {
				if n.OpType == "LeakyRelu" {
					out = append(out, n.Float("alpha", -1))
				}
			}
			return nil
		})
		return out
	}
	for i, want := range []float32{0.125, 0.5, -1, -1, 0.25} {
		if got := slopes(cases[i].m); got[0] != want {
			t.Errorf("%s: alpha is %v, want %v", cases[i].name, got, want)
		}
	}
}

func TestInlineFunctionsRefuses(t *testing.T) {
	self := function("Self", "a", "b", call("Other", "a", "b"))
	other := function("Other", "a", "b", call("Self", "a", "b"))
	old := function("Old", "a", "b", node("ReduceMean", "a", "b", AttrInts("axes", 0)))
	old.OpsetImport[0].Version = 13
	fine := function("Fine", "a", "b", node("Relu", "a", "b"))
	fine.OpsetImport[0].Version = 14
	undefined := function("Undefined", "a", "b", node("Add", "a,ghost", "b"))
	undeclared := function("Undeclared", "a", "b", node("LeakyRelu", "a", "b", &Attribute{Name: "alpha", Type: AttributeProto_FLOAT, RefAttrName: "ghost"}))
	cases := []struct{ fn, in, want string }{
		{"Self", "x", "calls itself"}, {"Old", "x", "ReduceMean changed"}, {"Undefined", "x", `"ghost"`}, {"Undeclared", "x", `"ghost"`}, {"Fine", "x,x", "takes 1 inputs"}, {"Fine", "x", ""},
	}
	for _, c := range cases {
		_, err := InlineFunctions(withFunctions(model("x", "", "y", call(c.fn, c.in, "y")), self, other, old, fine, undefined, undeclared))
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), `"call_`)) {
			t.Errorf("%s: error %v, want one about %q naming the call", c.fn, err, c.want)
		}
	}
	like := function("Relu", "a", "b", node("Neg", "a", "b"))
	like.Domain = ""
	if _, err := InlineFunctions(withFunctions(model("x", "", "y", node("Relu", "x", "y")), like)); err == nil || !strings.Contains(err.Error(), "called like the operator Relu") {
		t.Errorf("a function called like an operator: %v", err)
	}
	if _, err := InlineFunctions(withFunctions(model("x", "", "y"), fine, fine)); err == nil {
		t.Error("two functions of one name were accepted")
	}
	// Thirty functions that each call the next one twice would make a billion nodes.
	var bomb []*Function
	for i := range 30 {
		name, next := "B"+string(rune('A'+i)), "B"+string(rune('A'+i+1))
		bomb = append(bomb, function(name, "a", "b", call(next, "a", "m"), call(next, "m", "b")))
	}
	bomb = append(bomb, function("B"+string(rune('A'+30)), "a", "b", node("Neg", "a", "b")))
	if _, err := InlineFunctions(withFunctions(model("x", "", "y", call("BA", "x", "y")), bomb...)); err == nil || !strings.Contains(err.Error(), "exceeds") {
		t.Errorf("exponential functions: %v", err)
	}
}

func TestInlineBody(t *testing.T) {
	m := model("x,c", "", "y", node("If", "c", "h", AttrGraph("then_branch", subgraph("", "t", node("HardSwish", "x", "t"))), AttrGraph("else_branch", subgraph("", "e", node("HardSwish", "x", "e")))), node("Neg", "h", "y"))
	n := m.Graph.Node[0].Subgraphs()[1].Node[0]
	body := SchemaBody("", "HardSwish", 18)
	got, err := InlineBody(m, n, body)
	if err != nil {
		t.Fatal(err)
	}
	want := "If(c)->h{HardSwish(x)->t => t}{HardSigmoid(x)->hardswish:e/HS_X; Mul(x,hardswish:e/HS_X)->e => e}; Neg(h)->y"
	if s := brief(got.Graph); s != want {
		t.Errorf("inlined\n%s, want\n%s", s, want)
	}
	if SchemaBody("", "HardSwish", 18) != body || SchemaBody("ai.onnx", "HardSwish", 18) != body || SchemaBody("", "Gemm", 18) != nil {
		t.Error("schema bodies are wrong")
	}
	if _, err := InlineBody(m, &Node{OpType: "HardSwish"}, body); err == nil {
		t.Error("a foreign node was accepted")
	}
}

func TestConstantsToInitializers(t *testing.T) {
	sparse := &SparseTensorProto{Dims: []int64{3}, Values: ProtoOf("", tensor.Of([]float32{9}, 1)), Indices: ProtoOf("", tensor.Of([]int64{1}, 1))}
	forms := []struct {
		attr *Attribute
		want string
	}{
		{AttrTensor("value", tensor.Of([]float32{1, 2}, 2)), "float32[2]"}, {AttrInt("value_int", 3), "int64[]"}, {AttrInts("value_ints", 1, 2, 3), "int64[3]"},
		{AttrFloat("value_float", 1), "float32[]"}, {AttrFloats("value_floats", 1, 2), "float32[2]"}, {AttrStr("value_string", "s"), "string[]"},
		{AttrStrs("value_strings", "s", "t"), "string[2]"}, {&Attribute{Name: "sparse_value", Type: AttributeProto_SPARSE_TENSOR, SparseTensor: sparse}, "float32[3]"},
		{AttrInts("value_ints"), "int64[0]"},
	}
	m := model("", "", "out")
	for i, f := range forms {
		m.Graph.Node = append(m.Graph.Node, node("Constant", "", "c"+string(rune('0'+i)), f.attr))
	}
	m.Graph.Node = append(m.Graph.Node, node("Constant", "", "out", AttrFloat("value_float", 1)),
		node("If", "c", "y", AttrGraph("then_branch", subgraph("", "s", node("Constant", "", "k", AttrInt("value_int", 1)), node("Neg", "k", "s")))))
	got, err := ConstantsToInitializers(m)
	if err != nil {
		t.Fatal(err)
	}
	if s := brief(got.Graph); s != "Constant()->out; If(c)->y{Neg(k)->s => s}" {
		t.Errorf("nodes left: %s", s)
	}
	if len(got.Graph.Initializer) != len(forms) {
		t.Fatalf("%d initializers, want %d", len(got.Graph.Initializer), len(forms))
	}
	for i, f := range forms {
		x, err := TensorOf(got.Graph.FindInitializer("c" + string(rune('0'+i))))
		if err != nil {
			t.Errorf("form %s: %v", f.attr.Name, err)
		} else if x.String() != strings.ReplaceAll(f.want, ",", " ") {
			t.Errorf("form %s gave %v, want %s", f.attr.Name, x, f.want)
		}
	}
	if got.Graph.Node[1].Subgraphs()[0].FindInitializer("k") == nil || len(m.Graph.Node) != len(forms)+2 {
		t.Error("the sub-graph's constant is missing, or the argument changed")
	}
	for _, bad := range []*Node{node("Constant", "", "c"), node("Constant", "", "c", AttrInt("value_int", 1), AttrInt("value_float", 1)), node("Constant", "", "c", AttrInt("volume", 1)), node("Constant", "", "c", AttrInt("value", 1))} {
		if _, err := ConstantsToInitializers(model("", "", "", bad)); err == nil || !strings.Contains(err.Error(), "constant:c") {
			t.Errorf("%v: error %v", bad, err)
		}
	}
}
