package ort

import (
	"errors"
	"testing"

	"github.com/onnxrl/onnxrl/runtime/engine"
	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/sorted"
)

// The messages are ONNX Runtime's own, of 1.27 to 1.32.
func TestErrorsNameTheNode(t *testing.T) {
	m := &onnx.Model{Graph: &onnx.Graph{Node: []*onnx.Node{
		{Name: "zz", OpType: "Zork", Input: []string{"x"}, Output: []string{"a"}},
		{Name: "far", Domain: "a.b", OpType: "Zork", Input: []string{"gh"}, Output: []string{"b"}},
		{OpType: "Nameless", Output: []string{"c"}},
		{OpType: "If", Output: []string{"d"}, Attribute: []*onnx.Attribute{onnx.AttrGraph("then_branch", &onnx.Graph{Node: []*onnx.Node{
			{Name: "deep", OpType: "Erf", Output: []string{"e"}}}})}},
	}}}
	cases := []struct {
		message     string
		unsupported bool
		op, node    string
	}{
		{`Could not find an implementation for Erf(13) node with name 'deep'`, true, "Erf", `node "deep" (Erf)`},
		{`This is an invalid model. In Node, ("zz", Zork, "", -1) : ("x": tensor(float),) -> ("a": tensor(float),) , Error No Op registered for Zork with domain_version of 18`,
			true, "Zork", `node "zz" (Zork)`},
		{`This is an invalid model. In Node, ("", Nameless, "", -1) : () -> ("c": tensor(float),) , Error No Op registered for Nameless with domain_version of 18`,
			true, "Nameless", `node Nameless -> "c"`},
		{`Fatal error: a.b:Zork(-1) is not a registered function/op`, true, "a.b.Zork", `node "far" (a.b.Zork)`},
		{`Fatal error: q:Other(-1) is not a registered function/op`, true, "q.Other", `node q.Other`},
		{`model.cc:192 Unsupported model IR version: 99, max supported IR version: 13`, true, "", "model"},
		{`x.h:46 ONNX Runtime only *guarantees* support for models stamped with official released onnx opset versions. Opset 99 is under development`,
			true, "", "model"},
		{`Invalid model. Node input 'gh' is not a graph input, initializer, or output of a previous node.`, false, "", `node "far" (a.b.Zork)`},
		{`This is an invalid model. Type Error: Type 'tensor(string)' of input parameter (x) of operator (Relu) in node (zz) is invalid.`,
			true, "Relu", "node Relu"},
		{`This is an invalid model. Type Error: Type 'tensor(bfloat16)' of input parameter (x) of operator (Erf) in node (deep) is invalid.`,
			true, "Erf", `node "deep" (Erf)`},
		{`Failed to find kernel for Erf(13) (node:'deep' ep:'CPUExecutionProvider'). Kernel not found`, true, "Erf", `node "deep" (Erf)`},
		{`Node (mm) Op (MatMul) [ShapeInferenceError] Incompatible dimensions for matrix multiplication`, false, "", `node "mm"`},
		{`This is an invalid model. Error: the graph is not acyclic.`, false, "", ""},
		{`Protobuf parsing failed.`, false, "", ""},
	}
	ran := 0
	for _, c := range cases {
		ran++
		err := compileError(m, c.message)
		var unsupported *engine.UnsupportedError
		var invalid *ModelError
		switch {
		case c.unsupported && errors.As(err, &unsupported):
			if unsupported.Op != c.op || unsupported.Node != c.node || unsupported.Reason != c.message || unsupported.Engine != Name {
				t.Errorf("%s:\n%+v, expected op %q, node %q", c.message, unsupported, c.op, c.node)
			}
		case !c.unsupported && errors.As(err, &invalid):
			if invalid.Node != c.node || invalid.Message != c.message {
				t.Errorf("%s:\n%+v, expected node %q", c.message, invalid, c.node)
			}
		default:
			t.Errorf("%s:\n%T, unsupported expected: %v", c.message, err, c.unsupported)
		}
	}
	if ran != 14 {
		t.Errorf("%d messages tried, expected 14", ran)
	}
}

func TestPlacesInForeignSourceAreLeftOut(t *testing.T) {
	const said = "Unsupported model IR version: 99, max supported IR version: 13"
	err := compileError(&onnx.Model{Graph: &onnx.Graph{}}, "/onnxruntime_src/onnxruntime/core/graph/model.cc:192 onnxruntime::Model::Model(onnx::ModelProto&&, const onnxruntime::PathString&, const onnxruntime::ModelOptions&) "+said)
	var e *engine.UnsupportedError
	if !errors.As(err, &e) || e.Reason != said {
		t.Errorf("%v", err)
	}
}

func TestRunErrorNamesTheNode(t *testing.T) {
	for message, want := range sorted.All(map[string]struct{ node, says string }{
		"Non-zero status code returned while running Add node. Name:'sum' Status Message: 2 by 3\nmore": {`node "sum" (Add)`, "2 by 3\nmore"},
		"something else": {"", "something else"},
	}) {
		var e *engine.RunError
		if err := runError(errors.New(message), nil); !errors.As(err, &e) || e.Node != want.node || e.Err.Error() != want.says || e.Engine != Name {
			t.Errorf("%q: %#v", message, e)
		}
	}
}
