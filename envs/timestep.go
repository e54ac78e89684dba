package envs

import (
	"fmt"

	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// StepType says where in its episode a step lies.
type StepType uint8

// The step types. A step that is first has no reward; the next step after one that is last is first
// again.
const (
	First StepType = iota
	Mid
	Last
)

func (t StepType) String() string {
	switch t {
	case First:
		return "first"
	case Mid:
		return "mid"
	case Last:
		return "last"
	}
	return fmt.Sprintf("step type %d", uint8(t))
}

// TimeStep is what an environment answers. Make it with [NewTimeStep]; the environment overwrites
// it at every step.
type TimeStep struct {
	Type StepType
	// Reward is what the action that led here earned. It is 0 in a first step.
	Reward float64
	// Discount, in [0, 1], multiplies the value of everything after this step, in addition to the
	// learner's own discount. It is 0 when the episode has terminated.
	Discount float64
	// Obs has a tensor for each field of Spec.Observation, in order. The environment writes into
	// the tensors it finds; where the field has a window it replaces the tensor by a view instead.
	Obs []*tensor.Tensor
	// Rows has, for each field that has a window, the number of the window's last row; for other
	// fields it is not used.
	Rows []int64
	// Mask says which actions are valid now (see [MaskLen] for its layout); nil unless Spec.Masked.
	// In a last step it says which ones would be if the episode was truncated, for the value of
	// what could follow, and nothing where it has terminated.
	Mask *tensor.Tensor
	// Costs has a value for each name of Spec.Costs: what the action that led here cost, a finite
	// number, which is 0 in a first step.
	Costs []float64
	// Info has a value for each name of Spec.Info.
	Info []float64
}

// NewTimeStep returns a TimeStep with new tensors for everything the spec describes.
func NewTimeStep(s Spec) *TimeStep {
	ts := &TimeStep{Obs: make([]*tensor.Tensor, len(s.Observation)), Rows: make([]int64, len(s.Observation)), Costs: make([]float64, len(s.Costs)), Info: make([]float64, len(s.Info))}
	for i, f := range s.Observation {
		if f.Window == nil {
			ts.Obs[i] = tensor.New(f.Space.DType(), f.Space.Shape()...)
		}
	}
	if s.Masked {
		ts.Mask = tensor.New(tensor.Bool, MaskLen(s.Action))
	}
	return ts
}

// Restart makes ts the first step of an episode.
func (ts *TimeStep) Restart() {
	ts.Type, ts.Reward, ts.Discount = First, 0, 1
	clear(ts.Costs)
}

// Continue makes ts a step after which the episode goes on. It leaves the costs to the environment,
// as Terminate and Truncate do.
func (ts *TimeStep) Continue(reward float64) { ts.Type, ts.Reward, ts.Discount = Mid, reward, 1 }

// Terminate makes ts the last step of an episode that has come to its end.
func (ts *TimeStep) Terminate(reward float64) { ts.Type, ts.Reward, ts.Discount = Last, reward, 0 }

// Truncate makes ts the last step of an episode that is cut off.
func (ts *TimeStep) Truncate(reward float64) { ts.Type, ts.Reward, ts.Discount = Last, reward, 1 }

// Terminated reports whether the episode has come to its end, so that the value of what follows
// is 0.
func (ts *TimeStep) Terminated() bool { return ts.Type == Last && ts.Discount == 0 }

// Truncated reports whether the episode was cut off, so that the value of its last observation
// counts.
func (ts *TimeStep) Truncated() bool { return ts.Type == Last && ts.Discount > 0 }

// SetWindow puts the window that ends with row last into field i.
func (ts *TimeStep) SetWindow(i int, w *Window, last int) {
	ts.Obs[i], ts.Rows[i] = w.At(last), int64(last)
}
