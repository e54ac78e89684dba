package envs

import (
	"fmt"
	"slices"

	"github.com/onnxrl/onnxrl/runtime/rng"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// MultiDiscrete is several independent choices (heads), the i-th out of N[i]: an int64 tensor
// [len(N)].
type MultiDiscrete struct {
	N []int
	// Start is what the environment calls the first choice of each head, as [Discrete] has it; nil
	// is 0 for all.
	Start []int64
}

var _ Space = MultiDiscrete{}

func (MultiDiscrete) space()              {}
func (MultiDiscrete) DType() tensor.DType { return tensor.Int64 }

func (s MultiDiscrete) String() string {
	if Starts(s) != nil {
		return fmt.Sprintf("multi-discrete%v from %v", s.N, s.Start)
	}
	return fmt.Sprintf("multi-discrete%v", s.N)
}

// Shape implements Space.
func (s MultiDiscrete) Shape() []int { return []int{len(s.N)} }

// Validate requires at least one head and at least one choice in each.
func (s MultiDiscrete) Validate() error {
	if len(s.N) == 0 || slices.Min(s.N) < 1 {
		return fmt.Errorf("%v: expected heads with at least one choice each", s)
	}
	if s.Start != nil && len(s.Start) != len(s.N) {
		return fmt.Errorf("%v: %d starts for %d heads", s, len(s.Start), len(s.N))
	}
	return nil
}

// Check implements Space.
func (s MultiDiscrete) Check(t *tensor.Tensor) error {
	if t == nil || t.DType() != tensor.Int64 || t.Rank() != 1 || t.Shape()[0] != len(s.N) {
		return checkForm(tensor.Int64, s.Shape(), t)
	}
	for i, v := range t.Int64s() {
		if v < 0 || v >= int64(s.N[i]) {
			start := int64(0)
			if s.Start != nil {
				start = s.Start[i]
			}
			return fmt.Errorf("element %d is %d, expected %d to %d", i, start+v, start, start+int64(s.N[i])-1)
		}
	}
	return nil
}

// Sample implements Space.
func (s MultiDiscrete) Sample(r *rng.Stream, mask []bool, t *tensor.Tensor) {
	dst := t.Int64s()
	for i, n := range s.N {
		var head []bool
		if mask != nil {
			head, mask = mask[:n], mask[n:]
		}
		dst[i] = sampleHead(r, n, head)
	}
}
