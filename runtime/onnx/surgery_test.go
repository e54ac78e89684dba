package onnx

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"gonum.org/v1/gonum/graph/topo"
	"google.golang.org/protobuf/proto"

	"github.com/onnxrl/onnxrl/runtime/sorted"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// node makes a node from comma-separated names; "-" stands for an absent value.
func node(op, in, out string, attrs ...*Attribute) *Node {
	list := func(s string) []string {
		if s == "" {
			return nil
		}
		l := strings.Split(s, ",")
		for i, v := range l {
			if v == "-" {
				l[i] = ""
			}
		}
		return l
	}
	return &Node{OpType: op, Name: strings.ToLower(op) + ":" + out, Input: list(in), Output: list(out), Attribute: attrs}
}

// model makes a model with float32[2] inputs, outputs and initializers.
func model(in, init, out string, nodes ...*Node) *Model {
	m := &Model{IrVersion: DefaultIR, OpsetImport: []*OperatorSet{{Version: DefaultOpset}}, Graph: subgraph(in, out, nodes...)}
	for _, v := range fields(init) {
		m.Graph.Initializer = append(m.Graph.Initializer, ProtoOf(v, tensor.Of([]float32{1, 2}, 2)))
	}
	return m
}

func subgraph(in, out string, nodes ...*Node) *Graph {
	g := &Graph{Name: "g", Node: nodes}
	for _, v := range fields(in) {
		g.Input = append(g.Input, NewValueInfo(Value(v), TypeOf(tensor.Float32, 2)))
	}
	for _, v := range fields(out) {
		g.Output = append(g.Output, NewValueInfo(Value(v), TypeOf(tensor.Float32, 2)))
	}
	return g
}

func fields(s string) []string { return strings.FieldsFunc(s, func(r rune) bool { return r == ',' }) }

// brief prints a graph in one line: op(in)->out, sub-graphs in braces.
func brief(g *Graph) string {
	var s []string
	for _, n := range g.Node {
		e := fmt.Sprintf("%s(%s)->%s", n.OpType, strings.Join(n.Input, ","), strings.Join(n.Output, ","))
		for _, b := range n.Subgraphs() {
			var out []string
			for _, o := range b.Output {
				out = append(out, o.Name)
			}
			e += "{" + brief(b) + " => " + strings.Join(out, ",") + "}"
		}
		s = append(s, e)
	}
	return strings.Join(s, "; ")
}

func infoNames(list []*ValueInfo) string {
	var s []string
	for _, v := range list {
		s = append(s, v.Name)
	}
	return strings.Join(s, ",")
}

func initNames(g *Graph) string {
	var s []string
	for _, v := range g.Initializer {
		s = append(s, v.Name)
	}
	return strings.Join(s, ",")
}

// nested has an If whose branches capture x, w and h, one of them from inside a Loop inside the
// branch.
func nested() *Model {
	loop := node("Loop", "trip,-,h", "l", AttrGraph("body", subgraph("i,c,s", "c,t", node("Add", "s,w", "t"))))
	return model("x,cond,trip", "w,unused", "y,z",
		node("Relu", "x", "h"),
		node("If", "cond", "y", AttrGraph("then_branch", subgraph("", "l", loop)), AttrGraph("else_branch", subgraph("", "e", node("Mul", "x,h", "e"), node("Neg", "x", "dead")))),
		node("Neg", "w", "z"), node("Exp", "unused", "gone"))
}

func TestCapturesAndIndex(t *testing.T) {
	m := nested()
	got := Captures(m.Graph.Node[1])
	if want := []Value{"trip", "h", "w", "x"}; !slices.Equal(got, want) {
		t.Errorf("captures are %v, want %v", got, want)
	}
	if got := Captures(m.Graph.Node[0]); got != nil {
		t.Errorf("a plain node captures %v", got)
	}
	if got := Reads(m.Graph.Node[1]); !slices.Equal(got, []Value{"cond", "trip", "h", "w", "x"}) {
		t.Errorf("the If reads %v", got)
	}
	x := NewIndex(m.Graph)
	if x.Producer("h") != m.Graph.Node[0] || x.Producer("x") != nil || x.Producer("e") != nil {
		t.Error("producers are wrong")
	}
	if c := x.Consumers("w"); len(c) != 2 || x.Position(c[0]) != 1 || x.Position(c[1]) != 2 {
		t.Errorf("w is read by %v", c)
	}
	if !x.IsInitializer("w") || x.IsInitializer("x") || x.Input("x") == nil || x.Output("z") == nil || !x.Defined("h") || x.Defined("t") {
		t.Error("roles of values are wrong")
	}
	if x.Position(&Node{}) != -1 {
		t.Error("a foreign node has a position")
	}
}

func TestPrune(t *testing.T) {
	m := nested()
	before := proto.Clone(m)
	c, err := Prune(m)
	if err != nil {
		t.Fatal(err)
	}
	want := "Relu(x)->h; If(cond)->y{Loop(trip,,h)->l{Add(s,w)->t => c,t} => l}{Mul(x,h)->e => e}; Neg(w)->z"
	if got := brief(c.Graph); got != want {
		t.Errorf("pruned graph is\n%s, want\n%s", got, want)
	}
	if got := initNames(c.Graph); got != "w" {
		t.Errorf("initializers left: %s", got)
	}
	c, err = Prune(m, "z")
	if err != nil {
		t.Fatal(err)
	}
	if got := brief(c.Graph); got != "Neg(w)->z" || infoNames(c.Graph.Output) != "z" || infoNames(c.Graph.Input) != "x,cond,trip" {
		t.Errorf("pruned to z: %s", got)
	}
	if !proto.Equal(before, m) {
		t.Error("Prune changed its argument")
	}
	if _, err := Prune(m, "h"); err == nil || !strings.Contains(err.Error(), `"h"`) {
		t.Errorf("keeping what is no output: %v", err)
	}
}

func TestRenameAndPrefix(t *testing.T) {
	m := nested()
	before := proto.Clone(m)
	c, err := Prefix(m, "p/")
	if err != nil {
		t.Fatal(err)
	}
	want := "Relu(p/x)->p/h; If(p/cond)->p/y{Loop(p/trip,,p/h)->p/l{Add(p/s,p/w)->p/t => p/c,p/t} => p/l}{Mul(p/x,p/h)->p/e; Neg(p/x)->p/dead => p/e}; Neg(p/w)->p/z; Exp(p/unused)->p/gone"
	if got := brief(c.Graph); got != want {
		t.Errorf("prefixed graph is\n%s, want\n%s", got, want)
	}
	if initNames(c.Graph) != "p/w,p/unused" || infoNames(c.Graph.Input) != "p/x,p/cond,p/trip" || c.Graph.Node[0].Name != "p/relu:h" {
		t.Error("other names are wrong")
	}
	if &c.Graph.Initializer[0].RawData[0] != &m.Graph.Initializer[0].RawData[0] {
		t.Error("weights were copied")
	}
	if !proto.Equal(before, m) {
		t.Error("Prefix changed its argument")
	}
	for name, f := range sorted.All(map[string]func(Value) Value{
		`both be called "h"`: func(v Value) Value {
			if v == "x" {
				return "h"
			}
			return v
		},
		"lose its name": func(Value) Value { return "" },
	}) {
		if _, err := Rename(m, f); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("error %v, want one about %q", err, name)
		}
	}
}

func TestInitializersToInputsAndBack(t *testing.T) {
	m := linear(t)
	c, err := InitializersToInputs(m, []Value{"b", "w"})
	if err != nil {
		t.Fatal(err)
	}
	if infoNames(c.Graph.Input) != "x,b,w" || len(c.Graph.Initializer) != 0 || len(m.Graph.Initializer) != 2 {
		t.Errorf("inputs are %s", infoNames(c.Graph.Input))
	}
	if typ, _ := c.Graph.Input[2].TensorType(); typ.String() != "float32[4,3]" {
		t.Errorf("w is declared as %v", typ)
	}
	w := tensor.New(tensor.Float32, 4, 3)
	back, err := InputsToInitializers(c, map[Value]*tensor.Tensor{"w": w, "b": tensor.New(tensor.Float32, 3)})
	if err != nil {
		t.Fatal(err)
	}
	if infoNames(back.Graph.Input) != "x" || initNames(back.Graph) != "b,w" {
		t.Errorf("baked: inputs %s, initializers %s", infoNames(back.Graph.Input), initNames(back.Graph))
	}
	if &back.Graph.Initializer[1].RawData[0] != &w.Bytes()[0] {
		t.Error("the weight was copied")
	}
	for _, e := range []error{
		second(InitializersToInputs(m, []Value{"nope"})), second(InitializersToInputs(m, []Value{"w", "w"})),
		second(InputsToInitializers(c, map[Value]*tensor.Tensor{"nope": w})), second(InputsToInitializers(c, map[Value]*tensor.Tensor{"w": tensor.New(tensor.Float32, 3, 4)})),
		second(InputsToInitializers(c, map[Value]*tensor.Tensor{"w": tensor.New(tensor.Float64, 4, 3)})),
	} {
		if e == nil {
			t.Error("a wrong request gave no error")
		}
	}
	// A file of IR 3 lists its initializers among the inputs.
	old := linear(t)
	old.Graph.Input = append(old.Graph.Input, NewValueInfo("w", TypeOf(tensor.Float32, 4, 3)))
	c, err = InitializersToInputs(old, []Value{"w"})
	if err != nil || infoNames(c.Graph.Input) != "x,w" {
		t.Errorf("from IR 3: %s, %v", infoNames(c.Graph.Input), err)
	}
}

func second[T any](_ T, err error) error { return err }

func TestAdmits(t *testing.T) {
	n, f := Symbol("n"), tensor.Float32
	cases := []struct {
		typ   TensorType
		shape []int
		want  bool
	}{
		{TensorType{DType: f}, []int{1, 2}, true}, {TypeOf(f, 2), []int{2}, true}, {TypeOf(f, 2), []int{2, 1}, false},
		{TensorType{DType: f, Ranked: true, Dims: []Dim{n, n}}, []int{3, 3}, true}, {TensorType{DType: f, Ranked: true, Dims: []Dim{n, n}}, []int{3, 4}, false},
		{TensorType{DType: f, Ranked: true, Dims: []Dim{Symbol(""), Symbol("")}}, []int{3, 4}, true}, {TypeOf(tensor.Int64, 2), []int{2}, false},
	}
	for _, c := range cases {
		if got := c.typ.Admits(f, c.shape); got != c.want {
			t.Errorf("%v admits %v: %v", c.typ, c.shape, got)
		}
	}
}

func TestBindDims(t *testing.T) {
	m := linear(t)
	if got := Symbols(m); !slices.Equal(got, []string{"batch"}) {
		t.Errorf("symbols are %v", got)
	}
	m.Graph.ValueInfo = append(m.Graph.ValueInfo, NewValueInfo("MatMul", TensorType{DType: tensor.Float32, Ranked: true, Dims: []Dim{Symbol("batch"), Known(3)}}))
	c, err := BindDims(m, map[string]int{"batch": 32})
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range []*ValueInfo{c.Graph.Input[0], c.Graph.Output[0], c.Graph.ValueInfo[0]} {
		typ, _ := v.TensorType()
		if s, ok := typ.Static(); !ok || s[0] != 32 {
			t.Errorf("%s is %v", v.Name, typ)
		}
	}
	if len(Symbols(m)) != 1 {
		t.Error("BindDims changed its argument")
	}
	for _, b := range []map[string]int{{"Batch": 1}, {"batch": -1}} {
		if _, err := BindDims(m, b); err == nil {
			t.Errorf("bind %v gave no error", b)
		}
	}
}

func TestExtract(t *testing.T) {
	m := model("x,k", "w", "y", node("Relu", "x", "a"), node("Mul", "a,w", "b"), node("Split", "b", "c,d"), node("Add", "c,d", "e"), node("Add", "e,k", "y"))
	m.Graph.ValueInfo = []*ValueInfo{NewValueInfo("a", TypeOf(tensor.Float32, 2)), NewValueInfo("e", TypeOf(tensor.Float32, 1))}
	c, err := Extract(m, []Value{"a"}, []Value{"e"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if got := brief(c.Graph); got != "Mul(a,w)->b; Split(b)->c,d; Add(c,d)->e" || infoNames(c.Graph.Input) != "a" || initNames(c.Graph) != "w" {
		t.Errorf("extracted %s from %s", got, infoNames(c.Graph.Input))
	}
	if len(c.Graph.ValueInfo) != 1 && infoNames(c.Graph.ValueInfo) != "a,e" {
		t.Errorf("types kept: %s", infoNames(c.Graph.ValueInfo))
	}
	// Cutting one of two outputs keeps the node for the other.
	types := func(Value) (TensorType, bool) { return TypeOf(tensor.Float32, 1), true }
	c, err = Extract(m, []Value{"x", "c"}, []Value{"e"}, types)
	if err != nil {
		t.Fatal(err)
	}
	if got := brief(c.Graph); got != "Relu(x)->a; Mul(a,w)->b; Split(b)->c/cut,d; Add(c,d)->e" {
		t.Errorf("extracted %s", got)
	}
	if c, err = Extract(m, []Value{"w", "x"}, []Value{"b"}, types); err != nil || len(c.Graph.Initializer) != 0 || infoNames(c.Graph.Input) != "w,x" {
		t.Errorf("an initializer as input: %v", err)
	}
	for want, e := range sorted.All(map[string]error{
		`needs "x"`:            second(Extract(m, []Value{"e"}, []Value{"b"}, types)),
		`needs "k"`:            second(Extract(m, []Value{"e"}, []Value{"y"}, types)),
		`"q" is not a value`:   second(Extract(m, []Value{"q"}, []Value{"y"}, types)),
		`type of output "b"`:   second(Extract(m, []Value{"a"}, []Value{"b"}, nil)),
		`"a" is named twice`:   second(Extract(m, []Value{"a", "a"}, []Value{"e"}, nil)),
		`output "k" is an inp`: second(Extract(m, []Value{"x"}, []Value{"k"}, nil)),
	}) {
		if e == nil || !strings.Contains(e.Error(), want) {
			t.Errorf("error %v, want one about %q", e, want)
		}
	}
}

func TestCompose(t *testing.T) {
	a := model("x", "w", "h,aux", node("Mul", "x,w", "h"), node("Neg", "h", "aux"))
	b := model("p,q,r", "w", "y", node("Add", "p,q", "s"), node("Mul", "s,w", "t"), node("Add", "t,r", "y"))
	if _, err := Compose(a, b, map[Value]Value{"p": "h"}, ComposeOptions{}); err == nil || !strings.Contains(err.Error(), `both define "w"`) {
		t.Errorf("colliding names: %v", err)
	}
	m, err := Compose(a, b, map[Value]Value{"p": "h", "q": "h"}, ComposeOptions{PrefixA: "a/", PrefixB: "b/"})
	if err != nil {
		t.Fatal(err)
	}
	want := "Mul(a/x,a/w)->a/h; Neg(a/h)->a/aux; Identity(a/h)->b/q; Add(a/h,b/q)->b/s; Mul(b/s,b/w)->b/t; Add(b/t,b/r)->b/y"
	if got := brief(m.Graph); got != want {
		t.Errorf("composed\n%s, want\n%s", got, want)
	}
	if infoNames(m.Graph.Input) != "a/x,b/r" || infoNames(m.Graph.Output) != "a/aux,b/y" || initNames(m.Graph) != "a/w,b/w" {
		t.Errorf("interface %s -> %s", infoNames(m.Graph.Input), infoNames(m.Graph.Output))
	}
	m, err = Compose(a, b, map[Value]Value{"p": "h"}, ComposeOptions{PrefixB: "b/", KeepOutputs: []Value{"h"}, Name: "both"})
	if err != nil || infoNames(m.Graph.Output) != "h,aux,b/y" || m.Graph.Name != "both" {
		t.Errorf("kept outputs: %s, %v", infoNames(m.Graph.Output), err)
	}
	other := b.Clone()
	other.SetOpset("", 17)
	meta := b.Clone()
	meta.SetMeta("k", "1")
	left := a.Clone()
	left.SetMeta("k", "2")
	typed := b.Clone()
	typed.Graph.Input[0] = NewValueInfo("p", TypeOf(tensor.Float32, 3))
	for want, e := range sorted.All(map[string]error{
		"no input":      second(Compose(a, b, map[Value]Value{"n": "h"}, ComposeOptions{PrefixB: "b/"})),
		"no output":     second(Compose(a, b, map[Value]Value{"p": "n"}, ComposeOptions{PrefixB: "b/"})),
		"opsets":        second(Compose(a, other, map[Value]Value{"p": "h"}, ComposeOptions{PrefixB: "b/"})),
		"metadata":      second(Compose(left, meta, map[Value]Value{"p": "h"}, ComposeOptions{PrefixB: "b/"})),
		"float32[3]":    second(Compose(a, typed, map[Value]Value{"p": "h"}, ComposeOptions{PrefixB: "b/"})),
		"not an output": second(Compose(a, b, map[Value]Value{"p": "h"}, ComposeOptions{PrefixB: "b/", KeepOutputs: []Value{"x"}})),
	}) {
		if e == nil || !strings.Contains(e.Error(), want) {
			t.Errorf("error %v, want one about %q", e, want)
		}
	}
}

func TestSortAndTopology(t *testing.T) {
	m := nested()
	want := brief(m.Graph)
	n := m.Graph.Node
	if err := Sort(m.Graph); err != nil || brief(m.Graph) != want {
		t.Errorf("sorting a sorted graph: %v, %s", err, brief(m.Graph))
	}
	// The If captures h, so it must come after the Relu although it does not name h as an input.
	m.Graph.Node = []*Node{n[1], n[2], n[0], n[3]}
	if err := Sort(m.Graph); err != nil {
		t.Fatal(err)
	}
	if m.Graph.Node[0] != n[2] || m.Graph.Node[1] != n[0] || m.Graph.Node[2] != n[1] || m.Graph.Node[3] != n[3] {
		t.Errorf("sorted: %s", brief(m.Graph))
	}
	g := subgraph("x", "d", node("Neg", "x", "z"), node("Add", "z,c", "a"), node("Neg", "a", "b"), node("Neg", "b", "c"), node("Neg", "c", "d"), node("Neg", "b", "e"))
	err := Sort(g)
	if !errors.Is(err, ErrCycle) {
		t.Fatalf("a cycle gave %v", err)
	}
	if want := `node "add:a" (Add) -> node "neg:b" (Neg) -> node "neg:c" (Neg) -> node "add:a" (Add)`; !strings.Contains(err.Error(), want) {
		t.Errorf("error %q does not list the cycle %s", err, want)
	}
	if err := Sort(subgraph("", "a", node("Neg", "a", "a"))); !errors.Is(err, ErrCycle) {
		t.Errorf("a node that reads itself gave %v", err)
	}
	top := NewTopology(g)
	if top.Nodes().Len() != 6 || top.Node(6) != nil || !top.HasEdgeFromTo(1, 2) || top.HasEdgeFromTo(2, 1) || !top.HasEdgeBetween(2, 1) || top.Edge(2, 1) != nil || top.Edge(1, 2) == nil {
		t.Error("the directed graph is wrong")
	}
	if !topo.PathExistsIn(top, top.Node(0), top.Node(5)) || topo.PathExistsIn(top, top.Node(4), top.Node(0)) {
		t.Error("paths are wrong")
	}
	if top.From(4).Len() != 0 || top.To(1).Len() != 2 {
		t.Error("neighbours are wrong")
	}
}
