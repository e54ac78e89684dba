package engine

import (
	"slices"

	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/onnx/shape"
)

// reveal returns a model that also gives the floating-point numbers which its other outputs are
// made of, such as the scores of a choice: a choice is mostly the same where its scores are not.
// It is nil where an output is a floating-point number already, or nothing can be revealed. The
// model's nodes and weights are shared and not changed.
func reveal(m *onnx.Model) *onnx.Model {
	env, err := shape.Infer(m, nil)
	if err != nil || len(m.Graph.Input) == 0 || len(m.Graph.Output) == 0 {
		return nil
	}
	maker := map[string]*onnx.Node{}
	for _, n := range m.Graph.Node {
		for _, o := range n.Output {
			maker[o] = n
		}
	}
	batch := env.Type(onnx.Value(m.Graph.Input[0].GetName()))
	if len(batch.Dims) == 0 || batch.Dims[0].Param == "" {
		return nil
	}
	var found []*onnx.ValueInfo
	seen := map[string]bool{}
	var look func(v string)
	look = func(v string) {
		if seen[v] || maker[v] == nil {
			return
		}
		seen[v] = true
		t := env.Type(onnx.Value(v))
		if t.DType.IsFloat() {
			if t.Ranked && len(t.Dims) > 0 && t.Dims[0] == batch.Dims[0] {
				found = append(found, onnx.NewValueInfo(onnx.Value(v), t))
			}
			return
		}
		for _, in := range maker[v].Input {
			look(in)
		}
	}
	for _, o := range m.Graph.Output {
		if env.Type(onnx.Value(o.GetName())).DType.IsFloat() {
			return nil
		}
		look(o.GetName())
	}
	if len(found) == 0 {
		return nil
	}
	wider := m.ShallowClone()
	g := wider.Graph
	g.Output = slices.Concat(g.Output, found)
	g.ValueInfo = slices.DeleteFunc(slices.Clone(g.ValueInfo), func(v *onnx.ValueInfo) bool { return seen[v.GetName()] })
	return wider
}
