package envs

import (
	"fmt"

	"github.com/onnxrl/onnxrl/runtime/rng"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// MultiBinary is N independent bits: a bool tensor [N].
type MultiBinary struct{ N int }

var _ Space = MultiBinary{}

func (MultiBinary) space()              {}
func (MultiBinary) DType() tensor.DType { return tensor.Bool }
func (s MultiBinary) String() string    { return fmt.Sprintf("multi-binary(%d)", s.N) }

// Shape implements Space.
func (s MultiBinary) Shape() []int { return []int{s.N} }

// Validate requires at least one bit.
func (s MultiBinary) Validate() error {
	if s.N < 1 {
		return fmt.Errorf("%v: expected at least one bit", s)
	}
	return nil
}

// Check implements Space.
func (s MultiBinary) Check(t *tensor.Tensor) error {
	if t == nil || t.DType() != tensor.Bool || t.Rank() != 1 || t.Shape()[0] != s.N {
		return checkForm(tensor.Bool, s.Shape(), t)
	}
	for i, b := range t.Bytes() {
		if b > 1 {
			return fmt.Errorf("element %d is the byte %d, which is no truth value", i, b)
		}
	}
	return nil
}

// Sample implements Space.
func (s MultiBinary) Sample(r *rng.Stream, mask []bool, t *tensor.Tensor) {
	dst := t.Bools()
	for i := range dst {
		var head []bool
		if mask != nil {
			head, mask = mask[:2], mask[2:]
		}
		dst[i] = sampleHead(r, 2, head) == 1
	}
}
