package envs

import (
	"fmt"
	"math"
)

// CheckStep returns an error naming the first value of ts that the spec does not allow. Such are
// a wrong form or a value out of bounds in an observation, NaN, a reward or discount outside its
// range, and a head without a valid action. prev is the type of the step before ts, and Last
// before the very first one. It does not allocate when all is well.
func CheckStep(s *Spec, prev StepType, ts *TimeStep) error {
	if (prev == Last) != (ts.Type == First) || ts.Type > Last {
		return fmt.Errorf("%s: a step of type %v follows one of type %v", s.Name, ts.Type, prev)
	}
	switch {
	case ts.Type == First && (ts.Reward != 0 || ts.Discount != 1):
		return fmt.Errorf("%s: the first step has reward %g and discount %g, expected 0 and 1", s.Name, ts.Reward, ts.Discount)
	case ts.Type != First && (!s.Reward.Contains(ts.Reward) || math.IsInf(ts.Reward, 0)):
		return fmt.Errorf("%s: reward %g, expected %g to %g", s.Name, ts.Reward, s.Reward.Low, s.Reward.High)
	case !(ts.Discount >= 0 && ts.Discount <= 1):
		return fmt.Errorf("%s: discount %g, expected 0 to 1", s.Name, ts.Discount)
	case ts.Type == Mid && ts.Discount == 0:
		return fmt.Errorf("%s: a step within the episode has discount 0, which only a last one may have", s.Name)
	case len(ts.Obs) != len(s.Observation) || len(ts.Rows) != len(s.Observation):
		return fmt.Errorf("%s: %d observations and %d rows, expected %d", s.Name, len(ts.Obs), len(ts.Rows), len(s.Observation))
	case len(ts.Info) != len(s.Info):
		return fmt.Errorf("%s: %d diagnostics, expected %d", s.Name, len(ts.Info), len(s.Info))
	case len(ts.Costs) != len(s.Costs):
		return fmt.Errorf("%s: %d costs, expected %d", s.Name, len(ts.Costs), len(s.Costs))
	}
	for i, c := range ts.Costs {
		if math.IsNaN(c) || math.IsInf(c, 0) || ts.Type == First && c != 0 {
			return fmt.Errorf("%s: cost %q is %g, expected a finite number, and 0 in a first step", s.Name, s.Costs[i], c)
		}
	}
	for i := range s.Observation {
		f := &s.Observation[i]
		if f.Window != nil {
			// The rows of a table are constant: [CheckTables] looks at them once.
			if row := ts.Rows[i]; row < int64(f.Window.n-1) || row >= int64(len(f.Window.views)) || ts.Obs[i] != f.Window.views[row] {
				return fmt.Errorf("%s: observation %q: it is not the window that ends with row %d", s.Name, f.Name, row)
			}
		} else if err := f.Space.Check(ts.Obs[i]); err != nil {
			return fmt.Errorf("%s: observation %q: %w", s.Name, f.Name, err)
		}
	}
	if s.Masked {
		if ts.Mask == nil {
			return fmt.Errorf("%s: the step has no mask", s.Name)
		}
		if ts.Terminated() {
			// Nothing can be done any more, and a mask may say so.
			if n := MaskLen(s.Action); ts.Mask.Len() != n {
				return fmt.Errorf("%s: mask of %v: %d elements, expected %d", s.Name, s.Action, ts.Mask.Len(), n)
			}
		} else if err := CheckMask(s.Action, ts.Mask.Bools()); err != nil {
			return fmt.Errorf("%s: %w", s.Name, err)
		}
	}
	for i, v := range ts.Info {
		if math.IsNaN(v) {
			return fmt.Errorf("%s: diagnostic %q is NaN", s.Name, s.Info[i])
		}
	}
	return nil
}

// CheckTables returns an error naming the first window of a field of s that does not lie in the
// field's space, and the number of windows it looked at.
func CheckTables(s *Spec) (windows int, err error) {
	for _, f := range s.Observation {
		if f.Window == nil {
			continue
		}
		for last := f.Window.n - 1; last < len(f.Window.views); last++ {
			// Windows that do not overlap, and the last one, cover every row.
			if (last+1)%f.Window.n != 0 && last != len(f.Window.views)-1 {
				continue
			}
			windows++
			if err := f.Space.Check(f.Window.At(last)); err != nil {
				return windows, fmt.Errorf("%s: observation %q: window that ends with row %d: %w", s.Name, f.Name, last, err)
			}
		}
	}
	return windows, nil
}
