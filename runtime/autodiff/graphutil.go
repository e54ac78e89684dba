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
