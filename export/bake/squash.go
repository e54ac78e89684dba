package bake

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// MetaSquash is the metadata key of models that [SampleGaussian] has made, where what is drawn is
// squashed on the way to the action: its value is tanh.
const MetaSquash = MetaPrefix + "squash"

// MetaSquashScale is the metadata key of what tanh is multiplied by on the way to the action, half
// of the width between the bounds: a number for each component, or one for all, separated by
// commas. A model whose graph does more to it has none.
const MetaSquashScale = MetaPrefix + "squash_scale"

// describeSquash writes the metadata of a path from a mean to an action.
func describeSquash(m *onnx.Model, path []*onnx.Node) {
	i := slices.IndexFunc(path, func(n *onnx.Node) bool { return n.OpType == "Tanh" })
	if i < 0 {
		return
	}
	m.SetMeta(MetaSquash, "tanh")
	if scale := scaleBehind(m.Graph, path[i+1:], path[i].Output[0]); scale != nil {
		text := make([]string, len(scale))
		for i, x := range scale {
			text[i] = strconv.FormatFloat(x, 'g', -1, 64)
		}
		m.SetMeta(MetaSquashScale, strings.Join(text, ","))
	}
}

// scaleBehind returns what the nodes of a path multiply a value by, all in all, or nil where they
// do anything but multiply by constants, add, cut off and change the shape.
func scaleBehind(g *onnx.Graph, path []*onnx.Node, v string) []float64 {
	scale := []float64{1}
	for _, n := range path {
		at := slices.Index(n.Input, v)
		if at < 0 || len(n.Output) != 1 {
			return nil
		}
		switch n.OpType {
		case "Identity", "Reshape", "Flatten", "Squeeze", "Unsqueeze", "Add", "Max", "Min", "Clip":
		case "Cast":
			if to := tensor.DType(n.Int("to", 0)); to != tensor.Float32 && to != tensor.Float64 {
				return nil
			}
		case "Sub":
			if at != 0 {
				return nil
			}
		case "Mul", "Div":
			if n.OpType == "Div" && at != 0 {
				return nil
			}
			by := constantFloats(g, n.Input[1-at])
			if len(by) == 0 || len(by) > 1 && len(scale) > 1 && len(by) != len(scale) {
				return nil
			}
			if len(scale) < len(by) {
				scale = slices.Repeat(scale, len(by))
			}
			for i := range scale {
				x := by[i%len(by)]
				if n.OpType == "Div" {
					x = 1 / x
				}
				scale[i] *= math.Abs(x)
			}
		default:
			return nil
		}
		v = n.Output[0]
	}
	if slices.ContainsFunc(scale, func(x float64) bool { return !(x > 0 && x <= math.MaxFloat64) }) {
		return nil
	}
	return scale
}

// constantFloats are the elements of a float32 constant, nil where a value is none.
func constantFloats(g *onnx.Graph, name string) []float64 {
	var t *tensor.Tensor
	var err error
	if i := slices.IndexFunc(g.Initializer, func(t *onnx.TensorProto) bool { return t.Name == name }); i >= 0 {
		t, err = onnx.TensorOf(g.Initializer[i])
	} else if i := slices.IndexFunc(g.Node, func(n *onnx.Node) bool { return n.OpType == "Constant" && n.Output[0] == name }); i >= 0 {
		t, err = onnx.ConstantOf(g.Node[i])
	}
	if err != nil || t == nil || t.DType() != tensor.Float32 {
		return nil
	}
	out := make([]float64, t.Len())
	for i, x := range t.Float32s() {
		out[i] = float64(x)
	}
	return out
}
