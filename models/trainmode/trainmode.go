// Package trainmode turns the evaluation form of BatchNormalization and Dropout into their training form as a graph rewrite, and says what a model holds of them.
//
// Exporters usually write models in evaluation form: BatchNormalization uses its running statistics and Dropout passes its input through, or both are folded into neighbouring layers
// and gone. [Find] names what is there; [Apply] makes BatchNormalization use the statistics of the batch and update the running ones, and makes Dropout multiply by a mask
// that is an input of the graph, because randomness is drawn in Go from a named stream (design decision D5).
//
// Deviation from PyTorch: ONNX updates the running variance with the biased variance of the batch (divided by n), PyTorch with the unbiased one (divided by n − 1).
package trainmode

import (
	"fmt"

	"onnxrl/runtime/onnx"
	"onnxrl/runtime/onnx/shape"
	"onnxrl/runtime/tensor"
)

// Layer is a BatchNormalization or Dropout node of a model.
type Layer struct {
	// Node is the node's name or first output; Op its operator; Training whether it is in training form.
	Node, Op string
	Training bool
}

// Mask is an input that carries a dropout mask: each element is 0 with probability Ratio and 1/(1−Ratio) otherwise.
type Mask struct {
	Input string
	Ratio float64
}

// Result says what [Apply] changed.
type Result struct {
	// Layers lists what was put into training form.
	Layers []Layer
	// Updates maps running statistics to the outputs that hold their new values.
	Updates map[string]string
	Masks   []Mask
}

// Find lists the BatchNormalization and Dropout nodes of a model's main graph.
func Find(m *onnx.Model) []Layer {
	var out []Layer
	for _, n := range m.Graph.Node {
		if onnx.NormalizeDomain(n.Domain) != "" || n.OpType != "BatchNormalization" && n.OpType != "Dropout" {
			continue
		}
		l := Layer{Node: n.Name, Op: n.OpType, Training: n.Int("training_mode", 0) != 0}
		if l.Node == "" {
			l.Node = string(n.Out(0))
		}
		if n.OpType == "Dropout" && n.In(2) != "" {
			// The mode is an input; it is known when it is an initializer.
			if t := m.Graph.FindInitializer(string(n.In(2))); t != nil {
				if b, err := onnx.TensorOf(t); err == nil && b.DType() == tensor.Bool && b.Len() == 1 {
					l.Training = b.Bools()[0]
				}
			}
		}
		out = append(out, l)
	}
	return out
}

// Apply returns a copy of m, which must use opset 14 or later, with its BatchNormalization and Dropout nodes in training form. Weights are shared with m.
func Apply(m *onnx.Model) (*onnx.Model, Result, error) {
	res := Result{Updates: map[string]string{}}
	if v := m.Opset(""); v < 14 {
		return nil, res, fmt.Errorf("training form: opset %d, expected 14 or later", v)
	}
	out := m.ShallowClone()
	env, err := shape.Infer(out, nil)
	if err != nil {
		return nil, res, fmt.Errorf("training form: %w", err)
	}
	b := onnx.Extend(out)
	for i, n := range out.Graph.Node {
		if onnx.NormalizeDomain(n.Domain) != "" {
			continue
		}
		name := n.Name
		if name == "" {
			name = string(n.Out(0))
		}
		switch n.OpType {
		case "BatchNormalization":
			n.SetAttr(onnx.AttrInt("training_mode", 1))
			for len(n.Output) < 3 {
				n.Output = append(n.Output, "")
			}
			for k, in := range []onnx.Value{n.In(3), n.In(4)} {
				if _, twice := res.Updates[string(in)]; twice {
					return nil, res, fmt.Errorf("training form: running statistics %q belong to two BatchNormalization nodes", in)
				}
				if n.Output[k+1] == "" {
					n.Output[k+1] = string(b.Fresh("buffer/" + string(in)))
				}
				b.Output(onnx.Value(n.Output[k+1]), env.Type(in))
				res.Updates[string(in)] = n.Output[k+1]
			}
			res.Layers = append(res.Layers, Layer{Node: name, Op: n.OpType, Training: true})
		case "Dropout":
			if n.Out(1) != "" {
				return nil, res, fmt.Errorf("training form: %s: the mask output of Dropout is used", n.Describe())
			}
			ratio := 0.5
			if r := n.In(1); r != "" {
				f, _ := env.Fact(r)
				if f.Const == nil || f.Const.Len() != 1 || f.Const.DType() != tensor.Float32 {
					return nil, res, fmt.Errorf("training form: %s: the ratio is not a constant float32", n.Describe())
				}
				ratio = float64(f.Const.Float32s()[0])
			}
			if !(ratio >= 0 && ratio < 1) {
				return nil, res, fmt.Errorf("training form: %s: ratio %g is not in [0, 1)", n.Describe(), ratio)
			}
			mask := b.Input("dropout/"+name, env.Type(n.In(0)))
			out.Graph.Node[i] = &onnx.Node{OpType: "Mul", Name: n.Name, Input: []string{n.Input[0], string(mask)}, Output: n.Output[:1]}
			res.Masks = append(res.Masks, Mask{Input: string(mask), Ratio: ratio})
			res.Layers = append(res.Layers, Layer{Node: name, Op: n.OpType, Training: true})
		}
	}
	if err := b.Err(); err != nil {
		return nil, res, fmt.Errorf("training form: %w", err)
	}
	return out, res, nil
}
