package envs

import (
	"fmt"
	"reflect"
	"slices"

	"github.com/onnxrl/onnxrl/runtime/rng"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// Space is a set of tensors of one element type and shape: a [Discrete], [MultiDiscrete],
// [MultiBinary] or [Box]. Code that treats them differently uses a type switch.
type Space interface {
	DType() tensor.DType
	// Shape returns the extents, which the caller must not change.
	Shape() []int
	// Check returns an error that says what is wrong unless t lies in the space. It does not
	// allocate when it does.
	Check(t *tensor.Tensor) error
	// Sample fills t with an element drawn uniformly; where the space is unbounded, from the
	// standard normal distribution. Elements that a mask (nil for none, else as [MaskLen]
	// describes) excludes are not drawn.
	Sample(s *rng.Stream, mask []bool, t *tensor.Tensor)
	// Validate reports whether the description itself makes sense.
	Validate() error
	String() string

	space()
}

// sameSpace compares the descriptions.
func sameSpace(a, b Space) bool { return reflect.DeepEqual(a, b) }

// checkForm compares element type and shape.
func checkForm(d tensor.DType, shape []int, t *tensor.Tensor) error {
	if t == nil {
		return fmt.Errorf("no tensor, expected %v%v", d, shape)
	}
	if t.DType() != d || !slices.Equal(t.Shape(), shape) {
		return fmt.Errorf("%v, expected %v%v", t, d, shape)
	}
	return nil
}
