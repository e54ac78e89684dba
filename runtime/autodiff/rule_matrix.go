package autodiff

import (
	"slices"

	"github.com/onnxrl/onnxrl/runtime/onnx"
)

var matrixRules = []Rule{
	{Op: "Gemm", Versions: []int{7, 9, 11, 13}, VJP: vjpGemm},
	{Op: "MatMul", Versions: []int{1, 9, 13}, VJP: vjpMatMul},
	{Op: "Einsum", Versions: []int{12, 28}, VJP: vjpEinsum},
}

// vjpGemm: Y = α·A'·B' + β·C. The four transpose cases follow from ∂A' = α·g·B'ᵀ and ∂B' = α·A'ᵀ·g;
// each is one Gemm, with α folded in. C is un-broadcast centrally.
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

// vjpMatMul: ∂A = g·Bᵀ and ∂B = Aᵀ·g over the last two axes, batch axes un-broadcast centrally.
// One-dimensional operands are given the axis that the operator gives them. A second operand that
// is one matrix, the weight of a layer, is used with all rows of the first at once: two Gemm, and
// no sum over the batch.
func vjpMatMul(c *Context, n *onnx.Node, g []onnx.Value) ([]onnx.Value, error) {
	a, b, dy := n.In(0), n.In(1), g[0]
	am, bm, gs := c.Extents(a), c.Extents(b), c.Extents(dy)
	if c.b.Err() != nil {
		return nil, c.b.Err()
	}
	if len(am) == 1 {
		gs = slices.Insert(gs, len(gs)-boolInt(len(bm) > 1), Extent{N: 1})
		am = slices.Insert(am, 0, Extent{N: 1})
	}
	if len(bm) == 1 {
		gs, bm = append(gs, Extent{N: 1}), append(bm, Extent{N: 1})
	}
	d := make([]onnx.Value, 2)
	if a2, b2, g2, ok := c.oneMatrix(a, b, dy, am, bm, gs); ok {
		if c.Wants(0) {
			d[0] = c.ReshapeLike(c.Gemm(g2, b2, false, true), a)
		}
		if c.Wants(1) {
			d[1] = c.ReshapeLike(c.Gemm(a2, g2, true, false), b)
		}
		return d, nil
	}
	ax, bx, gx := c.ReshapeTo(a, am...), c.ReshapeTo(b, bm...), c.ReshapeTo(dy, gs...)
	if c.Wants(0) {
		d[0] = c.ReshapeLike(c.UnbroadcastLike(c.MatMul(gx, c.swapLast(bx)), ax), a)
	}
	if c.Wants(1) {
		d[1] = c.ReshapeLike(c.UnbroadcastLike(c.MatMul(c.swapLast(ax), gx), bx), b)
	}
	return d, nil
}

// oneMatrix returns the operands and the gradient of a product as matrices when the second operand
// is one matrix of known extents. am, bm and gs are their extents with the axes that vectors are
// given.
func (c *Context) oneMatrix(a, b, g onnx.Value, am, bm, gs []Extent) (a2, b2, g2 onnx.Value, ok bool) {
	bn, ok := numbers(bm)
	inner, cols := am[len(am)-1].N, bm[len(bm)-1].N
	if !ok || am[len(am)-1].Of != "" || prod(bn) != inner*cols {
		return "", "", "", false
	}
	an, ok1 := numbers(am)
	gn, ok2 := numbers(gs)
	switch {
	case ok1 && ok2 && prod(gn) > 0:
		rows := prod(an) / inner
		return c.Reshape(a, rows, inner), c.Reshape(b, inner, cols), c.Reshape(g, rows, cols), true
	case (!ok1 || !ok2) && inner*cols > 0:
		return c.Op("Reshape", two(a, c.b.Ints(-1, inner))), c.Reshape(b, inner, cols), c.Op("Reshape", two(g, c.b.Ints(-1, cols))), true
	}
	return "", "", "", false
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
