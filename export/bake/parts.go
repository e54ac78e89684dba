package bake

import (
	"errors"
	"fmt"

	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// parted returns m with constant weights that a Split takes apart, as convolutions over shared
// windows do, in their parts: each is then the constant weight of a product.
func parted(m *onnx.Model) (*onnx.Model, error) {
	m, _, err := onnx.Fold(m, evalSplit, onnx.FoldLimits{})
	if err != nil {
		return nil, fmt.Errorf("take weights apart: %w", err)
	}
	return m, nil
}

// errNoSplit leaves a node as it is.
var errNoSplit = errors.New("no split of a constant")

// evalSplit is an onnx.Evaluator of Split alone.
func evalSplit(n *onnx.Node, _ int, in []*tensor.Tensor) ([]*tensor.Tensor, error) {
	if n.OpType != "Split" || n.Attr("split") != nil || onnx.NormalizeDomain(n.Domain) != onnx.DomainStandard || len(in) == 0 || in[0].Rank() == 0 {
		return nil, errNoSplit
	}
	x := in[0]
	axis := int(n.Int("axis", 0))
	if axis < 0 {
		axis += x.Rank()
	}
	if axis < 0 || axis >= x.Rank() {
		return nil, errNoSplit
	}
	// Without sizes the parts are equal, but for a smaller last one.
	size := (x.Shape()[axis] + len(n.Output) - 1) / len(n.Output)
	sizes := make([]int, len(n.Output))
	left := x.Shape()[axis]
	for i := range sizes {
		sizes[i] = min(size, left)
		if len(in) > 1 && in[1] != nil {
			if in[1].DType() != tensor.Int64 || in[1].Len() != len(sizes) {
				return nil, errNoSplit
			}
			sizes[i] = int(in[1].Int64s()[i])
		}
		if left -= sizes[i]; sizes[i] < 0 || left < 0 {
			return nil, errNoSplit
		}
	}
	if left != 0 {
		return nil, errNoSplit
	}
	outer, inner := 1, x.DType().Size()
	for _, d := range x.Shape()[:axis] {
		outer *= d
	}
	for _, d := range x.Shape()[axis+1:] {
		inner *= d
	}
	out, at, whole := make([]*tensor.Tensor, len(sizes)), 0, x.Shape()[axis]*inner
	for i, n := range sizes {
		shape := append([]int{}, x.Shape()...)
		shape[axis] = n
		out[i] = tensor.New(x.DType(), shape...)
		for o := range outer {
			copy(out[i].Bytes()[o*n*inner:(o+1)*n*inner], x.Bytes()[o*whole+at:])
		}
		at += n * inner
	}
	return out, nil
}
