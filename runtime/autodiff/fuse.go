package autodiff

import (
	"fmt"

	"github.com/onnxrl/onnxrl/runtime/onnx"
)

// fused is a gradient that an expansion gives to one of its nodes in place of the operator's rule.
type fused struct {
	operands []string
	vjp      VJP
}

// Fuse gives the value v, which the running expansion has made, a gradient rule of its own: v
// counts as a function of the operands, and the nodes in between are passed over. It is for
// composites whose gradient is shorter than that of their parts, such as normalisation. The rule
// receives the node that makes v; values that it needs besides that node's inputs and output must
// not be outputs of the expansion, which are renamed.
func (c *Context) Fuse(v onnx.Value, operands []onnx.Value, vjp VJP) {
	nodes := c.b.Graph().Node
	for i := len(nodes) - 1; i >= 0; i-- {
		if nodes[i].Out(0) != v {
			continue
		}
		f := fused{vjp: vjp}
		for _, o := range operands {
			f.operands = append(f.operands, string(o))
		}
		if c.fused == nil {
			c.fused = map[*onnx.Node]fused{}
		}
		c.fused[nodes[i]] = f
		return
	}
	if c.b.Err() == nil {
		c.b.Fail(fmt.Errorf("fuse: no node makes value %q", v))
	}
}

// operands lists the values that a node's gradients are for: see operands, unless an expansion has
// fused the node.
func (p *pass) operands(n *onnx.Node) []string {
	if f, ok := p.c.fused[n]; ok {
		return f.operands
	}
	return operands(n)
}

// vjpOf returns the rule for a node's gradient, or nil.
func (p *pass) vjpOf(n *onnx.Node) VJP {
	if f, ok := p.c.fused[n]; ok {
		return f.vjp
	}
	if r := p.ruleOf(n); r != nil {
		return r.VJP
	}
	return nil
}
