package onnx

import "github.com/onnxrl/onnxrl/runtime/onnx/schema"

// Lowered returns a copy of m that imports an older opset of the standard domain, or m itself when
// it does so already. It also returns m when that uses an operator that has appeared since, or one
// in a way that has changed. Each new opset renames the whole vocabulary but changes few words, and
// runtimes refuse a version that they do not know by its number alone. Weights are shared with m.
func Lowered(m *Model, opset int) *Model {
	have := m.Opset(DomainStandard)
	if have <= opset || len(m.Functions) > 0 {
		return m
	}
	same := true
	// The walk itself never fails, because this function does not.
	_ = m.EachGraph(func(g *Graph) error {
		for _, n := range g.Node {
			if NormalizeDomain(n.Domain) != DomainStandard {
				continue
			}
			known := true
			for v := opset + 1; known && v <= have; v++ {
				known = portable(n, DomainStandard, v-1, v) && fits(n, v-1)
			}
			same = same && known
		}
		return nil
	})
	if !same {
		return m
	}
	c := m.ShallowClone()
	c.SetOpset(DomainStandard, opset)
	return c
}

// fits reports whether an operator had every input, output and attribute that a node uses.
func fits(n *Node, opset int) bool {
	op, ok := schema.Lookup(DomainStandard, n.OpType, opset)
	if !ok || op.MaxInputs >= 0 && len(n.Input) > op.MaxInputs || op.MaxOutputs >= 0 && len(n.Output) > op.MaxOutputs {
		return false
	}
	for _, a := range n.Attribute {
		if _, ok := op.Attr(a.Name); !ok {
			return false
		}
	}
	return true
}
