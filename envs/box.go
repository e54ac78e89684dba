package envs

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/onnxrl/onnxrl/runtime/rng"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// Box is a tensor of float32, float64 or uint8 whose elements lie between bounds. NaN never does;
// an infinite bound is none, but infinite elements lie in no box.
type Box struct {
	Of tensor.DType
	// Dims are the extents.
	Dims []int
	// Low and High have one element for all, or one for each.
	Low, High []float64
}

var _ Space = Box{}

// NewBox returns a box of float32 with the same bounds for all elements.
func NewBox(low, high float64, dims ...int) Box {
	return Box{Of: tensor.Float32, Dims: slices.Clone(dims), Low: []float64{low}, High: []float64{high}}
}

// Unbounded returns a box of finite float32 values.
func Unbounded(dims ...int) Box { return NewBox(math.Inf(-1), math.Inf(1), dims...) }

func (Box) space()                {}
func (s Box) DType() tensor.DType { return s.Of }
func (s Box) Shape() []int        { return s.Dims }

func (s Box) String() string {
	if len(s.Low) == 1 && len(s.High) == 1 {
		return fmt.Sprintf("box %v%v in [%g, %g]", s.Of, s.Dims, s.Low[0], s.High[0])
	}
	return fmt.Sprintf("box %v%v in [%v, %v]", s.Of, s.Dims, s.Low, s.High)
}

// Bounds returns the bounds of element i.
func (s Box) Bounds(i int) Range {
	r := Range{s.Low[0], s.High[0]}
	if len(s.Low) > 1 {
		r.Low = s.Low[i]
	}
	if len(s.High) > 1 {
		r.High = s.High[i]
	}
	return r
}

// Limits are Low and High of equal length: one for all elements, or one for each.
func (s Box) Limits() (low, high []float64) {
	if len(s.Low) == len(s.High) {
		return s.Low, s.High
	}
	for i := range max(len(s.Low), len(s.High)) {
		r := s.Bounds(i)
		low, high = append(low, r.Low), append(high, r.High)
	}
	return low, high
}

// Bounded reports whether every element has two finite bounds.
func (s Box) Bounded() bool {
	inf := func(x float64) bool { return math.IsInf(x, 0) }
	return !slices.ContainsFunc(s.Low, inf) && !slices.ContainsFunc(s.High, inf)
}

// Validate requires a known element type and one or all bounds, in order.
func (s Box) Validate() error {
	n, err := tensor.Len(s.Dims)
	if err != nil {
		return fmt.Errorf("box: %w", err)
	}
	if s.Of != tensor.Float32 && s.Of != tensor.Float64 && s.Of != tensor.Uint8 {
		return fmt.Errorf("box of %v: expected float32, float64 or uint8", s.Of)
	}
	if n == 0 {
		return errors.New("box: it has no elements")
	}
	for _, b := range [][]float64{s.Low, s.High} {
		if len(b) != 1 && len(b) != n {
			return fmt.Errorf("box of %d elements: %d bounds, expected 1 or %d", n, len(b), n)
		}
	}
	for i := range max(len(s.Low), len(s.High)) {
		if r := s.Bounds(i); !(r.Low <= r.High) {
			return fmt.Errorf("box: element %d is bounded by %g and %g", i, r.Low, r.High)
		}
	}
	return nil
}

// Check implements Space.
func (s Box) Check(t *tensor.Tensor) error {
	if err := checkForm(s.Of, s.Dims, t); err != nil {
		return err
	}
	switch s.Of {
	case tensor.Float32:
		return checkBox(s, t.Float32s())
	case tensor.Float64:
		return checkBox(s, t.Float64s())
	}
	return checkBox(s, tensor.Data[uint8](t))
}

func checkBox[T float32 | float64 | uint8](s Box, x []T) error {
	for i, v := range x {
		// The bound is rounded to the element type first, so that 0.1 as a float32 lies in a box
		// that ends at 0.1.
		r := s.Bounds(i)
		if f := float64(v); !(f >= float64(T(r.Low)) || f >= r.Low) || !(f <= float64(T(r.High)) || f <= r.High) || math.IsInf(f, 0) {
			return fmt.Errorf("element %d is %g, expected %g to %g", i, f, r.Low, r.High)
		}
	}
	return nil
}

// Sample implements Space.
func (s Box) Sample(r *rng.Stream, _ []bool, t *tensor.Tensor) {
	switch s.Of {
	case tensor.Float32:
		sampleBox(s, r, t.Float32s())
	case tensor.Float64:
		sampleBox(s, r, t.Float64s())
	default:
		for i, dst := 0, tensor.Data[uint8](t); i < len(dst); i++ {
			b := s.Bounds(i)
			low, high := max(0, int(math.Ceil(max(b.Low, 0)))), int(min(b.High, 255))
			dst[i] = uint8(low + r.IntN(high-low+1))
		}
	}
}

func sampleBox[T float32 | float64](s Box, r *rng.Stream, dst []T) {
	for i := range dst {
		b := s.Bounds(i)
		if math.IsInf(b.Low, 0) || math.IsInf(b.High, 0) {
			dst[i] = T(min(max(r.Normal(), b.Low), b.High))
		} else {
			dst[i] = T(b.Low + r.Float64()*(b.High-b.Low))
		}
	}
}
