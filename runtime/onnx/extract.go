package onnx

import (
	"fmt"
	"slices"
)

// Types tells the type of a value, and whether it is known. A shape.Env's Type method with a check
// for the zero type makes one.
type Types func(Value) (TensorType, bool)

// DeclaredTypes returns the types that a graph itself declares: of inputs, outputs, initializers
// and the values listed in value_info.
func DeclaredTypes(g *Graph) Types {
	m := map[Value]TensorType{}
	for _, list := range [][]*ValueInfo{g.GetInput(), g.GetOutput(), g.GetValueInfo()} {
		for _, v := range list {
			if t, ok := v.TensorType(); ok {
				m[Value(v.Name)] = t
			}
		}
	}
	for _, t := range g.GetInitializer() {
		if shape, _, err := protoShape(t); err == nil {
			m[Value(t.Name)] = TypeOf(dtypeOf(t), shape...)
		}
	}
	return func(v Value) (TensorType, bool) {
		t, ok := m[v]
		return t, ok
	}
}

// Extract returns the part of m that computes out from in: the nodes between, and the initializers
// they use. Every path back from out must end at in, at initializers or at constants; one that ends
// at another input of m is an error naming it. A value of in that m computes becomes an input with
// the type that types gives, or, when types is nil, that m declares; where neither knows it, that
// is an error. Weights are shared with m.
func Extract(m *Model, in, out []Value, types Types) (*Model, error) {
	c, err := extract(m, in, out, types)
	if err != nil {
		return nil, fmt.Errorf("extract from graph %q: %w", m.GetGraph().GetName(), err)
	}
	return c, nil
}

func extract(m *Model, in, out []Value, types Types) (*Model, error) {
	declared := DeclaredTypes(m.Graph)
	typeOf := func(v Value) (TensorType, bool) {
		if types != nil {
			if t, ok := types(v); ok {
				return t, true
			}
		}
		return declared(v)
	}
	c := m.ShallowClone()
	g := c.Graph
	x := NewIndex(g)
	cut := map[string]bool{}
	var inputs []*ValueInfo
	for _, v := range in {
		if cut[string(v)] {
			return nil, fmt.Errorf("input %q is named twice", v)
		}
		cut[string(v)] = true
		info := x.Input(v)
		if info == nil {
			if !x.Defined(v) {
				return nil, fmt.Errorf("input %q is not a value of the graph", v)
			}
			t, ok := typeOf(v)
			if !ok {
				return nil, fmt.Errorf("the type of input %q is not known", v)
			}
			info = NewValueInfo(v, t)
		}
		inputs = append(inputs, info)
	}
	var outputs []*ValueInfo
	for _, v := range out {
		info := x.Output(v)
		if info == nil {
			if !x.Defined(v) {
				return nil, fmt.Errorf("output %q is not a value of the graph", v)
			}
			t, ok := typeOf(v)
			if !ok {
				return nil, fmt.Errorf("the type of output %q is not known", v)
			}
			info = NewValueInfo(v, t)
		}
		outputs = append(outputs, info)
	}
	old := map[string]bool{}
	for _, v := range g.Inputs() {
		old[v.Name] = true
	}
	g.Input, g.Output = inputs, outputs
	// A value that is an input now is no longer computed: its producer stays only for its other
	// outputs, and then needs another name for this one.
	names := newNamer(c)
	for _, n := range g.Node {
		for i, o := range n.Output {
			if cut[o] {
				n.Output[i] = names.fresh(o + "/cut")
			}
		}
	}
	g.Initializer = slices.DeleteFunc(g.Initializer, func(t *TensorProto) bool { return cut[t.Name] })
	g.SparseInitializer = slices.DeleteFunc(g.SparseInitializer, func(t *SparseTensorProto) bool { return cut[t.GetValues().GetName()] })
	pruneGraph(g)
	pruneFunctions(c)
	for _, v := range g.Output {
		if old[v.Name] && !cut[v.Name] {
			return nil, fmt.Errorf("output %q is an input of the model that is not among the inputs given", v.Name)
		}
	}
	for _, n := range g.Node {
		for _, v := range Reads(n) {
			if old[string(v)] && !cut[string(v)] {
				return nil, fmt.Errorf("%s needs %q, which is not among the inputs given", n.Describe(), v)
			}
		}
	}
	return c, nil
}
