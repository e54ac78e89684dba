package shape

import (
	"errors"
	"fmt"
	"slices"

	"google.golang.org/protobuf/proto"

	"github.com/onnxrl/onnxrl/runtime/onnx"
)

// Contradiction is a type that a model declares for a value of its own and that the nodes before the
// value contradict. Inference goes by the nodes.
type Contradiction struct {
	// Value is the name; Node describes the node that makes it.
	Value, Node string
	// Declared and Inferred are the two types.
	Declared, Inferred string
}

// String says both types, and what becomes of the declaration.
func (c Contradiction) String() string {
	return fmt.Sprintf("%s: value %q is declared %s, but inferred %s: the declaration is left out", c.Node, c.Value, c.Declared, c.Inferred)
}

// contradiction is the error of a declared type that does not fit.
type contradiction struct{ declared, inferred string }

func (c *contradiction) Error() string {
	return fmt.Sprintf("it is declared %s, but inferred %s", c.declared, c.inferred)
}

// forgive records a contradiction about output i of a node, unless it concerns what callers see: an
// output of the model. There it only forgives what exporters make of an If whose condition is
// constant: they copy the type of the branch that is never taken.
func (e *Env) forgive(n *onnx.Node, i int, d *onnx.ValueInfo, err error) bool {
	c := new(contradiction)
	if !errors.As(err, &c) {
		return false
	}
	if e.graph == e.model.Graph && slices.Contains(e.graph.Output, d) && !e.copiesBranch(n, i, d) {
		return false
	}
	if !e.contradicted[d.GetName()] {
		if e.contradicted == nil {
			e.contradicted = map[string]bool{}
		}
		e.contradicted[d.GetName()] = true
		e.contradictions = append(e.contradictions, Contradiction{d.GetName(), n.Describe(), c.declared, c.inferred})
	}
	return true
}

// copiesBranch reports whether a node is an If and a branch that is not taken declares the type of d
// for output i.
func (e *Env) copiesBranch(n *onnx.Node, i int, d *onnx.ValueInfo) bool {
	if n.OpType != "If" || onnx.NormalizeDomain(n.Domain) != onnx.DomainStandard {
		return false
	}
	want, ok := d.TensorType()
	for _, g := range n.Subgraphs() {
		if e.bodies[g] != nil || i >= len(g.Output) {
			continue // taken, so it counts
		}
		if have, same := g.Output[i].TensorType(); ok && same && have.Equal(want) {
			return true
		}
	}
	return false
}

// Contradictions lists the declared types that inference has found to be wrong and left out, each
// value once. Those of a model's inputs, outputs and initializers are errors instead, but for an
// output of an If that repeats the type of a branch that is never taken.
func (e *Env) Contradictions() []Contradiction { return e.contradictions }

// Note says in one line what was left out, empty where nothing was.
func (e *Env) Note() string {
	switch n := len(e.contradictions); n {
	case 0:
		return ""
	case 1:
		return e.contradictions[0].String()
	default:
		return fmt.Sprintf("%v (and of %d more values; 'onnxrl graph check' lists them)", e.contradictions[0], n-1)
	}
}

// Consistent returns m, whose types e has, without the declared types that the nodes contradict. The
// model is copied when there are any.
func (e *Env) Consistent(m *onnx.Model) *onnx.Model {
	if len(e.contradictions) == 0 {
		return m
	}
	c := m.ShallowClone()
	wrong := func(v *onnx.ValueInfo) bool { return e.contradicted[v.Name] }
	// The walk never fails, because this function does not.
	_ = c.EachGraph(func(g *onnx.Graph) error {
		g.ValueInfo = slices.DeleteFunc(g.ValueInfo, wrong)
		for _, v := range g.Output {
			if wrong(v) && g != c.Graph {
				v.Type = nil
			}
		}
		return nil
	})
	for _, v := range c.Graph.Output {
		if f, ok := e.Fact(onnx.Value(v.Name)); ok && wrong(v) {
			v.Type = onnx.NewValueInfo("", f.Type).Type
		}
	}
	for i, f := range c.Functions {
		if slices.ContainsFunc(f.ValueInfo, wrong) {
			f = proto.Clone(f).(*onnx.Function)
			f.ValueInfo = slices.DeleteFunc(f.ValueInfo, wrong)
			c.Functions[i] = f
		}
	}
	return c
}
