package tensor

import (
	"fmt"
	"math"
)

// ToFloat32 returns a floating-point tensor in float32, rounded to the nearest: t itself when it is
// of that type already.
func ToFloat32(t *Tensor) (*Tensor, error) {
	if t.DType() == Float32 {
		return t, nil
	}
	out := New(Float32, t.Shape()...)
	x := out.Float32s()
	switch t.DType() {
	case Float64:
		for i, v := range t.Float64s() {
			x[i] = float32(v)
		}
	case Float16:
		for i, v := range Data[uint16](t) {
			x[i] = Float16ToFloat32(v)
		}
	case BFloat16:
		for i, v := range Data[uint16](t) {
			x[i] = BFloat16ToFloat32(v)
		}
	default:
		return nil, fmt.Errorf("it is %v, expected floating-point numbers", t)
	}
	return out, nil
}

// FromFloat32 returns a float32 tensor in another floating-point type, rounded to the nearest: t
// itself for float32. A finite number that the type can only hold as an infinity is an error that
// names the element.
func FromFloat32(t *Tensor, d DType) (*Tensor, error) {
	if t.DType() != Float32 {
		return nil, fmt.Errorf("it is %v, expected float32", t)
	}
	if d == Float32 {
		return t, nil
	}
	out := New(d, t.Shape()...)
	x := t.Float32s()
	narrow := func(to func(float32) uint16, back func(uint16) float32) error {
		dst := Data[uint16](out)
		for i, v := range x {
			dst[i] = to(v)
			if math.IsInf(float64(back(dst[i])), 0) && !math.IsInf(float64(v), 0) {
				return fmt.Errorf("element %d is %g, which does not fit %v", i, v, d)
			}
		}
		return nil
	}
	switch d {
	case Float64:
		dst := out.Float64s()
		for i, v := range x {
			dst[i] = float64(v)
		}
		return out, nil
	case Float16:
		return out, narrow(Float32ToFloat16, Float16ToFloat32)
	case BFloat16:
		return out, narrow(Float32ToBFloat16, BFloat16ToFloat32)
	}
	return nil, fmt.Errorf("%v is no floating-point type", d)
}
