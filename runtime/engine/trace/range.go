package trace

import (
	"fmt"
	"math"
	"strings"

	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// Range describes the elements of a tensor. The JSON keys are stable.
type Range struct {
	DType string `json:"dtype"`
	Shape []int  `json:"shape"`
	// Min, Max and Mean are over the finite elements; all are 0 when there is none.
	Min  float64 `json:"min"`
	Max  float64 `json:"max"`
	Mean float64 `json:"mean"`
	// NaN, PosInf and NegInf count elements; First is the row-major index of the first of them, -1
	// without any.
	NaN    int `json:"nan"`
	PosInf int `json:"pos_inf"`
	NegInf int `json:"neg_inf"`
	First  int `json:"first_non_finite"`
}

// NonFinite counts elements that are NaN or infinite.
func (r Range) NonFinite() int { return r.NaN + r.PosInf + r.NegInf }

// String prints for instance "float32[2 3] in [-1, 4], mean 0.5, 2 NaN of 6 from element 3".
func (r Range) String() string {
	n := 1
	for _, d := range r.Shape {
		n *= d
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s%v", r.DType, r.Shape)
	switch {
	case n == 0:
		b.WriteString(", empty")
	case n > r.NonFinite() && r.DType != tensor.String.String():
		fmt.Fprintf(&b, " in [%.4g, %.4g], mean %.4g", r.Min, r.Max, r.Mean)
	}
	for _, k := range []struct {
		n    int
		what string
	}{{r.NaN, "NaN"}, {r.PosInf, "+Inf"}, {r.NegInf, "-Inf"}} {
		if k.n > 0 {
			fmt.Fprintf(&b, ", %d %s", k.n, k.what)
		}
	}
	if r.First >= 0 {
		fmt.Fprintf(&b, " of %d, the first at element %d", n, r.First)
	}
	return b.String()
}

// RangeOf looks at every element of a tensor of real numbers or booleans; other types are described
// by type and shape alone.
func RangeOf(t *tensor.Tensor) Range {
	r := Range{DType: t.DType().String(), Shape: append([]int{}, t.Shape()...), First: -1, Min: math.Inf(1), Max: math.Inf(-1)}
	at := reader(t)
	finite := 0
	for i := 0; at != nil && i < t.Len(); i++ {
		x := at(i)
		switch {
		case math.IsNaN(x):
			r.NaN++
		case math.IsInf(x, 1):
			r.PosInf++
		case math.IsInf(x, -1):
			r.NegInf++
		default:
			finite++
			// In this form no partial sum overflows.
			r.Mean += x/float64(finite) - r.Mean/float64(finite)
			r.Min, r.Max = min(r.Min, x), max(r.Max, x)
			continue
		}
		if r.First < 0 {
			r.First = i
		}
	}
	if finite == 0 {
		r.Min, r.Max = 0, 0
	}
	return r
}

// reader returns a function that reads an element as float64, or nil for types that are not real
// numbers.
func reader(t *tensor.Tensor) func(int) float64 {
	switch t.DType() {
	case tensor.Float32:
		return read[float32](t)
	case tensor.Float64:
		return read[float64](t)
	case tensor.Float16:
		v := tensor.Data[uint16](t)
		return func(i int) float64 { return float64(tensor.Float16ToFloat32(v[i])) }
	case tensor.BFloat16:
		v := tensor.Data[uint16](t)
		return func(i int) float64 { return float64(tensor.BFloat16ToFloat32(v[i])) }
	case tensor.Int8:
		return read[int8](t)
	case tensor.Int16:
		return read[int16](t)
	case tensor.Int32:
		return read[int32](t)
	case tensor.Int64:
		return read[int64](t)
	case tensor.Uint8:
		return read[uint8](t)
	case tensor.Uint16:
		return read[uint16](t)
	case tensor.Uint32:
		return read[uint32](t)
	case tensor.Uint64:
		return read[uint64](t)
	case tensor.Bool:
		v := t.Bools()
		return func(i int) float64 {
			if v[i] {
				return 1
			}
			return 0
		}
	}
	return nil
}

func read[T float32 | float64 | int8 | int16 | int32 | int64 | uint8 | uint16 | uint32 | uint64](t *tensor.Tensor) func(int) float64 {
	v := tensor.Data[T](t)
	return func(i int) float64 { return float64(v[i]) }
}
