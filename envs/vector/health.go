package vector

import (
	"fmt"
	"math"

	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// health is what every step of an environment is checked for, whatever Options.Check says, because
// a learner that meets it is spoilt without a word: observations that are not finite, that count a
// choice which there is not, or that were not written where they belong, and masks that leave no
// action.
type health struct {
	// views are the tensors that the environment writes into, by field; nil for windows, whose
	// tables are constant.
	views []*tensor.Tensor
	// float32s and float64s are their elements, where they are of these types.
	float32s [][]float32
	float64s [][]float64
	mask     []bool
}

func newHealth(ts *envs.TimeStep) health {
	h := health{views: make([]*tensor.Tensor, len(ts.Obs)), float32s: make([][]float32, len(ts.Obs)), float64s: make([][]float64, len(ts.Obs))}
	for f, t := range ts.Obs {
		if t == nil {
			continue
		}
		h.views[f] = t
		switch t.DType() {
		case tensor.Float32:
			h.float32s[f] = t.Float32s()
		case tensor.Float64:
			h.float64s[f] = t.Float64s()
		}
	}
	if ts.Mask != nil {
		h.mask = ts.Mask.Bools()
	}
	return h
}

// check returns an error that names what is wrong with a step. It does not allocate when nothing
// is.
func (h *health) check(spec *envs.Spec, ts *envs.TimeStep) error {
	for f, view := range h.views {
		if view == nil {
			continue
		}
		if ts.Obs[f] != view {
			return fmt.Errorf("observation %q: the environment has put %v in the place of the tensor %v that it was given; it is to write into that one", spec.Observation[f].Name, ts.Obs[f], view)
		}
		if !finite(h.float32s[f]) || !finite(h.float64s[f]) {
			return fmt.Errorf("observation %q: %s", spec.Observation[f].Name, firstNonFinite(h.float32s[f], h.float64s[f]))
		}
		switch space := spec.Observation[f].Space.(type) {
		case envs.Discrete, envs.MultiDiscrete:
			// A network takes them for indices, where −1 would be the last one.
			if err := space.Check(view); err != nil {
				return fmt.Errorf("observation %q of %v: %w", spec.Observation[f].Name, space, err)
			}
		}
	}
	if h.mask != nil && !ts.Terminated() {
		if err := envs.CheckMask(spec.Action, h.mask); err != nil {
			if ts.Type == envs.Last {
				return fmt.Errorf("the episode was truncated, where the value of what could follow counts: %w", err)
			}
			return err
		}
	}
	return nil
}

// finite reports whether no element is NaN or infinite: x − x is 0 exactly where x is finite.
func finite[T float32 | float64](x []T) bool {
	var sum T
	for _, v := range x {
		sum += v - v
	}
	return sum == 0
}

// firstNonFinite names the first element that is NaN or infinite.
func firstNonFinite(a []float32, b []float64) string {
	for i, v := range a {
		if v-v != 0 {
			return fmt.Sprintf("element %d is %g, expected a finite number", i, v)
		}
	}
	for i, v := range b {
		if v-v != 0 {
			return fmt.Sprintf("element %d is %g, expected a finite number", i, v)
		}
	}
	return "it is finite"
}

// checkReward returns an error for a step after the first whose type, reward, discount or costs no
// environment may answer with.
func checkReward(spec *envs.Spec, ts *envs.TimeStep) error {
	if math.IsNaN(ts.Reward) || math.IsInf(ts.Reward, 0) || !(ts.Discount >= 0 && ts.Discount <= 1) || ts.Type == envs.First {
		return fmt.Errorf("the environment answers with type %v, reward %g and discount %g", ts.Type, ts.Reward, ts.Discount)
	}
	for i, c := range ts.Costs {
		if c-c != 0 {
			return fmt.Errorf("cost %q is %g, expected a finite number", spec.Costs[i], c)
		}
	}
	return nil
}
