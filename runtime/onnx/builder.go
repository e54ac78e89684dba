package onnx

import (
	"crypto/sha256"
	"fmt"
	"strconv"

	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// DefaultOpset and DefaultIR are what new models import: old enough for every ONNX Runtime since
// 1.14, new enough for LayerNormalization and for axes as inputs.
const (
	DefaultOpset = 18
	DefaultIR    = 8
)

// Builder appends nodes to a graph. Errors are sticky: the first one is kept, later calls do
// nothing, and [Builder.Model] or [Builder.Err] returns it, so that building code needs no check
// per operator.
//
// New values are named prefix + hint + counter, never twice the same. Constants of equal content
// share one initializer.
type Builder struct {
	model  *Model
	graph  *Graph
	used   map[string]bool
	next   map[string]int
	consts map[string]Value
	scope  string
	onNode func(*Node) error
	onType func(Value, TensorType, *tensor.Tensor)
	err    error
}

// NewBuilder starts an empty model with the given opset of the standard domain.
func NewBuilder(name string, opset int) *Builder {
	m := &Model{IrVersion: DefaultIR, ProducerName: "onnxrl", OpsetImport: []*OperatorSet{{Version: int64(opset)}}, Graph: &Graph{Name: name}}
	return Extend(m)
}

// Extend appends to an existing model. Its nodes, inputs and outputs stay as they are.
func Extend(m *Model) *Builder {
	b := &Builder{model: m, graph: m.Graph, used: map[string]bool{}, next: map[string]int{}, consts: map[string]Value{}}
	b.collect(m.Graph)
	return b
}

// collect marks every name of a graph and of its sub-graphs as taken.
func (b *Builder) collect(g *Graph) {
	for _, v := range g.Input {
		b.used[v.Name] = true
	}
	for _, t := range g.Initializer {
		b.used[t.Name] = true
	}
	for _, t := range g.SparseInitializer {
		b.used[t.GetValues().GetName()] = true
	}
	for _, n := range g.Node {
		for _, o := range n.Output {
			b.used[o] = true
		}
		for _, s := range n.Subgraphs() {
			b.collect(s)
		}
	}
}

// OnNode sets a function called for each node that is appended; its error becomes the builder's. It
// is how types are tracked while a graph grows.
func (b *Builder) OnNode(f func(*Node) error) { b.onNode = f }

// OnType sets a function called for each input, initializer and constant that is declared, with its
// type and, for constants and initializers, its content.
func (b *Builder) OnType(f func(v Value, t TensorType, content *tensor.Tensor)) { b.onType = f }

func (b *Builder) typed(v Value, t TensorType, content *tensor.Tensor) {
	if b.onType != nil {
		b.onType(v, t, content)
	}
}

// Err returns the first error.
func (b *Builder) Err() error { return b.err }

// Fail records an error unless one is recorded already.
func (b *Builder) Fail(err error) {
	if b.err == nil {
		b.err = err
	}
}

// SetScope sets the prefix of the names that follow, for instance "grad/fc1/". It returns the
// earlier prefix.
func (b *Builder) SetScope(s string) string {
	old := b.scope
	b.scope = s
	return old
}

// Fresh returns a value name that is not taken: scope + hint, with a counter when needed, and takes
// it.
func (b *Builder) Fresh(hint string) Value {
	name := b.scope + hint
	for b.used[name] || name == "" {
		b.next[b.scope+hint]++
		name = b.scope + hint + "_" + strconv.Itoa(b.next[b.scope+hint])
	}
	b.used[name] = true
	return Value(name)
}

// Input declares a graph input. The name is used as it is; taking it twice is an error.
func (b *Builder) Input(name string, t TensorType) Value {
	if b.used[name] {
		b.Fail(fmt.Errorf("build graph %q: value %q is declared twice", b.graph.Name, name))
		return Value(name)
	}
	b.used[name] = true
	b.graph.Input = append(b.graph.Input, NewValueInfo(Value(name), t))
	b.typed(Value(name), t, nil)
	return Value(name)
}

// Initializer adds a named parameter. The tensor's memory is shared.
func (b *Builder) Initializer(name string, t *tensor.Tensor) Value {
	if b.used[name] {
		b.Fail(fmt.Errorf("build graph %q: value %q is declared twice", b.graph.Name, name))
		return Value(name)
	}
	b.used[name] = true
	b.graph.Initializer = append(b.graph.Initializer, ProtoOf(name, t))
	b.typed(Value(name), TypeOf(t.DType(), t.Shape()...), t)
	return Value(name)
}

// Output makes v a graph output of the given type. To give the output another name, pass v through
// [Builder.Rename] first.
func (b *Builder) Output(v Value, t TensorType) {
	b.graph.Output = append(b.graph.Output, NewValueInfo(v, t))
}

// Rename emits an Identity whose output has exactly the given name.
func (b *Builder) Rename(v Value, name string) Value {
	if b.used[name] {
		b.Fail(fmt.Errorf("build graph %q: value %q is declared twice", b.graph.Name, name))
		return Value(name)
	}
	b.used[name] = true
	b.Append(&Node{OpType: "Identity", Input: []string{string(v)}, Output: []string{name}})
	return Value(name)
}

// Op appends a node of the standard domain with one output and returns it.
func (b *Builder) Op(op string, in []Value, attrs ...*Attribute) Value {
	return b.OpN(op, "", 1, in, attrs...)[0]
}

// OpN appends a node with n outputs. Trailing absent inputs are dropped.
func (b *Builder) OpN(op, domain string, n int, in []Value, attrs ...*Attribute) []Value {
	out := make([]Value, n)
	if b.err != nil {
		return out
	}
	node := &Node{OpType: op, Domain: domain, Attribute: attrs}
	for len(in) > 0 && in[len(in)-1] == "" {
		in = in[:len(in)-1]
	}
	for _, v := range in {
		node.Input = append(node.Input, string(v))
	}
	for i := range out {
		out[i] = b.Fresh(op)
		node.Output = append(node.Output, string(out[i]))
	}
	node.Name = string(out[0])
	b.Append(node)
	return out
}

// Append adds a finished node. Its output names are taken as they are.
func (b *Builder) Append(n *Node) {
	if b.err != nil {
		return
	}
	for _, o := range n.Output {
		b.used[o] = true
	}
	if d := NormalizeDomain(n.Domain); d != "" && b.model.Opset(d) == 0 {
		b.model.SetOpset(d, 1)
	}
	b.graph.Node = append(b.graph.Node, n)
	if b.onNode != nil {
		if err := b.onNode(n); err != nil {
			b.Fail(err)
		}
	}
}

// maxConstKey is how many bytes of a constant are compared as they are.
const maxConstKey = 256

// Const adds a constant as an initializer, shared with an earlier constant of the same type, shape
// and bytes.
func (b *Builder) Const(t *tensor.Tensor) Value {
	key := t.String() + "\x00"
	if len(t.Bytes()) <= maxConstKey {
		key += string(t.Bytes())
	} else {
		// The digest stands for the content, so that a large constant is not kept twice.
		sum := sha256.Sum256(t.Bytes())
		key += "#" + string(sum[:])
	}
	if t.DType() == tensor.String {
		key = fmt.Sprintf("%v\x00%q", t, t.Strings())
	}
	if v, ok := b.consts[key]; ok {
		return v
	}
	old := b.SetScope("")
	v := b.Fresh("const/" + constHint(t))
	b.SetScope(old)
	b.graph.Initializer = append(b.graph.Initializer, ProtoOf(string(v), t))
	b.typed(v, TypeOf(t.DType(), t.Shape()...), t)
	b.consts[key] = v
	return v
}

// constHint makes names of small constants readable: const/2 or const/i64[1,-1].
func constHint(t *tensor.Tensor) string {
	switch {
	case t.DType() == tensor.Float32 && t.Rank() == 0:
		return strconv.FormatFloat(float64(t.Float32s()[0]), 'g', -1, 32)
	case t.DType() == tensor.Int64 && t.Len() <= 6:
		s := "i64["
		for i, v := range t.Int64s() {
			if i > 0 {
				s += ","
			}
			s += strconv.FormatInt(v, 10)
		}
		if t.Rank() == 0 {
			return "i64(" + s[4:] + ")"
		}
		return s + "]"
	}
	s := t.DType().String()
	for _, d := range t.Shape() {
		s += "x" + strconv.Itoa(d)
	}
	return s
}

// Float adds a rank-0 float32 constant.
func (b *Builder) Float(v float32) Value { return b.Const(tensor.Scalar(v)) }

// Ints adds a one-dimensional int64 constant, the form of shapes, axes, pads and split sizes.
func (b *Builder) Ints(v ...int) Value { return b.Const(tensor.Of(Int64s(v), len(v))) }

// Int adds a rank-0 int64 constant.
func (b *Builder) Int(v int) Value { return b.Const(tensor.Scalar(int64(v))) }

// Graph returns the graph being built.
func (b *Builder) Graph() *Graph { return b.graph }

// Model returns the model, or the first error.
func (b *Builder) Model() (*Model, error) {
	if b.err != nil {
		return nil, b.err
	}
	return b.model, nil
}

// Free reports whether nothing has a name yet.
func (b *Builder) Free(name string) bool { return !b.used[name] }

// Claim takes a name for a value that the caller renames to it. It records an error and returns
// false when the name is taken.
func (b *Builder) Claim(name string) bool {
	if b.used[name] {
		b.Fail(fmt.Errorf("build graph %q: value %q is declared twice", b.graph.Name, name))
		return false
	}
	b.used[name] = true
	return true
}
