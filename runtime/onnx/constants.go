package onnx

import (
	"fmt"

	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// ConstantOf returns the value of a Constant node, in any of the forms the operator has. A sparse
// value's dense form may take at most 1 GiB.
func ConstantOf(n *Node) (*tensor.Tensor, error) {
	t, err := constantOf(n)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", n.Describe(), err)
	}
	return t, nil
}

func constantOf(n *Node) (*tensor.Tensor, error) {
	if len(n.Attribute) != 1 {
		return nil, fmt.Errorf("it has %d attributes, exactly one is expected", len(n.Attribute))
	}
	a := n.Attribute[0]
	if a.RefAttrName != "" {
		return nil, fmt.Errorf("its value refers to attribute %q of a function", a.RefAttrName)
	}
	switch a.Name {
	case "value":
		if a.T == nil {
			return nil, fmt.Errorf("attribute %q holds no tensor", a.Name)
		}
		return TensorOf(a.T)
	case "sparse_value":
		if a.SparseTensor == nil {
			return nil, fmt.Errorf("attribute %q holds no sparse tensor", a.Name)
		}
		return TensorOfSparse(a.SparseTensor, 1<<30)
	case "value_int":
		return tensor.Scalar(a.I), nil
	case "value_ints":
		return tensor.Of(a.Ints, len(a.Ints)), nil
	case "value_float":
		return tensor.Scalar(a.F), nil
	case "value_floats":
		return tensor.Of(a.Floats, len(a.Floats)), nil
	case "value_string":
		return tensor.OfStrings([]string{string(a.S)}), nil
	case "value_strings":
		s := make([]string, len(a.Strings))
		for i, b := range a.Strings {
			s[i] = string(b)
		}
		return tensor.OfStrings(s, len(s)), nil
	}
	return nil, fmt.Errorf("attribute %q is not one of a constant's", a.Name)
}

// ConstantsToInitializers returns a copy of m in which the values of Constant nodes are
// initializers of the graph, or sub-graph, that the node stood in. A constant that is itself an
// output of its graph stays a node: not every engine returns an initializer. The tensors' memory is
// shared with m where it was raw data.
func ConstantsToInitializers(m *Model) (*Model, error) {
	c := m.ShallowClone()
	err := eachGraph(c.Graph, func(g *Graph) error {
		out := map[string]bool{}
		for _, v := range g.Output {
			out[v.Name] = true
		}
		nodes := make([]*Node, 0, len(g.Node))
		for _, n := range g.Node {
			if n.OpType != "Constant" || NormalizeDomain(n.Domain) != DomainStandard || len(n.Output) != 1 || out[n.Output[0]] {
				nodes = append(nodes, n)
				continue
			}
			// The message is kept as it is where it can be, so that types this program cannot
			// compute with survive.
			if a := n.Attr("value"); a != nil && a.T != nil && len(n.Attribute) == 1 && a.RefAttrName == "" {
				g.Initializer = append(g.Initializer, renamedTensor(a.T, n.Output[0]))
				continue
			}
			t, err := ConstantOf(n)
			if err != nil {
				return err
			}
			g.Initializer = append(g.Initializer, ProtoOf(n.Output[0], t))
		}
		g.Node = nodes
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("make constants initializers: %w", err)
	}
	return c, nil
}
