//go:build cgo

package ort

import (
	"slices"

	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/onnx/shape"
	"github.com/onnxrl/onnxrl/runtime/ort/internal/capi"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// poolsWithIndices returns m with max pools of images whose indices are used, as gradients use
// them, by an operator of our own (capi.MaxPoolName): with indices ONNX Runtime 1.27 takes eleven
// times as long as without. Both outputs are the same bits, but that a window without a number
// above -inf has the index of its first element where ONNX Runtime names one that is not there. m
// is not changed; env has its types.
func poolsWithIndices(m *onnx.Model, env *shape.Env) *onnx.Model {
	if env == nil {
		return m
	}
	changed := false
	nodes := slices.Clone(m.Graph.Node)
	for i, n := range nodes {
		if p := poolOf(n, env); p != nil {
			nodes[i], changed = p, true
		}
	}
	if !changed {
		return m
	}
	c := m.ShallowClone()
	c.Graph.Node = nodes
	return withKernels(c)
}

// withKernels adds the domain of our own operators to a model, if it is not there.
func withKernels(m *onnx.Model) *onnx.Model {
	if !slices.ContainsFunc(m.OpsetImport, func(o *onnx.OperatorSet) bool { return o.Domain == capi.Domain }) {
		m.OpsetImport = append(slices.Clone(m.OpsetImport), &onnx.OperatorSet{Domain: capi.Domain, Version: 1})
	}
	return m
}

// poolOf returns what stands for a pool, nil where it stays.
func poolOf(n *onnx.Node, env *shape.Env) *onnx.Node {
	if n.OpType != "MaxPool" || onnx.NormalizeDomain(n.Domain) != "" || len(n.Output) != 2 || n.Output[1] == "" || n.Int("storage_order", 0) != 0 {
		return nil
	}
	x, ok := env.Type(n.In(0)).Static()
	y, ok2 := env.Type(n.Out(0)).Static()
	before, ok3 := padding(n)
	kernel := n.Ints("kernel_shape")
	if !ok || !ok2 || !ok3 || env.Type(n.In(0)).DType != tensor.Float32 || len(x) != 4 || len(y) != 4 || len(kernel) != 2 || slices.Contains(y, 0) || x[2]*x[3] >= 1<<31 {
		return nil
	}
	stride, dilation := ones(n.Ints("strides")), ones(n.Ints("dilations"))
	for a := range 2 {
		// A last window that lies beyond the image is left to ONNX Runtime.
		if before[a] < 0 || before[a] >= (kernel[a]-1)*dilation[a]+1 || (y[2+a]-1)*stride[a]-before[a] >= x[2+a] || max(kernel[a], stride[a], dilation[a], x[2+a]) > 1<<15 {
			return nil
		}
	}
	window := []int{x[0] * x[1], x[2], x[3], y[2], y[3], kernel[0], kernel[1], stride[0], stride[1], before[0], before[1], dilation[0], dilation[1]}
	return &onnx.Node{
		OpType: capi.MaxPoolName, Domain: capi.Domain, Name: n.Name, Input: n.Input[:1], Output: n.Output,
		Attribute: []*onnx.Attribute{onnx.AttrInts("shape", y...), onnx.AttrInts("window", window...)},
	}
}
