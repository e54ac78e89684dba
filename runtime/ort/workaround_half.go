//go:build cgo

package ort

import (
	"slices"

	"github.com/onnxrl/onnxrl/runtime/engine"
	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// levelFor returns the level at which a model is optimised. The last of them, layouts, is left out
// for models that compute in half precision, because ONNX Runtime 1.32 crashes in it on some, such
// as the attention of testdata/float16_attention.onnx. Their arithmetic has no kernels of its own
// on a processor, so nothing is lost.
func levelFor(m *onnx.Model, level engine.OptLevel) engine.OptLevel {
	if level == engine.OptAll && computesInHalf(m) {
		return engine.OptExtended
	}
	return level
}

func isHalf(d tensor.DType) bool { return d == tensor.Float16 || d == tensor.BFloat16 }

// computesInHalf reports whether a node gets or gives values of half precision, other than a Cast
// that widens weights.
func computesInHalf(m *onnx.Model) bool {
	found := false
	halves := map[string]bool{}
	// The walks never fail, because their functions do not.
	_ = m.EachGraph(func(g *onnx.Graph) error {
		for _, v := range slices.Concat(g.Input, g.Output) {
			t, ok := v.TensorType()
			found = found || ok && isHalf(t.DType)
		}
		for _, p := range g.Initializer {
			if isHalf(tensor.DType(p.DataType)) {
				halves[p.Name] = true
			}
		}
		return nil
	})
	look := func(nodes []*onnx.Node) {
		for _, n := range nodes {
			for _, a := range n.Attribute {
				found = found || a.T != nil && isHalf(tensor.DType(a.T.DataType))
			}
			if n.OpType == "Cast" {
				found = found || isHalf(tensor.DType(n.Int("to", 0)))
				continue
			}
			found = found || slices.ContainsFunc(n.Input, func(in string) bool { return halves[in] })
		}
	}
	_ = m.EachGraph(func(g *onnx.Graph) error {
		look(g.Node)
		return nil
	})
	for _, f := range m.Functions {
		look(f.Node)
	}
	return found
}
