package envs

import (
	"fmt"
	"slices"

	"github.com/onnxrl/onnxrl/runtime/rng"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// Discrete is one choice out of N: an int64 of rank 0 in [0, N).
type Discrete struct {
	N int
	// Start is what the environment itself calls the first choice, where that is not 0 (Gymnasium's
	// Discrete.start). Tensors count from 0 all the same; what leaves the program, such as exported
	// models, data sets and logs, has the environment's numbers.
	Start int64
}

var _ Space = Discrete{}

func (Discrete) space()              {}
func (Discrete) DType() tensor.DType { return tensor.Int64 }
func (Discrete) Shape() []int        { return nil }

func (s Discrete) String() string {
	if s.Start != 0 {
		return fmt.Sprintf("discrete(%d from %d)", s.N, s.Start)
	}
	return fmt.Sprintf("discrete(%d)", s.N)
}

// Validate requires at least one choice.
func (s Discrete) Validate() error {
	if s.N < 1 {
		return fmt.Errorf("%v: expected at least one choice", s)
	}
	return nil
}

// Check implements Space.
func (s Discrete) Check(t *tensor.Tensor) error {
	if err := checkForm(tensor.Int64, nil, t); err != nil {
		return err
	}
	if v := t.Int64s()[0]; v < 0 || v >= int64(s.N) {
		return fmt.Errorf("%d, expected %d to %d", s.Start+v, s.Start, s.Start+int64(s.N)-1)
	}
	return nil
}

// Starts are what an environment calls the first choice of every element of a space; nil where that
// is 0 for all of them, and for spaces without choices.
func Starts(s Space) []int64 {
	switch s := s.(type) {
	case Discrete:
		if s.Start != 0 {
			return []int64{s.Start}
		}
	case MultiDiscrete:
		if slices.ContainsFunc(s.Start, func(v int64) bool { return v != 0 }) {
			return s.Start
		}
	}
	return nil
}

// Sample implements Space.
func (s Discrete) Sample(r *rng.Stream, mask []bool, t *tensor.Tensor) {
	t.Int64s()[0] = sampleHead(r, s.N, mask)
}

// sampleHead draws one of n choices. Where a mask excludes all, it draws as if there were none.
func sampleHead(r *rng.Stream, n int, mask []bool) int64 {
	valid := 0
	for _, ok := range mask {
		if ok {
			valid++
		}
	}
	if valid == 0 {
		return int64(r.IntN(n))
	}
	k := r.IntN(valid)
	for i, ok := range mask {
		if ok {
			if k == 0 {
				return int64(i)
			}
			k--
		}
	}
	panic("envs: unreachable")
}
