package autodiff

import (
	"github.com/onnxrl/onnxrl/runtime/onnx"
)

// marks says which values and nodes lie between the differentiated values and the losses.
type marks struct {
	useful  map[string]bool
	reached map[string]bool
}

// on reports whether a node is on a path: an output is reached and useful, and an input is useful.
func (k marks) on(n *onnx.Node) bool {
	for _, o := range n.Output {
		if o != "" && k.useful[o] && k.reached[o] {
			return true
		}
	}
	return false
}

// mark walks the nodes forwards for useful values and backwards for reached ones.
func (p *pass) mark(obj objective, nodes []*onnx.Node) marks {
	k := marks{useful: map[string]bool{}, reached: map[string]bool{}}
	for _, w := range obj.wrt {
		k.useful[w] = true
	}
	for _, n := range nodes {
		if r := p.ruleOf(n); r != nil && r.Zero {
			continue
		}
		use := false
		for _, in := range p.operands(n) {
			use = use || k.useful[in] && !obj.stop[in]
		}
		if !use {
			continue
		}
		for _, o := range n.Output {
			if o != "" && p.c.DType(onnx.Value(o)).IsFloat() {
				k.useful[o] = true
			}
		}
	}
	for _, l := range obj.Losses {
		k.reached[l.Value] = true
	}
	for i := len(nodes) - 1; i >= 0; i-- {
		n := nodes[i]
		hit := false
		for _, o := range n.Output {
			hit = hit || o != "" && k.reached[o] && k.useful[o]
		}
		if hit {
			for _, in := range p.operands(n) {
				k.reached[in] = true
			}
		}
	}
	return k
}

func (p *pass) ruleOf(n *onnx.Node) *Rule {
	return p.rules.find(n.Domain, n.OpType, p.model.Opset(n.Domain))
}

// operands lists a node's inputs followed by the outer values its sub-graphs capture.
func operands(n *onnx.Node) []string {
	if len(n.Subgraphs()) == 0 {
		return n.Input
	}
	ops := append([]string(nil), n.Input...)
	for _, v := range onnx.Captures(n) {
		ops = append(ops, string(v))
	}
	return ops
}
