package models

import (
	"fmt"
	"slices"

	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/onnx/shape"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// ModeLayer is a BatchNormalization or Dropout node of a model.
type ModeLayer struct {
	// Node is the node's name or first output; Op its operator; Training whether it is in training
	// form.
	Node, Op string
	Training bool
}

// DropoutMask is an input that carries a dropout mask: each element is 0 with probability Ratio and
// 1/(1−Ratio) otherwise.
type DropoutMask struct {
	Input string
	Ratio float64
}

// TrainingChanges says what [TrainingForm] changed.
type TrainingChanges struct {
	// Layers lists what was put into training form.
	Layers []ModeLayer
	// Updates maps running statistics to the outputs that hold their new values.
	Updates map[string]string
	Masks   []DropoutMask
}

// ModeLayers lists the BatchNormalization and Dropout nodes of a model, those of sub-graphs and
// functions included.
func ModeLayers(m *onnx.Model) []ModeLayer {
	var out []ModeLayer
	walk := func(nodes []*onnx.Node) {
		for _, n := range nodes {
			if isLayer(n) {
				out = append(out, ModeLayer{Node: nameOf(n), Op: n.OpType, Training: isTraining(m, n)})
			}
		}
	}
	// The walk itself never fails, because this function does not.
	_ = m.EachGraph(func(g *onnx.Graph) error {
		walk(g.Node)
		return nil
	})
	for _, f := range m.Functions {
		walk(f.Node)
	}
	return out
}

func isLayer(n *onnx.Node) bool {
	return onnx.NormalizeDomain(n.Domain) == onnx.DomainStandard && (n.OpType == "BatchNormalization" || n.OpType == "Dropout")
}

func nameOf(n *onnx.Node) string {
	if n.Name != "" {
		return n.Name
	}
	return string(n.Out(0))
}

// isTraining reports whether a layer is in training form. BatchNormalization before opset 14 said
// so by having more than one output; Dropout from opset 12 on by its third input, which counts as
// training unless it is known to be false.
func isTraining(m *onnx.Model, n *onnx.Node) bool {
	if n.OpType == "BatchNormalization" {
		return n.Int("training_mode", 0) != 0 || m.Opset(onnx.DomainStandard) < 14 && len(n.Output) > 1
	}
	mode := n.In(2)
	if mode == "" {
		return false
	}
	t, err := constant(m, mode)
	return err != nil || t == nil || t.DType() != tensor.Bool || t.Len() != 1 || t.Bools()[0]
}

// constant returns the content of an initializer or Constant node of the main graph, or nil.
func constant(m *onnx.Model, v onnx.Value) (*tensor.Tensor, error) {
	if p := m.Graph.FindInitializer(string(v)); p != nil {
		return onnx.TensorOf(p)
	}
	for _, n := range m.Graph.Node {
		if n.OpType == "Constant" && n.Out(0) == v {
			return onnx.ConstantOf(n)
		}
	}
	return nil, nil
}

// EvaluationForm returns a copy of m with the layers of its main graph that were exported in training
// form put into evaluation form, and the list of them. Weights are shared with m; a model without
// such layers is returned as it is.
func EvaluationForm(m *onnx.Model) (*onnx.Model, []ModeLayer, error) {
	var changed []ModeLayer
	out := m.ShallowClone()
	x := onnx.NewIndex(out.Graph)
	for _, n := range out.Graph.Node {
		if !isLayer(n) || !isTraining(out, n) {
			continue
		}
		for i := 1; i < len(n.Output); i++ {
			if used(x, n.Out(i)) {
				return nil, nil, fmt.Errorf("evaluation form: %s: its output %q exists in training only and is used", n.Describe(), n.Out(i))
			}
		}
		changed = append(changed, ModeLayer{Node: nameOf(n), Op: n.OpType, Training: true})
		n.Output = n.Output[:1]
		n.DelAttr("training_mode")
		if n.OpType == "Dropout" {
			n.Input = n.Input[:2]
		}
	}
	if len(changed) == 0 {
		return m, nil, nil
	}
	return out, changed, nil
}

func used(x *onnx.Index, v onnx.Value) bool {
	return v != "" && (len(x.Consumers(v)) > 0 || x.Output(v) != nil)
}

// TrainingForm returns a copy of m, which must use opset 14 or later, with those BatchNormalization and
// Dropout nodes of its main graph in training form that are listed. Weights are shared with m.
func TrainingForm(m *onnx.Model, which []ModeLayer) (*onnx.Model, TrainingChanges, error) {
	res := TrainingChanges{Updates: map[string]string{}}
	if v := m.Opset(onnx.DomainStandard); v < 14 {
		return nil, res, fmt.Errorf("training form: opset %d, expected 14 or later", v)
	}
	out := m.ShallowClone()
	env, err := shape.Infer(out, nil)
	if err != nil {
		return nil, res, fmt.Errorf("training form: %w", err)
	}
	x, b := onnx.NewIndex(out.Graph), onnx.Extend(out)
	for i, n := range out.Graph.Node {
		if !isLayer(n) || !slices.ContainsFunc(which, func(l ModeLayer) bool { return l.Node == nameOf(n) }) {
			continue
		}
		res.Layers = append(res.Layers, ModeLayer{Node: nameOf(n), Op: n.OpType, Training: true})
		if n.OpType == "Dropout" {
			if used(x, n.Out(1)) {
				return nil, res, fmt.Errorf("training form: %s: its mask output is used, which evaluation form does not have", n.Describe())
			}
			ratio, err := ratioOf(env, n)
			if err != nil {
				return nil, res, fmt.Errorf("training form: %s: %w", n.Describe(), err)
			}
			mask := b.Input("dropout/"+nameOf(n), env.Type(n.In(0)))
			out.Graph.Node[i] = &onnx.Node{OpType: "Mul", Name: n.Name, Input: []string{n.Input[0], string(mask)}, Output: n.Output[:1]}
			res.Masks = append(res.Masks, DropoutMask{Input: string(mask), Ratio: ratio})
			continue
		}
		n.SetAttr(onnx.AttrInt("training_mode", 1))
		n.Output = append(n.Output[:1:1], "", "")
		for k, in := range []onnx.Value{n.In(3), n.In(4)} {
			if _, twice := res.Updates[string(in)]; twice {
				return nil, res, fmt.Errorf("training form: %s: the running statistics %q belong to another BatchNormalization too; if an exporter merged them because they were equal, separate them with untie", n.Describe(), in)
			}
			n.Output[k+1] = string(b.Fresh("buffer/" + string(in)))
			b.Output(onnx.Value(n.Output[k+1]), env.Type(in))
			res.Updates[string(in)] = n.Output[k+1]
		}
	}
	if err := b.Err(); err != nil {
		return nil, res, fmt.Errorf("training form: %w", err)
	}
	return out, res, nil
}

// ratioOf returns the constant ratio of a Dropout.
func ratioOf(env *shape.Env, n *onnx.Node) (float64, error) {
	ratio := 0.5
	if r := n.In(1); r != "" {
		f, _ := env.Fact(r)
		if f.Const == nil || f.Const.Len() != 1 {
			return 0, fmt.Errorf("its ratio is not a constant number")
		}
		switch f.Const.DType() {
		case tensor.Float32:
			ratio = float64(f.Const.Float32s()[0])
		case tensor.Float64:
			ratio = f.Const.Float64s()[0]
		default:
			return 0, fmt.Errorf("its ratio is %v, expected a float", f.Const)
		}
	}
	if !(ratio >= 0 && ratio < 1) {
		return 0, fmt.Errorf("its ratio %g is not in [0, 1)", ratio)
	}
	return ratio, nil
}
