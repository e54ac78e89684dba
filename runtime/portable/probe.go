package portable

import (
	"errors"
	"slices"

	"github.com/onnxrl/onnxrl/runtime/engine"
	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/onnx/shape"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// probe returns the [engine.UnsupportedError] of the first node whose kernel refuses the types of its
// inputs, in sub-graphs too, so that a model is refused when it is loaded and not at its first run.
// Kernels say themselves what they do: each is run on a few zeros of the inferred types. Nodes whose
// types are not known, and those that have only the types that every kernel takes, are not.
func probe(g *onnx.Graph, env *shape.Env) error {
	for _, n := range g.Node {
		bodies := n.Subgraphs()
		for _, s := range bodies {
			if body := env.Body(s); body != nil { // nil is a branch that is never taken
				if err := probe(s, body); err != nil {
					return err
				}
			}
		}
		if len(bodies) > 0 {
			continue
		}
		in, ok := probeInputs(n, env)
		if !ok {
			continue
		}
		_, err := eval(n, env.Opset(n.Domain), in)
		// Zeros of made-up extents need not fit otherwise.
		if u := new(engine.UnsupportedError); errors.As(err, &u) {
			return &engine.UnsupportedError{Engine: Name, Node: n.Describe(), Op: opName(n), Reason: u.Reason}
		}
	}
	return nil
}

const (
	// maxProbed is the largest extent of a probe, which is 2 with more than maxRankProbed axes.
	maxProbed     = 8
	maxRankProbed = 4
	// maxProbedConst is the largest constant that is given to a node as it is: axes, pads, shapes.
	maxProbedConst = 64
	// maxProbedOutput bounds what a node may make of its attributes and constants.
	maxProbedOutput = 1 << 20
)

// probeInputs makes the inputs that a node is tried on; ok is false where it is not to be tried.
func probeInputs(n *onnx.Node, env *shape.Env) (in []*tensor.Tensor, ok bool) {
	usual, most := true, maxProbed
	facts := make([]shape.Fact, len(n.Input))
	for i, v := range n.Input {
		if v == "" {
			continue
		}
		f, known := env.Fact(onnx.Value(v))
		if !known || f.Kind != shape.Tensor || !f.Type.Ranked || f.Type.DType.Bits() == 0 && f.Type.DType != tensor.String {
			return nil, false
		}
		usual = usual && isUsual(f.Type.DType)
		if len(f.Type.Dims) > maxRankProbed {
			usual, most = false, 2
		}
		facts[i] = f
	}
	for _, v := range n.Output {
		if v == "" {
			continue
		}
		t := env.Type(onnx.Value(v))
		usual = usual && isUsual(t.DType)
		size := 1
		for _, d := range t.Dims {
			size *= max(1, min(d.Value, maxProbedOutput+1))
			if size > maxProbedOutput && len(n.Input) <= 1 {
				return nil, false
			}
			size = min(size, maxProbedOutput+1)
		}
	}
	if usual {
		return nil, false
	}
	in = make([]*tensor.Tensor, len(facts))
	for i, f := range facts {
		switch {
		case n.Input[i] == "":
		case f.Const != nil && f.Const.Len() <= maxProbedConst:
			in[i] = f.Const
		default:
			extents := make([]int, len(f.Type.Dims))
			for a, d := range f.Type.Dims {
				extents[a] = min(d.Value, most)
				if !d.IsKnown() {
					extents[a] = 2
				}
			}
			in[i] = tensor.New(f.Type.DType, extents...)
		}
	}
	return in, true
}

// isUsual reports whether every kernel takes an element type, where the operator does.
func isUsual(d tensor.DType) bool {
	return slices.Contains([]tensor.DType{tensor.Float32, tensor.Int64, tensor.Bool}, d)
}
