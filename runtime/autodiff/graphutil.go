package autodiff

import "onnxrl/runtime/onnx"

// nodeName is how gradient values refer to a forward node: its name, or its first output when it has none.
func nodeName(n *onnx.Node) string {
	if n.Name != "" {
		return n.Name
	}
	for _, o := range n.Output {
		if o != "" {
			return o
		}
	}
	return n.OpType
}

// renameValue renames a value in the given nodes and their sub-graphs.
func renameValue(nodes []*onnx.Node, from, to string) {
	for _, n := range nodes {
		for i, v := range n.Input {
			if v == from {
				n.Input[i] = to
			}
		}
		for i, v := range n.Output {
			if v == from {
				n.Output[i] = to
			}
		}
		for _, g := range n.Subgraphs() {
			renameValue(g.Node, from, to)
			for _, v := range g.Output {
				if v.Name == from {
					v.Name = to
				}
			}
		}
	}
}

// prune removes nodes and initializers that no graph output depends on. Graph inputs stay: they are the caller's interface.
func prune(g *onnx.Graph) {
	live := map[string]bool{}
	for _, v := range g.Output {
		live[v.Name] = true
	}
	keep := make([]bool, len(g.Node))
	for i := len(g.Node) - 1; i >= 0; i-- {
		n := g.Node[i]
		for _, o := range n.Output {
			keep[i] = keep[i] || o != "" && live[o]
		}
		if keep[i] {
			for _, in := range operands(n) {
				live[in] = true
			}
		}
	}
	nodes := g.Node[:0:0]
	for i, n := range g.Node {
		if keep[i] {
			nodes = append(nodes, n)
		}
	}
	g.Node = nodes
	inputs := map[string]bool{}
	for _, v := range g.Input {
		inputs[v.Name] = true
	}
	init := g.Initializer[:0:0]
	for _, t := range g.Initializer {
		if live[t.Name] || inputs[t.Name] {
			init = append(init, t)
		}
	}
	g.Initializer = init
}
