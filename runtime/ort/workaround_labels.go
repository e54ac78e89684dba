//go:build cgo

package ort

import (
	"math"
	"strconv"

	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// guardLabels makes ONNX Runtime refuse negative labels, sub-graphs included: ONNX allows no label
// outside 0…C−1 but ignore_index, while ONNX Runtime 1.32 computes SoftmaxCrossEntropyLoss and
// NegativeLogLikelihoodLoss by GatherElements, for which −1 is the last class. It does refuse
// labels from C on, so the guard makes negative ones huge. The model is copied when something has
// to change.
func guardLabels(m *onnx.Model) *onnx.Model {
	return insertBefore(m, "onnxrl/labels/", takesLabels, labelGuard)
}

func takesLabels(n *onnx.Node) bool {
	return onnx.NormalizeDomain(n.Domain) == onnx.DomainStandard && (n.OpType == "SoftmaxCrossEntropyLoss" || n.OpType == "NegativeLogLikelihoodLoss") && len(n.Input) > 1
}

// labelGuard returns the nodes of a loss's guard and gives the loss its result. Names begin with
// prefix.
func labelGuard(n *onnx.Node, prefix string) []*onnx.Node {
	var nodes []*onnx.Node
	op := func(kind string, in []string, attrs ...*onnx.Attribute) string {
		out := prefix + kind + strconv.Itoa(len(nodes))
		nodes = append(nodes, &onnx.Node{OpType: kind, Name: out, Input: in, Output: []string{out}, Attribute: attrs})
		return out
	}
	number := func(v int64) string { return op("Constant", nil, onnx.AttrTensor("value", tensor.Scalar(v))) }
	labels := op("Cast", []string{n.Input[1]}, onnx.AttrInt("to", int(tensor.Int64)))
	bad := op("Less", []string{labels, number(0)})
	if n.Has("ignore_index") {
		ignored := op("Equal", []string{labels, number(int64(n.Int("ignore_index", 0)))})
		bad = op("And", []string{bad, op("Not", []string{ignored})})
	}
	n.Input[1] = op("Where", []string{bad, number(math.MaxInt32), labels})
	return nodes
}
