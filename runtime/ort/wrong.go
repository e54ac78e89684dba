package ort

import (
	"github.com/onnxrl/onnxrl/runtime/engine"
	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/onnx/shape"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// wrong is an error for a model with a node that ONNX Runtime 1.32 is known to compute otherwise than
// the specification says, sub-graphs and functions included. env has the types of m.
func wrong(m *onnx.Model, env *shape.Env) error {
	if err := wrongIn(m.Graph.Node, env); err != nil {
		return err
	}
	for _, f := range m.Functions {
		if err := wrongIn(f.Node, nil); err != nil {
			return err
		}
	}
	return nil
}

// wrongIn looks through nodes; env is nil where their types are not known.
func wrongIn(nodes []*onnx.Node, env *shape.Env) error {
	for _, n := range nodes {
		if reason := wrongKernel(n, env); reason != "" {
			return &engine.UnsupportedError{Engine: Name, Node: n.Describe(), Op: n.OpType, Reason: reason}
		}
		for _, g := range n.Subgraphs() {
			var body *shape.Env
			if env != nil {
				body = env.Body(g)
			}
			if err := wrongIn(g.Node, body); err != nil {
				return err
			}
		}
	}
	return nil
}

// wrongKernel says what ONNX Runtime does with a node, empty where that is right.
func wrongKernel(n *onnx.Node, env *shape.Env) string {
	switch {
	case onnx.NormalizeDomain(n.Domain) != onnx.DomainStandard:
	case n.OpType == "MaxUnpool" && n.In(2) != "":
		return "ONNX Runtime takes the indices for those of output_shape, not for those of the tensor that was pooled"
	case n.OpType == "Attention" && n.Out(3) != "":
		// Softmax makes both the same, which is mode 3; mode 0 is before the mask.
		mode := n.Int("qk_matmul_output_mode", 0)
		masked := n.Int("is_causal", 0) != 0
		if mask := n.In(3); mask != "" && !masked {
			d := tensor.Undefined
			if env != nil {
				d = env.Type(onnx.Value(mask)).DType
			}
			masked = !d.IsFloat()
		}
		if masked && (mode == 1 || mode == 2) {
			return "ONNX Runtime gives masked scores (qk_matmul_output) as the lowest number instead of -Inf"
		}
	}
	return ""
}
