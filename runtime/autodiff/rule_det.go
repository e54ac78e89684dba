package autodiff

import (
	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

var determinantRules = []Rule{
	{Op: "Det", Versions: []int{11, 22}, VJP: vjpDet},
}

// vjpDet: ∂A = g·adj(A)ᵀ, which is finite for singular matrices too, unlike g·det(A)·A⁻ᵀ. The
// adjugate is a polynomial of A by the recursion of Faddeev and LeVerrier: M₁ = I, Mₖ₊₁ = A·Mₖ −
// tr(A·Mₖ)/k·I, adj(A) = ±Mₙ. Its terms cancel, so it is computed in float64; the sizes that
// networks use stay far from trouble.
func vjpDet(c *Context, n *onnx.Node, g []onnx.Value) ([]onnx.Value, error) {
	a := n.In(0)
	s := c.Shape(a)
	if s == nil {
		return nil, c.b.Err()
	}
	rank, size, lead := len(s), s[len(s)-1], s[:len(s)-2]
	gs := c.Reshape(g[0], join(lead, []int{1, 1})...)
	if size < 2 {
		return []onnx.Value{c.Expand(gs, s...)}, nil
	}
	if !c.small(size, size) {
		return nil, c.b.Err()
	}
	wide := c.Cast(a, tensor.Float64)
	w := make([]float64, size*size)
	for i := range size {
		w[i*size+i] = 1
	}
	eye := c.matrix(wide, size, size, w)
	var m onnx.Value
	for k := 1; k < size; k++ {
		am := wide
		if k > 1 {
			am = c.MatMul(wide, m)
		}
		trace := c.Sum(c.Mul(am, eye), []int{rank - 2, rank - 1}, true)
		m = c.Sub(am, c.Mul(c.Scale(trace, 1/float64(k)), eye))
	}
	if size%2 == 0 {
		m = c.Neg(m)
	}
	perm := Seq(rank)
	perm[rank-1], perm[rank-2] = rank-2, rank-1
	return []onnx.Value{c.Mul(c.Cast(c.Transpose(m, perm...), c.DType(a)), gs)}, nil
}
