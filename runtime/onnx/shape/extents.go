package shape

import (
	"fmt"

	"github.com/onnxrl/onnxrl/runtime/onnx"
)

// singles lists the inputs that kernels read one number of, whatever their shape: a scalar or a
// list of one. Of an empty one they would read what lies behind it.
var singles = map[string][]int{
	"BlackmanWindow": {0}, "CumProd": {1}, "CumSum": {1}, "DFT": {1, 2}, "Dropout": {1, 2}, "HammingWindow": {0},
	"HannWindow": {0}, "If": {0}, "Loop": {0, 1}, "MelWeightMatrix": {0, 1, 2, 3, 4}, "NonMaxSuppression": {2, 3, 4},
	"OneHot": {1}, "Pad": {2}, "Range": {0, 1, 2}, "STFT": {1, 3}, "SequenceAt": {1}, "SequenceErase": {1},
	"SequenceInsert": {2}, "TopK": {1}, "Trilu": {1},
}

// Filled names an input of which no extent may be zero from an axis on.
type Filled struct{ Input, From int }

// filled lists the inputs that must not be empty: kernels divide by their extents, slide windows of
// no elements for ever, or read a first element that is not there.
var filled = map[string][]Filled{
	"Attention":             {{0, 0}, {1, 0}, {2, 0}},
	"CausalConvWithState":   {{1, 2}},
	"Conv":                  {{1, 1}},
	"ConvInteger":           {{1, 1}},
	"ConvTranspose":         {{0, 1}, {1, 1}},
	"DFT":                   {{0, 0}},
	"DeformConv":            {{1, 1}},
	"FusedConv":             {{1, 1}},
	"GRU":                   {{0, 0}},
	"GridSample":            {{0, 1}},
	"InstanceNormalization": {{0, 1}},
	"LSTM":                  {{0, 0}},
	"LpNormalization":       {{0, 0}},
	"QLinearConv":           {{3, 1}},
	"RNN":                   {{0, 0}},
	"RoiAlign":              {{0, 1}},
	"STFT":                  {{0, 0}, {2, 0}},
	"TopK":                  {{0, 0}},
	"Unique":                {{0, 0}},
}

// positive lists the inputs that kernels, or what ONNX Runtime infers of shapes, divide by.
var positive = map[string][]int{"STFT": {1, 3}, "SplitToSequence": {1}}

// PositiveInputs lists the inputs of an operator of which a single number must be at least 1.
func PositiveInputs(op string) []int { return positive[op] }

// FilledInputs lists the inputs of a node that must have elements.
func FilledInputs(n *onnx.Node) []Filled {
	list := filled[n.OpType]
	if n.OpType == "Einsum" {
		// Which extents it divides by depends on how it transposes them.
		for i := range n.Input {
			list = append(list, Filled{Input: i})
		}
	}
	return list
}

// extents checks the number of elements of the inputs that must have one or some.
func (c *call) extents() error {
	for _, i := range singles[c.node.OpType] {
		if !c.has(i) {
			continue
		}
		if n, ok := elements(c.typ(i)); ok && n != 1 {
			return fmt.Errorf("input %d %q is %v, want one element", i, c.node.In(i), c.typ(i))
		}
	}
	for _, f := range FilledInputs(c.node) {
		t := c.typ(f.Input)
		for a, d := range t.Dims {
			if a >= f.From && d.IsKnown() && d.Value == 0 {
				return fmt.Errorf("input %d %q is %v, want at least one element on axis %d", f.Input, c.node.In(f.Input), t, a)
			}
		}
	}
	return nil
}
