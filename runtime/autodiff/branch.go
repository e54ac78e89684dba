package autodiff

import (
	"slices"

	"github.com/onnxrl/onnxrl/runtime/onnx"
)

// branch is one side of an If while its gradient is built.
type branch struct {
	name string
	// forward computes outs, the branch's outputs, again; backward the gradients of the outer
	// values.
	forward, backward []*onnx.Node
	outs, gradients   []onnx.Value
	// packed holds the gradients that are handed over together, whole ones and pieces of packs that
	// branches below have made.
	packed []packed
}

// branchGradient computes a branch of n again and from it the gradients of the captured values wrt,
// in order; values that the branch does not use get zeros. g holds the gradients of the branch's
// outputs. The nodes are made at the end of the main graph, where the builder and inference work,
// and taken from there.
func (p *pass) branchGradient(n *onnx.Node, name string, g, wrt []onnx.Value) (*branch, error) {
	b := &branch{name: name}
	main := p.c.b.Graph()
	mark, scope := len(main.Node), p.c.b.SetScope("")
	defer p.c.b.SetScope(scope)
	inner := p.scope + p.c.originOf(n.Label()) + "/" + name + "/"
	p.c.b.SetScope(inner)
	b.outs = p.c.inline(n.Body(name), nil)
	inlined := main.Node[mark:]
	main.Node = main.Node[:mark:mark]
	for _, n := range inlined {
		if err := p.expandNode(n, 0); err != nil {
			return nil, err
		}
	}
	if err := p.c.b.Err(); err != nil {
		return nil, err
	}
	b.forward = slices.Clone(main.Node[mark:])
	obj := objective{stop: map[string]bool{}}
	grads := map[string][]onnx.Value{}
	outer := p.outer
	defer func() { p.outer = outer }()
	p.outer = map[onnx.Value]bool{}
	for i, o := range b.outs {
		if g[i] == "" {
			continue
		}
		obj.Losses = append(obj.Losses, Loss{Value: string(o)})
		// Where the other branch has another shape, the gradient has this one's when this one runs.
		grads[string(o)] = append(grads[string(o)], p.c.ReshapeLike(g[i], o))
	}
	for _, w := range wrt {
		obj.wrt = append(obj.wrt, string(w))
		p.outer[w] = true
	}
	k := p.mark(obj, b.forward)
	for i := len(b.forward) - 1; i >= 0; i-- {
		if n := b.forward[i]; k.on(n) {
			p.c.b.SetScope(p.scope + p.c.originOf(n.Label()) + "/")
			if err := p.backward(n, obj, k, grads); err != nil {
				return nil, err
			}
		}
	}
	p.c.b.SetScope(inner)
	p.outer = outer
	for _, w := range wrt {
		if p.packs(w) {
			b.packed = append(b.packed, p.packedOf(grads, w))
			continue
		}
		d := p.accumulate(grads, string(w))
		if d == "" {
			d = p.c.ZerosLike(w)
		}
		b.gradients = append(b.gradients, p.c.Unary("Identity", d))
	}
	if err := p.c.b.Err(); err != nil {
		return nil, err
	}
	b.backward = slices.Clone(main.Node[mark+len(b.forward):])
	main.Node = main.Node[:mark:mark]
	return b, nil
}

// graph returns the branch of the gradient.
func (b *branch) graph(c *Context) *onnx.Graph {
	g := &onnx.Graph{Name: b.name, Node: slices.Concat(b.forward, b.backward)}
	for _, v := range b.gradients {
		g.Output = append(g.Output, onnx.NewValueInfo(v, c.declarable(c.Type(v))))
	}
	return g
}

// emitted calls f and returns the nodes that it appended to the main graph, from where they are
// taken.
func (c *Context) emitted(f func()) []*onnx.Node {
	main := c.b.Graph()
	mark := len(main.Node)
	f()
	nodes := slices.Clone(main.Node[mark:])
	main.Node = main.Node[:mark:mark]
	return nodes
}

// made is the set of the values that nodes compute.
func made(nodes []*onnx.Node) map[string]bool {
	set := map[string]bool{}
	for _, n := range nodes {
		for _, o := range n.Output {
			set[o] = o != ""
		}
	}
	return set
}

// nested reports whether a branch holds further conditions.
func (b *branch) nested() bool {
	return slices.ContainsFunc(b.forward, func(n *onnx.Node) bool { return n.OpType == "If" && n.Domain == "" })
}

// needed lists the forward values that the backward nodes read, in the order of the forward nodes.
func (b *branch) needed() []string {
	read := map[string]bool{}
	for _, n := range b.backward {
		for _, v := range operands(n) {
			read[v] = true
		}
	}
	var list []string
	for _, n := range b.forward {
		for _, o := range n.Output {
			if o != "" && read[o] {
				list = append(list, o)
			}
		}
	}
	return list
}
