package onnx

import (
	"errors"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/runtime/sorted"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// torchModels loads the models that PyTorch exported for the gradient fixtures.
func torchModels(t testing.TB) map[string]*Model {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join("..", "autodiff", "testdata", "torch", "*", "model.onnx"))
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]*Model{}
	for _, p := range paths {
		m, err := Load(p)
		if err != nil {
			t.Fatal(err)
		}
		out[filepath.Base(filepath.Dir(p))] = m
	}
	if len(out) < 14 {
		t.Fatalf("found %d exported models, want at least 14", len(out))
	}
	return out
}

func TestExportedModelsAreValid(t *testing.T) {
	for name, m := range sorted.All(torchModels(t)) {
		r := CheckOptions{Strict: true, Finite: true}.Check(m)
		if err := r.Err(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if c, err := InlineFunctions(m); err != nil {
			t.Errorf("%s: %v", name, err)
		} else if err := Check(c); err != nil {
			t.Errorf("%s with functions inlined: %v", name, err)
		}
	}
}

func TestCheckReportsEveryKindOfProblem(t *testing.T) {
	relu := func() *Model { return model("x", "w", "y", node("Relu", "x", "y")) }
	with := func(nodes ...*Node) *Model {
		m := model("x", "w", "y", nodes...)
		m.Graph.Input = append(m.Graph.Input, NewValueInfo("k", TypeOf(tensor.Bool)))
		return m
	}
	edit := func(f func(m *Model)) *Model {
		m := relu()
		f(m)
		return m
	}
	branches := func(then *Graph) *Node {
		return node("If", "k", "y", AttrGraph("then_branch", then), AttrGraph("else_branch", subgraph("", "else_out", node("Neg", "x", "else_out"))))
	}
	fn := func(f *Function, n *Node) *Model { return withFunctions(model("x", "", "y", n), f) }
	bad := tensor.Of([]float32{1, float32(math.NaN())}, 2)
	cases := []struct {
		name string
		m    *Model
		want string // "" when valid
	}{
		{"valid", relu(), ""},
		{"valid sub-graph", with(branches(subgraph("", "t", node("Add", "x,w", "t")))), ""},
		{"no graph", &Model{IrVersion: 8}, "no graph"},
		{"no ir_version", edit(func(m *Model) { m.IrVersion = 0 }), "ir_version is 0"},
		{"future ir_version", edit(func(m *Model) { m.IrVersion = 999 }), "ir_version is 999, expected 1 to 14"},
		{"sparse index", edit(func(m *Model) { m.Graph.SparseInitializer = sparseOf(6, 0, 6) }), `sparse tensor "s": index 6 of 6 elements`},
		{"sparse negative index", edit(func(m *Model) { m.Graph.SparseInitializer = sparseOf(6, -1, 2) }), `sparse tensor "s": index -1 of 6 elements`},
		{"sparse attribute", with(node("Constant", "", "v", &Attribute{Name: "sparse_value", Type: AttributeProto_SPARSE_TENSOR, SparseTensor: sparseOf(6, 0, 7)[0]})), `attribute "sparse_value": sparse tensor "s": index 7 of 6 elements`},
		{"sparse", edit(func(m *Model) { m.Graph.SparseInitializer = sparseOf(6, 0, 5) }), ""},
		{"no imports", edit(func(m *Model) { m.OpsetImport = nil }), "imports no opset"},
		{"future opset", edit(func(m *Model) { m.SetOpset("", 99) }), "imports opset 99; the newest known is 28"},
		{"doubled import", edit(func(m *Model) {
			m.OpsetImport = append(m.OpsetImport, &OperatorSet{Domain: "ai.onnx", Version: 18})
		}), "twice"},
		{"doubled metadata", edit(func(m *Model) { m.MetadataProps = []*MetadataProp{{Key: "a"}, {Key: "a"}} }), `metadata "a"`},
		{"untyped input", edit(func(m *Model) { m.Graph.Input[0].Type = nil }), `input "x" has no type`},
		{"no element type", edit(func(m *Model) { m.Graph.Output[0].Type.GetTensorType().ElemType = 0 }), `output "y" has no element type`},
		{"negative extent", edit(func(m *Model) {
			m.Graph.Input[0].Type.GetTensorType().Shape.Dim[0].Value = &TensorShapeProto_Dimension_DimValue{DimValue: -3}
		}), "extent -3"},
		{"output of nothing", model("x", "", "q", node("Relu", "x", "y")), `output "q" is not produced`},
		{"two outputs of one name", model("x", "", "y,y", node("Relu", "x", "y")), `output "y" is listed twice`},
		{"initializer and node of one name", model("x", "y", "y", node("Relu", "x", "y")), `output "y" is already defined`},
		{"doubled initializer", model("x", "w,w", "y", node("Relu", "x", "y")), `initializer "w": the name is used twice`},
		{"undefined input", with(node("Add", "x,ghost", "y")), `node "add:y" (Add): input "ghost" is not defined`},
		{"wrong order", with(node("Neg", "h", "y"), node("Relu", "x", "h")), `node "neg:y" (Neg): input "h" is used before`},
		{"cycle", with(node("Add", "x,b", "a"), node("Neg", "a", "b"), node("Neg", "a", "y")), `cycle: node "add:a" (Add) -> node "neg:b" (Neg) -> node "add:a" (Add)`},
		{"two producers", with(node("Relu", "x", "y"), node("Neg", "x", "y")), `output "y" is already defined`},
		{"doubled node name", with(&Node{Name: "n", OpType: "Neg", Input: []string{"x"}, Output: []string{"h"}}, &Node{Name: "n", OpType: "Neg", Input: []string{"h"}, Output: []string{"y"}}), `name "n" is used`},
		{"shadowing", with(branches(subgraph("", "x", node("Neg", "w", "x")))), `output "x" is already defined`},
		{"sub-graph returns an outer value", with(branches(subgraph("", "x"))), "an Identity node is needed"},
		{"undefined in a sub-graph", with(branches(subgraph("", "t", node("Neg", "ghost", "t")))), `input "ghost" is not defined`},
		{"value of a sibling", with(branches(subgraph("", "t", node("Neg", "else_out", "t")))), `input "else_out" is not defined`},
		{"function like an operator", edit(func(m *Model) {
			f := function("Relu", "a", "b", node("Neg", "a", "b"))
			f.Domain = ""
			m.Functions = []*Function{f}
		}), "function Relu: it is called like the operator Relu of ai.onnx"},
		{"unknown word", with(&Node{OpType: "Gelu", Input: []string{"x"}, Output: []string{"y"}, Attribute: []*Attribute{AttrStr("approximate", "Tanh")}}), `attribute "approximate" is "Tanh", none, tanh expected`},
		{"unknown operator", with(node("Relux", "x", "y")), `node "relux:y" (Relux): there is no such operator`},
		{"too new", edit(func(m *Model) { m.SetOpset("", 16); m.Graph.Node[0].OpType = "LayerNormalization" }), "exists from opset 17 on, the model imports 16"},
		{"deprecated", with(node("Upsample", "x,w", "y")), "deprecated since opset 10"},
		{"no import of the domain", with(&Node{OpType: "X", Domain: "d", Output: []string{"y"}}), `domain "d" is not imported`},
		{"no operator", with(&Node{Output: []string{"y"}}), "no operator"},
		{"no output", edit(func(m *Model) {
			m.Graph.Node = append(m.Graph.Node, &Node{OpType: "Neg", Input: []string{"x"}})
		}), "no output"},
		{"too few inputs", with(node("Add", "x", "y")), "has 1 input, at least 2"},
		{"too many inputs", with(node("Relu", "x,x", "y")), "has 2 inputs, at most 1"},
		{"too many outputs", with(node("Relu", "x", "y,z")), "has 2 outputs, at most 1"},
		{"required input left out", with(node("Add", "-,x", "y")), `input "A" is left out`},
		{"optional input left out", with(node("Clip", "x,-,w", "y")), ""},
		{"unknown attribute", with(node("Relu", "x", "y", AttrInt("alpha", 1))), `no attribute "alpha"`},
		{"attribute of another opset", with(node("ReduceMean", "x", "y", AttrInts("axes", 1))), `opset 18 of the operator has no attribute "axes"`},
		{"attribute type", with(node("LeakyRelu", "x", "y", AttrInt("alpha", 1))), `attribute "alpha" is int, float expected`},
		{"doubled attribute", with(node("LeakyRelu", "x", "y", AttrFloat("alpha", 1), AttrFloat("alpha", 1))), "given twice"},
		{"missing attribute", with(node("Concat", "x,w", "y")), `attribute "axis" is missing`},
		{"empty tensor attribute", with(node("Constant", "", "y", &Attribute{Name: "value", Type: AttributeProto_TENSOR})), "holds no tensor"},
		{"broken tensor attribute", with(node("Constant", "", "y", &Attribute{Name: "value", Type: AttributeProto_TENSOR, T: &TensorProto{DataType: 1, Dims: []int64{7}}})), "needs 7 numbers"},
		{"reference outside a function", with(node("LeakyRelu", "x", "y", &Attribute{Name: "alpha", Type: AttributeProto_FLOAT, RefAttrName: "a"})), "not inside one"},
		{"short initializer", edit(func(m *Model) { m.Graph.Initializer[0].RawData = []byte{1} }), "needs 8 bytes, raw_data holds 1"},
		{"unknown element type", edit(func(m *Model) { m.Graph.Initializer[0].DataType = 77 }), "element type 77"},
		{"negative dimension", edit(func(m *Model) { m.Graph.Initializer[0].Dims = []int64{-2} }), "extent -2"},
		{"initializer unlike its input", edit(func(m *Model) {
			m.Graph.Input = append(m.Graph.Input, NewValueInfo("w", TypeOf(tensor.Float32, 3)))
		}), `initializer "w": it is float32[2], the input of that name float32[3]`},
		{"old file", edit(func(m *Model) { m.IrVersion = 3 }), "must be listed among the inputs"},
		{"element type", edit(func(m *Model) { m.Graph.Input[0] = NewValueInfo("x", TypeOf(tensor.String, 2)) }), `input "x" is string, which opset 14 of the operator does not take`},
		{"unequal element types", edit(func(m *Model) {
			m.Graph.Node[0] = node("Add", "x,w", "y")
			m.Graph.Input[0] = NewValueInfo("x", TypeOf(tensor.Float64, 2))
		}), `inputs "x" and "w" are tensor(double) and tensor(float), one type expected`},
		{"function", fn(function("F", "a", "b", node("Neg", "a", "b")), call("F", "x", "y")), ""},
		{"call with too many inputs", fn(function("F", "a", "b", node("Neg", "a", "b")), call("F", "x,x", "y")), "takes 1 input, the node has 2"},
		{"call with an attribute", fn(function("F", "a", "b", node("Neg", "a", "b")), call("F", "x", "y", AttrInt("q", 1))), `declares no attribute "q"`},
		{"broken body", fn(function("F", "a", "b", node("Neg", "a", "c")), call("F", "x", "y")), `function local.F: output "b" is not produced`},
		{"recursion", fn(function("F", "a", "b", call("F", "a", "b")), call("F", "x", "y")), "calls itself"},
		{"undeclared reference", fn(function("F", "a", "b", node("LeakyRelu", "a", "b", &Attribute{Name: "alpha", Type: AttributeProto_FLOAT, RefAttrName: "s"})), call("F", "x", "y")), `refers to "s"`},
		{"NaN", edit(func(m *Model) { m.Graph.Initializer[0] = ProtoOf("w", bad) }), "element 1 is not a finite number"},
	}
	for _, c := range cases {
		err := CheckOptions{Finite: true}.Check(c.m).Err()
		switch {
		case c.want == "" && err != nil:
			t.Errorf("%s: %v", c.name, err)
		case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%s: error %v, want one about %q", c.name, err, c.want)
		case err != nil && !errors.Is(err, ErrInvalidModel):
			t.Errorf("%s: the error is not ErrInvalidModel", c.name)
		}
	}
	if len(cases) != 64 {
		t.Errorf("%d cases ran", len(cases))
	}
}

func TestCheckListsAllProblemsAndUncheckedOperators(t *testing.T) {
	m := model("x", "", "y", &Node{OpType: "FusedMatMul", Domain: DomainMS, Input: []string{"x", "x"}, Output: []string{"h"}},
		&Node{OpType: "FusedMatMul", Domain: DomainMS, Input: []string{"x", "x"}, Output: []string{"g"}}, node("Neg", "h", "y"))
	m.SetOpset(DomainMS, 1)
	r := CheckOptions{}.Check(m)
	if r.Err() != nil || !slices.Equal(r.Unchecked, []string{"com.microsoft.FusedMatMul"}) {
		t.Errorf("%v, unchecked %v", r.Err(), r.Unchecked)
	}
	if err := (CheckOptions{Strict: true}).Check(m).Err(); err == nil || !strings.Contains(err.Error(), "no schema") {
		t.Errorf("strict: %v", err)
	}
	m = model("x", "", "y")
	for range MaxProblems + 5 {
		m.Graph.Node = append(m.Graph.Node, &Node{OpType: "Ghost", Input: []string{"x"}, Output: []string{""}})
	}
	r = CheckOptions{}.Check(m)
	if len(r.Problems) != MaxProblems || r.Dropped != 2*(MaxProblems+5)+1-MaxProblems {
		t.Errorf("%d problems, %d dropped", len(r.Problems), r.Dropped)
	}
	if err := r.Err(); !strings.Contains(err.Error(), "more") {
		t.Error("the error does not say that problems were dropped")
	}
	// An opset without a schema version is not the end: unknown element types and external data are
	// left alone.
	m = model("x", "w", "y", node("Add", "x,w", "y"))
	m.Graph.Initializer[0].RawData, m.Graph.Initializer[0].DataLocation = nil, TensorProto_EXTERNAL
	if err := (CheckOptions{Finite: true}).Check(m).Err(); err != nil {
		t.Errorf("unloaded external data: %v", err)
	}
}

// sparseOf is two numbers of n elements.
func sparseOf(n int64, a, b int64) []*SparseTensorProto {
	return []*SparseTensorProto{{Dims: []int64{n}, Values: ProtoOf("s", tensor.Of([]float32{1, 2}, 2)), Indices: ProtoOf("", tensor.Of([]int64{a, b}, 2))}}
}
