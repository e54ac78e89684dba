package autodiff

import (
	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/onnx/shape"
)

// inline appends a copy of a sub-graph's nodes, args standing for its inputs, and returns its
// outputs. Outer values that the sub-graph captures keep their names, all others get fresh ones, so
// that a body can be inlined many times. Initializers are shared by all copies.
func (c *Context) inline(g *onnx.Graph, args []onnx.Value) []onnx.Value {
	if len(args) != len(g.Input) {
		c.Fail("sub-graph %q has %d inputs, %d are given", g.Name, len(g.Input), len(args))
	}
	if len(g.SparseInitializer) > 0 {
		c.Fail("sub-graph %q has sparse initializers, which are not supported here", g.Name)
	}
	if c.b.Err() != nil {
		return make([]onnx.Value, len(g.Output))
	}
	names := map[string]string{}
	for i, v := range g.Input {
		names[v.Name] = string(args[i])
	}
	for _, t := range g.Initializer {
		names[t.Name] = string(c.lift(t))
	}
	for _, n := range g.Node {
		c.b.Append(c.renamed(n, names))
	}
	out := make([]onnx.Value, len(g.Output))
	for i, v := range g.Output {
		out[i] = onnx.Value(rename(names, v.Name))
	}
	return out
}

// lift makes a sub-graph's initializer one of the main graph, once.
func (c *Context) lift(t *onnx.TensorProto) onnx.Value {
	if v, ok := c.lifted[t]; ok {
		return v
	}
	x, err := onnx.TensorOf(t)
	if err != nil {
		c.b.Fail(err)
		return ""
	}
	v := c.b.Fresh(t.Name)
	main := c.b.Graph()
	main.Initializer = append(main.Initializer, onnx.ProtoOf(string(v), x))
	c.env.Set(v, shape.Fact{Type: onnx.TypeOf(x.DType(), x.Shape()...), Const: x})
	if c.lifted == nil {
		c.lifted = map[*onnx.TensorProto]onnx.Value{}
	}
	c.lifted[t] = v
	return v
}

// fresh names a copy of a value after what was copied first, so that copies of copies keep short
// names.
func (c *Context) fresh(v string) string {
	from := c.originOf(v)
	name := string(c.b.Fresh(from))
	if c.origin == nil {
		c.origin = map[string]string{}
	}
	c.origin[name] = from
	return name
}

// originOf returns what a copied value was called, or the name itself.
func (c *Context) originOf(name string) string {
	if from, ok := c.origin[name]; ok {
		return from
	}
	return name
}

func rename(names map[string]string, name string) string {
	if to, ok := names[name]; ok {
		return to
	}
	return name
}

// renamed copies a node with fresh names for its outputs, which it adds to names, and for all that
// its own sub-graphs define.
func (c *Context) renamed(n *onnx.Node, names map[string]string) *onnx.Node {
	m := n.ShallowClone()
	for i, v := range m.Input {
		m.Input[i] = rename(names, v)
	}
	for i, a := range m.Attribute {
		if a.G != nil {
			m.Attribute[i] = onnx.AttrGraph(a.Name, c.renamedGraph(a.G, names))
		}
	}
	for i, v := range m.Output {
		if v != "" {
			names[v] = c.fresh(v)
			m.Output[i] = names[v]
		}
	}
	// Copies of one node must not share its name.
	m.Name = ""
	m.Name = m.Label()
	return m
}

func (c *Context) renamedGraph(g *onnx.Graph, outer map[string]string) *onnx.Graph {
	names := map[string]string{}
	for k, v := range outer {
		names[k] = v
	}
	g = g.ShallowClone()
	g.ValueInfo = nil
	for _, v := range g.Input {
		names[v.Name] = c.fresh(v.Name)
		v.Name = names[v.Name]
	}
	for _, t := range g.Initializer {
		names[t.Name] = string(c.lift(t))
	}
	g.Initializer = nil
	for i, n := range g.Node {
		g.Node[i] = c.renamed(n, names)
	}
	for _, v := range g.Output {
		v.Name = rename(names, v.Name)
	}
	return g
}
