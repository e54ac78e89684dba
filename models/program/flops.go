package program

import (
	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/onnx/shape"
)

// FLOPs estimates the floating-point operations of the matrix products and convolutions of one
// forward run, two per multiply-add. It returns 0 when shapes cannot be known.
func FLOPs(m *onnx.Model, bind map[string]int) float64 {
	env, err := shape.Infer(m, bind)
	if err != nil {
		return 0
	}
	size := func(v onnx.Value) float64 {
		s, ok := env.Type(v).Static()
		if !ok {
			return 0
		}
		n := 1.0
		for _, d := range s {
			n *= float64(d)
		}
		return n
	}
	total := 0.0
	for _, n := range m.Graph.Node {
		out := size(n.Out(0))
		switch n.OpType {
		case "MatMul", "Gemm":
			if s, ok := env.Type(n.In(0)).Static(); ok && len(s) > 0 {
				k := s[len(s)-1]
				if n.Int("transA", 0) != 0 {
					k = s[0]
				}
				total += 2 * out * float64(k)
			}
		case "Conv":
			if s, ok := env.Type(n.In(1)).Static(); ok && len(s) > 1 && s[0] > 0 {
				total += 2 * out * size(n.In(1)) / float64(s[0])
			}
		}
	}
	return total
}
