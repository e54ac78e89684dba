package autodiff

import "onnxrl/runtime/onnx"

var matrixRules = []Rule{
	{Op: "Gemm", Since: 7, VJP: vjpGemm},
}

// vjpGemm: Y = α·A'·B' + β·C. The four transpose cases follow from ∂A' = α·g·B'ᵀ and ∂B' = α·A'ᵀ·g; each is one Gemm, with α folded in. C is un-broadcast centrally.
func vjpGemm(c *Context, n *onnx.Node, g []onnx.Value) ([]onnx.Value, error) {
	a, b, dy := n.In(0), n.In(1), g[0]
	ta, tb := n.Int("transA", 0) != 0, n.Int("transB", 0) != 0
	alpha := onnx.AttrFloat("alpha", n.Float("alpha", 1))
	gemm := func(x, y onnx.Value, tx, ty bool) onnx.Value {
		at := []*onnx.Attribute{alpha}
		if tx {
			at = append(at, onnx.AttrInt("transA", 1))
		}
		if ty {
			at = append(at, onnx.AttrInt("transB", 1))
		}
		return c.Op("Gemm", two(x, y), at...)
	}
	d := make([]onnx.Value, 3)
	if c.Wants(0) {
		if ta {
			d[0] = gemm(b, dy, tb, true)
		} else {
			d[0] = gemm(dy, b, false, !tb)
		}
	}
	if c.Wants(1) {
		if tb {
			d[1] = gemm(dy, a, true, ta)
		} else {
			d[1] = gemm(a, dy, !ta, false)
		}
	}
	if c.Wants(2) {
		d[2] = c.Scale(dy, float64(n.Float("beta", 1)))
	}
	return d, nil
}
