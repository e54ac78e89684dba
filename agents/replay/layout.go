package replay

import (
	"errors"
	"fmt"
	"reflect"
	"slices"

	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// Column is one tensor of a transition: its name, element type and shape.
type Column struct {
	Name  string
	DType tensor.DType
	Shape []int
}

// of describes a column, or a window of a table.
func (c Column) of(w *envs.Window) string {
	if w != nil {
		return fmt.Sprintf("%s %v%v, a window of a table", c.Name, c.DType, c.Shape)
	}
	return fmt.Sprintf("%s %v%v", c.Name, c.DType, c.Shape)
}

// Layout says what a transition holds beside reward and discount.
type Layout struct {
	// Obs are the fields of an observation, in the order of the spec; Mask is the mask's length, 0
	// for none.
	Obs  []Column
	Mask int
	// Action is a_tm1 as it was recorded, of elements of the environment's Space; nil where that is
	// not known. Equal columns mean other actions where the bounds of spaces differ.
	Action Column
	Space  envs.Space
	// Windows has, for a field that is a window of a table, that window, and nil for others; it may
	// be shorter than Obs. Of a window only the number of its last row is kept.
	Windows []*envs.Window
	// LogProb keeps the logarithm of the behaviour's probability or density with each transition.
	LogProb bool
	// Logits is the number of logits, or log-probabilities, of the behaviour that are kept with
	// each transition; 0 keeps none. Skill, unless nil, is the column of Decision.Skill; its name
	// does not matter.
	Logits int
	Skill  *Column
	// Costs is the number of costs of a step; 0 keeps none.
	Costs int
}

// LayoutOf returns the layout of an environment's transitions. action is the column that the
// learner records, which may differ from the environment's space: unclipped or unscaled.
func LayoutOf(spec envs.Spec, action Column) Layout {
	l := Layout{Action: action, Space: spec.Action, Costs: len(spec.Costs)}
	for _, f := range spec.Observation {
		l.Obs = append(l.Obs, Column{f.Name, f.Space.DType(), f.Space.Shape()})
		l.Windows = append(l.Windows, f.Window)
	}
	if spec.Masked {
		l.Mask = envs.MaskLen(spec.Action)
	}
	return l
}

// covers reports what a learner's layout asks for that transitions of l do not have, or have in
// another form.
func (l *Layout) covers(want *Layout) error {
	same := func(a, b Column) bool { return a.DType == b.DType && slices.Equal(a.Shape, b.Shape) }
	window := func(l *Layout, f int) *envs.Window {
		if f < len(l.Windows) {
			return l.Windows[f]
		}
		return nil
	}
	if len(l.Obs) != len(want.Obs) {
		return fmt.Errorf("transitions have %d observations, and the learner's %d", len(l.Obs), len(want.Obs))
	}
	for f, c := range want.Obs {
		if a, b := window(l, f), window(want, f); c.Name != l.Obs[f].Name || !same(c, l.Obs[f]) || (a == nil) != (b == nil) {
			return fmt.Errorf("observation %d is %s, and the learner's %s", f, l.Obs[f].of(a), c.of(b))
		} else if a != nil && a.Table() != b.Table() {
			return fmt.Errorf("observation %d, %s, is a window of another table than the learner's: environments that share transitions are made by one factory", f, c.Name)
		}
	}
	switch {
	case !same(l.Action, want.Action):
		return fmt.Errorf("actions are %s, and the learner's %s", l.Action.of(nil), want.Action.of(nil))
	case l.Space != nil && want.Space != nil && !reflect.DeepEqual(l.Space, want.Space):
		return fmt.Errorf("actions are elements of %v, and the learner's of %v", l.Space, want.Space)
	case l.Mask != want.Mask:
		return fmt.Errorf("masks have %d actions, and the learner's %d", l.Mask, want.Mask)
	case l.Costs != want.Costs:
		return fmt.Errorf("steps have %d costs, and the learner's %d", l.Costs, want.Costs)
	case want.LogProb && !l.LogProb:
		return errors.New("transitions have no log-probabilities, which the learner needs: Layout.LogProb")
	case want.Logits > 0 && l.Logits != want.Logits:
		return fmt.Errorf("transitions have %d logits, and the learner needs %d", l.Logits, want.Logits)
	case want.Skill != nil && (l.Skill == nil || !same(*l.Skill, *want.Skill)):
		return fmt.Errorf("transitions have the skill %v, and the learner needs %v", l.Skill, *want.Skill)
	}
	return nil
}

// Batch is where samples are written: the inputs of a learner's programs, so that nothing is copied
// twice. Tensors have B rows; a nil one is not wanted.
type Batch struct {
	// Obs and NextObs have a tensor for each field.
	Obs, NextObs   []*tensor.Tensor
	Mask, NextMask *tensor.Tensor
	// Rows and NextRows have, for fields that are windows, the numbers of the windows' last rows,
	// as vector.Batch.Rows; nil where they are not wanted.
	Rows, NextRows [][]int64
	Action         *tensor.Tensor
	// Reward is Σ γᵏ·rₜ₊ₖ over the n steps of a sample, and Discount what the value of NextObs is
	// multiplied by: the product of γ and the environment's discounts.
	Reward, Discount []float32
	// Cost [B, Layout.Costs] is the same sum of each cost.
	Cost *tensor.Tensor
	// LogProb is of the behaviour, Weight the importance weight of a sample that was preferred
	// (divided by the largest of the batch), and Index identifies the samples for new priorities.
	LogProb, Weight []float32
	Index           []int64
	// Logits [B, Layout.Logits] and Skill are the behaviour's.
	Logits, Skill *tensor.Tensor
	// Policy recorded the transition, and Time is its number among all that were ever recorded,
	// from 0; a [Shared] has them.
	Policy []int32
	Time   []int64
	// Ended is set where the episode ended with the transition, by termination or cut off, or with
	// the last one of its n steps.
	Ended []bool
}
