package opcases

import (
	"math/rand/v2"
	"slices"

	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// Arg is one input of a case's node: how its value is made and how it reaches the node.
type Arg struct {
	// diff marks values that are differentiated: graph inputs of type float32. Others are
	// initializers, which inference and rules know, unless dynamic makes them graph inputs.
	diff, dynamic bool
	gen           func(r *rand.Rand) *tensor.Tensor
}

// none is an optional input that is left out.
var none = Arg{}

func floatArg(shape []int, draw func(r *rand.Rand, i int) float64) Arg {
	return Arg{diff: true, gen: func(r *rand.Rand) *tensor.Tensor {
		t := tensor.New(tensor.Float32, shape...)
		for i := range t.Float32s() {
			t.Float32s()[i] = float32(draw(r, i))
		}
		return t
	}}
}

// Any draws elements from [-1.5, 1.5].
func Any(shape ...int) Arg { return Between(-1.5, 1.5, shape...) }

// Between draws elements from [lo, hi].
func Between(lo, hi float64, shape ...int) Arg {
	return floatArg(shape, func(r *rand.Rand, _ int) float64 { return lo + (hi-lo)*r.Float64() })
}

// positive draws elements from [0.4, 2].
func positive(shape ...int) Arg { return Between(0.4, 2, shape...) }

// nonZero draws elements from ±[0.3, 1.8].
func nonZero(shape ...int) Arg {
	return floatArg(shape, func(r *rand.Rand, _ int) float64 {
		v := 0.3 + 1.5*r.Float64()
		if r.Uint64()&1 == 0 {
			return -v
		}
		return v
	})
}

// away draws elements from [lo, hi] that keep 0.1 from every kink.
func away(lo, hi float64, kinks []float64, shape ...int) Arg {
	return floatArg(shape, func(r *rand.Rand, _ int) float64 {
		for {
			v := lo + (hi-lo)*r.Float64()
			if !slices.ContainsFunc(kinks, func(k float64) bool { return v > k-0.1 && v < k+0.1 }) {
				return v
			}
		}
	})
}

// Distinct draws a random order of numbers 0.1 apart around 0, none of them 0: no two are close
// enough to change places.
func Distinct(shape ...int) Arg { return distinctFrom(0, shape) }

// distinctOther is Distinct shifted by half a distance, for a second operand that must not meet the
// first.
func distinctOther(shape ...int) Arg { return distinctFrom(0.5, shape) }

func distinctFrom(offset float64, shape []int) Arg {
	return Arg{diff: true, gen: func(r *rand.Rand) *tensor.Tensor {
		t := tensor.New(tensor.Float32, shape...)
		for i, p := range r.Perm(t.Len()) {
			t.Float32s()[i] = float32((float64(p) + 0.25 + offset - float64(t.Len()/2)) * 0.1)
		}
		return t
	}}
}

// Values is a differentiated input of exactly these elements.
func Values(shape []int, v ...float64) Arg {
	return floatArg(shape, func(_ *rand.Rand, i int) float64 { return v[i] })
}

// Const makes the value a constant of the model.
func (a Arg) Const() Arg {
	a.diff, a.dynamic = false, false
	return a
}

// Fixed makes the value a graph input that is not differentiated and whose content is not known
// when the gradient is built.
func (a Arg) Fixed() Arg {
	a.diff, a.dynamic = false, true
	return a
}

// ints is a constant one-dimensional int64 tensor: axes, shapes, pads.
func ints(v ...int) Arg { return intsOf([]int{len(v)}, v...) }

// Int is a constant int64 scalar.
func Int(v int) Arg { return intsOf(nil, v) }

// intsOf is a constant int64 tensor.
func intsOf(shape []int, v ...int) Arg {
	return Arg{gen: func(*rand.Rand) *tensor.Tensor { return tensor.Of(onnx.Int64s(v), shape...) }}
}

// index is a graph input of random int64 in [lo, hi).
func index(lo, hi int, shape ...int) Arg {
	return Arg{dynamic: true, gen: func(r *rand.Rand) *tensor.Tensor {
		t := tensor.New(tensor.Int64, shape...)
		for i := range t.Int64s() {
			t.Int64s()[i] = int64(lo + r.IntN(hi-lo))
		}
		return t
	}}
}

// bools is a constant bool tensor.
func bools(shape []int, v ...bool) Arg {
	return Arg{gen: func(*rand.Rand) *tensor.Tensor { return tensor.Of(v, shape...) }}
}

// coins is a graph input of random booleans.
func coins(shape ...int) Arg {
	return Arg{dynamic: true, gen: func(r *rand.Rand) *tensor.Tensor {
		t := tensor.New(tensor.Bool, shape...)
		for i := range t.Bools() {
			t.Bools()[i] = r.Uint64()&1 == 0
		}
		return t
	}}
}

// Tensor is a constant of any type.
func Tensor(t *tensor.Tensor) Arg { return Arg{gen: func(*rand.Rand) *tensor.Tensor { return t }} }

// float is a constant float32 scalar.
func float(v float32) Arg { return Tensor(tensor.Scalar(v)) }
