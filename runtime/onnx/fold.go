package onnx

import (
	"fmt"
	"slices"

	"github.com/onnxrl/onnxrl/runtime/onnx/schema"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// FoldLimits bound constant folding. The zero value means the defaults.
type FoldLimits struct {
	// MaxBytes is the most that the outputs of one node may take together; larger ones stay
	// computed, because a model should not grow by what a node can make again. 0 means 1 MiB.
	MaxBytes int
	// MaxInputBytes is the most that the inputs of one node may take together. 0 means 64 MiB.
	MaxInputBytes int
	// Keep lists initializers that are not constants, such as parameters that will be trained. What
	// depends on them is not folded.
	Keep func(Value) bool
	// Types, when given, is asked before evaluating whether the outputs of a node are small enough,
	// so that a large one is never computed.
	Types Types
}

// Evaluator computes one node from the values of its inputs; absent inputs are nil. It returns one
// tensor for each of the node's outputs, nil for absent ones. An error leaves the node as it is.
type Evaluator func(n *Node, opset int, in []*tensor.Tensor) ([]*tensor.Tensor, error)

// Fold returns a copy of m in which every node that depends on initializers and constants alone is
// replaced by initializers of the same names, and the number of nodes replaced. Initializers that
// nothing reads any more are dropped. Nodes that are not deterministic or hold sub-graphs, and
// those whose results exceed the limits or are graph outputs, stay; so does what eval cannot
// compute. Sub-graphs are folded too, also over constants of the graphs around them. Initializers
// that inputs of the same name can override are not constants. Weights are shared with m.
func Fold(m *Model, eval Evaluator, limits FoldLimits) (*Model, int, error) {
	if limits.MaxBytes == 0 {
		limits.MaxBytes = 1 << 20
	}
	if limits.MaxInputBytes == 0 {
		limits.MaxInputBytes = 64 << 20
	}
	c := m.ShallowClone()
	f := &constantFolder{model: c, eval: eval, limits: limits}
	if err := f.graph(c.Graph, nil); err != nil {
		return nil, 0, fmt.Errorf("fold constants of graph %q: %w", c.Graph.Name, err)
	}
	return c, f.folded, nil
}

type constantFolder struct {
	model  *Model
	eval   Evaluator
	limits FoldLimits
	folded int
}

// constScope holds the constants of one graph, decoded when first needed, and sees those of the
// graphs around it.
type constScope struct {
	parent *constScope
	protos map[string]*TensorProto
	values map[string]*tensor.Tensor
}

func (s *constScope) has(name string) bool {
	for ; s != nil; s = s.parent {
		if s.protos[name] != nil || s.values[name] != nil {
			return true
		}
	}
	return false
}

func (s *constScope) get(name string) (*tensor.Tensor, error) {
	for ; s != nil; s = s.parent {
		if t := s.values[name]; t != nil {
			return t, nil
		}
		if p := s.protos[name]; p != nil {
			t, err := TensorOf(p)
			if err != nil {
				return nil, err
			}
			s.values[name] = t
			return t, nil
		}
	}
	return nil, fmt.Errorf("value %q is not constant", name)
}

// bytes returns the size of a constant without decoding it.
func (s *constScope) bytes(name string) int {
	for ; s != nil; s = s.parent {
		if t := s.values[name]; t != nil {
			return len(t.Bytes())
		}
		if p := s.protos[name]; p != nil {
			_, n, err := protoShape(p)
			if err != nil {
				return 0
			}
			return dtypeOf(p).ByteLen(n)
		}
	}
	return 0
}

func (f *constantFolder) graph(g *Graph, outer *constScope) error {
	s := &constScope{parent: outer, protos: map[string]*TensorProto{}, values: map[string]*tensor.Tensor{}}
	overridable := map[string]bool{}
	for _, v := range g.Input {
		overridable[v.Name] = true
	}
	for _, t := range g.Initializer {
		external := t.DataLocation == TensorProto_EXTERNAL && t.RawData == nil
		if !overridable[t.Name] && !external && (f.limits.Keep == nil || !f.limits.Keep(Value(t.Name))) {
			s.protos[t.Name] = t
		}
	}
	output := map[string]bool{}
	for _, v := range g.Output {
		output[v.Name] = true
	}
	nodes := make([]*Node, 0, len(g.Node))
	replaced := false
	for _, n := range g.Node {
		for _, sub := range n.Subgraphs() {
			if err := f.graph(sub, s); err != nil {
				return fmt.Errorf("%s: %w", n.Describe(), err)
			}
		}
		out, err := f.node(n, s, output)
		if err != nil {
			return err
		}
		if out == nil {
			nodes = append(nodes, n)
			continue
		}
		for i, o := range n.Output {
			if o != "" {
				s.values[o] = out[i]
				g.Initializer = append(g.Initializer, ProtoOf(o, out[i]))
			}
		}
		f.folded++
		replaced = true
	}
	g.Node = nodes
	if replaced {
		dropUnread(g)
	}
	return nil
}

// node evaluates a node and returns its outputs, or nil when it must stay.
func (f *constantFolder) node(n *Node, s *constScope, output map[string]bool) ([]*tensor.Tensor, error) {
	opset := f.model.Opset(n.Domain)
	if len(n.Subgraphs()) > 0 || len(n.Output) == 0 {
		return nil, nil
	}
	// Without a schema nobody knows whether a node is deterministic.
	op, ok := schema.Lookup(n.Domain, n.OpType, opset)
	if !ok || op.Nondeterministic {
		return nil, nil
	}
	total := 0
	for _, v := range n.Input {
		if v == "" {
			continue
		}
		if !s.has(v) {
			return nil, nil
		}
		total += s.bytes(v)
	}
	for _, o := range n.Output {
		if output[o] {
			return nil, nil
		}
	}
	if total > f.limits.MaxInputBytes || !f.small(n) {
		return nil, nil
	}
	in := make([]*tensor.Tensor, len(n.Input))
	for i, v := range n.Input {
		if v == "" {
			continue
		}
		t, err := s.get(v)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", n.Describe(), err)
		}
		in[i] = t
	}
	out, err := f.eval(n, opset, in)
	if err != nil {
		// A node that the evaluator cannot compute is not the model's fault: the engine that
		// runs it will evaluate.
		return nil, nil
	}
	if len(out) != len(n.Output) {
		return nil, fmt.Errorf("%s: the evaluator returned %d outputs, %d expected", n.Describe(), len(out), len(n.Output))
	}
	total = 0
	for i, t := range out {
		if t == nil && n.Output[i] != "" {
			return nil, fmt.Errorf("%s: the evaluator did not return output %q", n.Describe(), n.Output[i])
		}
		if t != nil {
			total += len(t.Bytes())
		}
	}
	if total > f.limits.MaxBytes {
		return nil, nil
	}
	return out, nil
}

// small reports whether what is known of a node's outputs allows them to be computed.
func (f *constantFolder) small(n *Node) bool {
	if f.limits.Types == nil {
		return true
	}
	total := 0
	for _, o := range n.Output {
		t, ok := f.limits.Types(Value(o))
		if !ok {
			continue
		}
		shape, ok := t.Static()
		if !ok {
			continue
		}
		k, err := tensor.Len(shape)
		if err != nil || k > maxElements {
			return false
		}
		total += t.DType.ByteLen(k)
	}
	return total <= f.limits.MaxBytes
}

// dropUnread removes initializers that no node and no output of the graph reads.
func dropUnread(g *Graph) {
	read := map[Value]bool{}
	for _, n := range g.Node {
		for _, v := range Reads(n) {
			read[v] = true
		}
	}
	for _, list := range [][]*ValueInfo{g.Output, g.Input} {
		for _, v := range list {
			read[Value(v.Name)] = true
		}
	}
	g.Initializer = slices.DeleteFunc(g.Initializer, func(t *TensorProto) bool { return !read[Value(t.Name)] })
}

// EvalConstant evaluates the operators whose results need no arithmetic: Constant, Identity and
// Shape-like queries of constants. It is the [Evaluator] for callers without an engine.
func EvalConstant(n *Node, _ int, in []*tensor.Tensor) ([]*tensor.Tensor, error) {
	if n.OpType == "Constant" {
		t, err := ConstantOf(n)
		return []*tensor.Tensor{t}, err
	}
	if len(in) != 1 || in[0] == nil {
		return nil, fmt.Errorf("%s: one input expected", n.Describe())
	}
	switch n.OpType {
	case "Identity":
		return in[:1], nil
	case "Shape":
		if !n.Has("start") && !n.Has("end") {
			return []*tensor.Tensor{tensor.Of(Int64s(in[0].Shape()), in[0].Rank())}, nil
		}
	case "Size":
		return []*tensor.Tensor{tensor.Scalar(int64(in[0].Len()))}, nil
	}
	return nil, fmt.Errorf("%s: not evaluated without an engine", n.Describe())
}
