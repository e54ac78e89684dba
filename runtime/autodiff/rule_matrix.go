package autodiff

import (
	"slices"

	"onnxrl/runtime/onnx"
)

var matrixRules = []Rule{
	{Op: "Gemm", Since: 7, VJP: vjpGemm},
	{Op: "MatMul", Since: 1, VJP: vjpMatMul},
	{Op: "Einsum", Since: 12, VJP: vjpEinsum},
}

// vjpGemm: Y = α·A'·B' + β·C. The four transpose cases follow from ∂A' = α·g·B'ᵀ and ∂B' = α·A'ᵀ·g; each is one Gemm, with α folded in. C is un-broadcast centrally.
func vjpGemm(c *Context, n *onnx.Node, g []onnx.Value) ([]onnx.Value, error) {
	a, b, dy := n.In(0), n.In(1), g[0]
	ta, tb := n.Int("transA", 0) != 0, n.Int("transB", 0) != 0
	alpha := n.Float("alpha", 1)
	gemm := func(x, y onnx.Value, tx, ty bool) onnx.Value {
		var at []*onnx.Attribute
		if alpha != 1 {
			at = append(at, onnx.AttrFloat("alpha", alpha))
		}
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

// vjpMatMul: ∂A = g·Bᵀ and ∂B = Aᵀ·g over the last two axes, batch axes un-broadcast centrally. One-dimensional operands are given the axis that the operator gives
// them. A second operand that is one matrix, the weight of a layer, is used with all rows of the first at once: two Gemm, and no sum over the batch.
func vjpMatMul(c *Context, n *onnx.Node, g []onnx.Value) ([]onnx.Value, error) {
	a, b, dy := n.In(0), n.In(1), g[0]
	as, bs, gs := c.Shape(a), c.Shape(b), c.Shape(dy)
	if c.b.Err() != nil {
		return nil, c.b.Err()
	}
	am, bm := as, bs
	if len(as) == 1 {
		am = []int{1, as[0]}
		gs = slices.Insert(slices.Clone(gs), len(gs)-boolInt(len(bs) > 1), 1)
	}
	if len(bs) == 1 {
		bm = []int{bs[0], 1}
		gs = append(slices.Clone(gs), 1)
	}
	inner, cols := am[len(am)-1], bm[len(bm)-1]
	d := make([]onnx.Value, 2)
	if prod(bm) == inner*cols && prod(gs) > 0 {
		rows := prod(am) / inner
		a2, b2, g2 := c.Reshape(a, rows, inner), c.Reshape(b, inner, cols), c.Reshape(dy, rows, cols)
		if c.Wants(0) {
			d[0] = c.Reshape(c.Gemm(g2, b2, false, true), as...)
		}
		if c.Wants(1) {
			d[1] = c.Reshape(c.Gemm(a2, g2, true, false), bs...)
		}
		return d, nil
	}
	ax, bx, gx := c.Reshape(a, am...), c.Reshape(b, bm...), c.Reshape(dy, gs...)
	if c.Wants(0) {
		d[0] = c.backTo(c.MatMul(gx, c.swapLast(bx)), am, as)
	}
	if c.Wants(1) {
		d[1] = c.backTo(c.MatMul(c.swapLast(ax), gx), bm, bs)
	}
	return d, nil
}

// backTo sums d to the shape of an operand with its temporary axis and drops that axis.
func (c *Context) backTo(d onnx.Value, matrix, shape []int) onnx.Value {
	return c.Reshape(c.Unbroadcast(d, matrix), shape...)
}

// swapLast transposes the last two axes.
func (c *Context) swapLast(v onnx.Value) onnx.Value {
	perm := Seq(c.Rank(v))
	k := len(perm)
	perm[k-2], perm[k-1] = perm[k-1], perm[k-2]
	return c.Transpose(v, perm...)
}

func boolInt(b bool) int {
	if b {
		return 1
	}
	return 0
}
