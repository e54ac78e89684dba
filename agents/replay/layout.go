package replay

import (
	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// Column is one tensor of a transition: its name, element type and shape.
type Column struct {
	Name  string
	DType tensor.DType
	Shape []int
}

// Layout says what a transition holds beside reward and discount.
type Layout struct {
	// Obs are the fields of an observation, in the order of the spec; Mask is the mask's length, 0
	// for none.
	Obs  []Column
	Mask int
	// Action is a_tm1 as it was recorded.
	Action Column
	// Windows has, for a field that is a window of a table, that window, and nil for others; it may
	// be shorter than Obs. Of a window only the number of its last row is kept.
	Windows []*envs.Window
	// LogProb keeps the logarithm of the behaviour's probability or density with each transition.
	LogProb bool
}

// LayoutOf returns the layout of an environment's transitions. action is the column that the
// learner records, which may differ from the environment's space: unclipped or unscaled.
func LayoutOf(spec envs.Spec, action Column) Layout {
	l := Layout{Action: action}
	for _, f := range spec.Observation {
		l.Obs = append(l.Obs, Column{f.Name, f.Space.DType(), f.Space.Shape()})
		l.Windows = append(l.Windows, f.Window)
	}
	if spec.Masked {
		l.Mask = envs.MaskLen(spec.Action)
	}
	return l
}

// Batch is where samples are written: the inputs of a learner's programs, so that nothing is copied
// twice. Tensors have B rows; a nil one is not wanted.
type Batch struct {
	// Obs and NextObs have a tensor for each field.
	Obs, NextObs   []*tensor.Tensor
	Mask, NextMask *tensor.Tensor
	Action         *tensor.Tensor
	// Reward is Σ γᵏ·rₜ₊ₖ over the n steps of a sample, and Discount what the value of NextObs is
	// multiplied by: the product of γ and the environment's discounts.
	Reward, Discount []float32
	// LogProb is of the behaviour, Weight the importance weight of a prioritised sample (divided by
	// the largest of the batch), and Index identifies the samples for new priorities.
	LogProb, Weight []float32
	Index           []int64
}
