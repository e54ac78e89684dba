package onnx

import (
	"fmt"
	"slices"
	"strings"
)

// graphCheck walks the graphs of a model, or the body of a function, under one set of opsets.
type graphCheck struct {
	*checker
	opsets   []*OperatorSet
	where    string
	function *Function // nil outside functions
}

// graph checks one graph. outer is the scope of the graphs around it at the node that holds it.
func (c *graphCheck) graph(g *Graph, outer *scope, main bool) {
	s := &scope{parent: outer, names: map[string]bool{}}
	for _, v := range g.Input {
		c.define(s, v.Name, "input")
		c.declared(v, "input", main)
	}
	c.initializers(g, s)
	c.nodes(g, s)
	seen := map[string]bool{}
	for _, v := range g.Output {
		c.declared(v, "output", main)
		if seen[v.Name] {
			c.add(c.where, "output %q is listed twice", v.Name)
		}
		seen[v.Name] = true
		switch {
		case v.Name == "" || s.names[v.Name]:
		case s.has(v.Name):
			c.add(c.where, "output %q is a value of an outer graph; an Identity node is needed", v.Name)
		default:
			c.add(c.where, "output %q is not produced by any node", v.Name)
		}
	}
}

// define enters a name into a scope.
func (c *graphCheck) define(s *scope, name, kind string) {
	switch {
	case name == "":
		c.add(c.where, "%s without a name", kind)
	case s.names[name]:
		c.add(c.where, "%s %q: the name is already in use", kind, name)
	case s.has(name):
		c.add(c.where, "%s %q hides a value of an outer graph", kind, name)
	}
	s.names[name] = true
}

// declared checks the type of an input or output. Only those of the main graph need one.
func (c *graphCheck) declared(v *ValueInfo, kind string, main bool) {
	if v.GetType() == nil || v.Type.Value == nil {
		if main {
			c.add(c.where, "%s %q has no type", kind, v.Name)
		}
		return
	}
	if t := v.Type.GetTensorType(); t != nil && t.ElemType == 0 && main {
		c.add(c.where, "%s %q has no element type", kind, v.Name)
	}
	eachDim(v.Type, func(d *TensorShapeProto_Dimension) {
		if d.GetDimValue() < 0 {
			c.add(c.where, "%s %q has the extent %d", kind, v.Name, d.GetDimValue())
		}
	})
}

func (c *graphCheck) initializers(g *Graph, s *scope) {
	inputs := map[string]*ValueInfo{}
	for _, v := range g.Input {
		inputs[v.Name] = v
	}
	seen := map[string]bool{}
	add := func(name string, t *TensorProto, dims []int64) {
		where := fmt.Sprintf("initializer %q", name)
		if seen[name] {
			c.add(where, "the name is used twice")
		}
		seen[name] = true
		in := inputs[name]
		if in == nil {
			c.define(s, name, "initializer")
			if c.model.IrVersion < 4 && c.function == nil && s.parent == nil {
				c.add(where, "with ir_version %d it must be listed among the inputs", c.model.IrVersion)
			}
			return
		}
		if typ, ok := in.TensorType(); ok {
			shape := make([]int, len(dims))
			for i, d := range dims {
				shape[i] = int(d)
			}
			if !typ.Admits(dtypeOf(t), shape) {
				c.add(where, "it is %v%v, the input of that name %v", dtypeOf(t), dims, typ)
			}
		}
	}
	for _, t := range g.Initializer {
		add(t.Name, t, t.Dims)
		if err := checkTensor(t); err != nil {
			c.add(c.where, "%v", err)
		} else if c.opts.Finite {
			c.checkNumbers(t)
		}
	}
	for _, t := range g.SparseInitializer {
		add(t.GetValues().GetName(), t.GetValues(), t.Dims)
		if err := checkSparse(t); err != nil {
			c.add(c.where, "sparse %v", err)
		}
	}
}

// nodes checks order and names, and each node by itself.
func (c *graphCheck) nodes(g *Graph, s *scope) {
	later := map[string]bool{}
	for _, n := range g.Node {
		for _, o := range n.Output {
			if o != "" {
				later[o] = true
			}
		}
	}
	names := map[string]bool{}
	var loop []*Node
	searched := false
	for i, n := range g.Node {
		if n.Name != "" && names[n.Name] {
			c.add(c.where, "node %d: the name %q is used by an earlier node", i, n.Name)
		}
		names[n.Name] = true
		for _, v := range n.Input {
			if v == "" || s.has(v) {
				continue
			}
			if !later[v] {
				c.add(n.Describe(), "input %q is not defined", v)
				continue
			}
			if !searched {
				searched = true
				if loop = NewTopology(g).Cycle(); loop != nil {
					c.add(c.where, "%v", cycleError(loop))
				}
			}
			// In a cycle every order is wrong, so the cycle is the fault to report, once.
			if loop == nil {
				c.add(n.Describe(), "input %q is used before the node that produces it", v)
			}
		}
		for _, a := range n.Attribute {
			for _, sub := range append([]*Graph{a.G}, a.Graphs...) {
				if sub != nil {
					inner := *c
					inner.where = fmt.Sprintf("%s, %s", n.Describe(), a.Name)
					inner.graph(sub, s, false)
				}
			}
		}
		c.node(n)
		for _, o := range n.Output {
			if o != "" {
				if s.has(o) {
					c.add(n.Describe(), "output %q is already defined", o)
				}
				s.names[o] = true
			}
		}
	}
}

// function_ checks a function's body as a graph whose inputs have no types.
func (c *graphCheck) function_(f *Function) {
	s := &scope{names: map[string]bool{}}
	for _, v := range f.Input {
		c.define(s, v, "input")
	}
	attrs := map[string]bool{}
	for _, a := range append(slices.Clone(f.Attribute), attributeNames(f.AttributeProto)...) {
		if attrs[a] {
			c.add(c.where, "attribute %q is declared twice", a)
		}
		attrs[a] = true
	}
	c.nodes(&Graph{Node: f.Node}, s)
	for _, v := range f.Output {
		if !s.names[v] {
			c.add(c.where, "output %q is not produced by any node", v)
		}
	}
}

func attributeNames(list []*Attribute) []string {
	out := make([]string, len(list))
	for i, a := range list {
		out[i] = a.Name
	}
	return out
}

// declaresAttribute reports whether a function lets its caller give an attribute.
func declaresAttribute(f *Function, name string) bool {
	return slices.Contains(f.Attribute, name) || slices.Contains(attributeNames(f.AttributeProto), name)
}

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, strings.TrimSuffix(what, "s"))
}
