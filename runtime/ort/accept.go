package ort

import (
	"errors"
	"fmt"

	"github.com/onnxrl/onnxrl/runtime/engine"
	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/onnx/shape"
)

// accept lets a model pass that breaks no rule of the specification and whose types can be
// inferred. Every model passes here before ONNX Runtime sees it: kernels divide by attributes,
// index with them and trust shapes, and a fault in C++ ends the process. An operator that
// nothing here knows is refused with an UnsupportedError: nobody can vouch for its kernel.
func accept(m *onnx.Model) (*shape.Env, error) {
	if r := (onnx.CheckOptions{Deprecated: true}).Check(m); len(r.Problems) > 0 {
		if n := find(m, func(n *onnx.Node) bool { return !known(m, n) }); n != nil {
			return nil, unknownOperator(n)
		}
		more := ""
		if n := len(r.Problems) + r.Dropped - 1; n > 0 {
			more = fmt.Sprintf(" (and %d more problems)", n)
		}
		return nil, &ModelError{Node: r.Problems[0].Where, Message: r.Problems[0].Text + more}
	}
	env, err := shape.Infer(m, nil)
	if err == nil {
		return env, wrong(m, env)
	}
	if n := find(m, func(n *onnx.Node) bool { return !known(m, n) }); n != nil {
		return nil, unknownOperator(n)
	}
	if at := new(shape.Error); errors.As(err, &at) {
		return nil, &ModelError{Node: at.Node, Message: at.Err.Error()}
	}
	return nil, &ModelError{Message: err.Error()}
}

// builtIn tells ONNX Runtime's operators from the functions of a model, which may be called alike.
func builtIn(n *onnx.Node) bool {
	d := onnx.NormalizeDomain(n.Domain)
	return d == onnx.DomainStandard || d == onnx.DomainMS
}

// trusted lists the inputs of a node whose numbers ONNX Runtime's kernels take as they are: Col2Im
// writes where they say, and a one-sided inverse DFT along an axis with one bin never ends.
func trusted(n *onnx.Node) []int {
	switch {
	case !builtIn(n):
	case n.OpType == "Col2Im":
		return []int{1, 2}
	case n.OpType == "DFT" && n.In(2) != "" && n.Int("inverse", 0) != 0 && n.Int("onesided", 0) != 0:
		return []int{2}
	}
	return nil
}

// foreknown is an error naming the first node whose trusted inputs are not known, as constants or
// in terms of the shapes of the graph's inputs.
func foreknown(g *onnx.Graph, env *shape.Env) error {
	for _, n := range g.Node {
		for _, i := range trusted(n) {
			if f, _ := env.Fact(onnx.Value(n.In(i))); f.Const == nil && f.Ints == nil {
				return &shape.Error{Node: n.Describe(), Err: fmt.Errorf("input %d %q must be a constant or an input of the graph, or follow from shapes: ONNX Runtime relies on it", i, n.In(i))}
			}
		}
		for _, s := range n.Subgraphs() {
			if body := env.Body(s); body != nil {
				if err := foreknown(s, body); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

func unknownOperator(n *onnx.Node) error {
	op := n.QualifiedOp()
	return &engine.UnsupportedError{Engine: Name, Node: n.Describe(), Op: op, Reason: fmt.Sprintf("operator %s is not known, so its attributes and types cannot be checked before ONNX Runtime trusts them", op)}
}

// known reports whether an operator's types can be inferred, or are those of a function of the
// model.
func known(m *onnx.Model, n *onnx.Node) bool {
	if shape.Known(n.Domain, n.OpType) {
		return true
	}
	for _, f := range m.Functions {
		if f.GetName() == n.OpType && onnx.NormalizeDomain(f.GetDomain()) == onnx.NormalizeDomain(n.Domain) {
			return true
		}
	}
	return false
}

// unguarded hands models and data to ONNX Runtime as they are, for the test that finds out what it
// does not survive by itself.
var unguarded bool
