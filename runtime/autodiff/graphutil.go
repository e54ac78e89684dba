package autodiff

import (
	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/onnx/shape"
)

// renameValue renames a value in the given nodes and their sub-graphs.
func renameValue(nodes []*onnx.Node, from, to string) {
	renameValues(nodes, map[string]string{from: to})
}

// renameValues renames values in the given nodes and their sub-graphs.
func renameValues(nodes []*onnx.Node, names map[string]string) {
	for _, n := range nodes {
		for i, v := range n.Input {
			n.Input[i] = rename(names, v)
		}
		for i, v := range n.Output {
			n.Output[i] = rename(names, v)
		}
		for _, g := range n.Subgraphs() {
			renameValues(g.Node, names)
			for _, v := range g.Output {
				v.Name = rename(names, v.Name)
			}
		}
	}
}

// factOf is the fact of a value of which nothing but the type is known.
func factOf(t onnx.TensorType) shape.Fact { return shape.Fact{Type: t} }
