package nodecases

import (
	"bytes"
	"fmt"
	"math"
	"slices"

	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// Tolerance is how far a float may lie from the expected one: |got − want| ≤ Abs + Rel·|want|, the
// rule of NumPy's allclose.
type Tolerance struct{ Rel, Abs float64 }

// DefaultTolerance is the relative tolerance of ONNX's own backend test runner. Its absolute one,
// 1e-7, is below the float32 noise of a transform of a hundred elements, which some expected
// outputs carry.
var DefaultTolerance = Tolerance{Rel: 1e-3, Abs: 1e-6}

// Compare reports how got differs from want: type, shape, or the first element out of tolerance.
// NaN equals NaN; everything but floats must be equal.
func Compare(got, want *tensor.Tensor, tol Tolerance) error {
	if got == nil {
		return fmt.Errorf("no tensor, expected %v", want)
	}
	if got.DType() != want.DType() || !slices.Equal(got.Shape(), want.Shape()) {
		return fmt.Errorf("%v, expected %v", got, want)
	}
	switch want.DType() {
	case tensor.String:
		for i, s := range want.Strings() {
			if got.Strings()[i] != s {
				return fmt.Errorf("element %d is %q, expected %q", i, got.Strings()[i], s)
			}
		}
		return nil
	case tensor.Float32:
		return near(tol, want.Len(), func(i int) (a, b float64) { return float64(got.Float32s()[i]), float64(want.Float32s()[i]) })
	case tensor.Float64:
		return near(tol, want.Len(), func(i int) (a, b float64) { return got.Float64s()[i], want.Float64s()[i] })
	case tensor.Float16:
		g, w := tensor.Data[uint16](got), tensor.Data[uint16](want)
		return near(tol, want.Len(), func(i int) (a, b float64) {
			return float64(tensor.Float16ToFloat32(g[i])), float64(tensor.Float16ToFloat32(w[i]))
		})
	case tensor.BFloat16:
		g, w := tensor.Data[uint16](got), tensor.Data[uint16](want)
		return near(tol, want.Len(), func(i int) (a, b float64) {
			return float64(tensor.BFloat16ToFloat32(g[i])), float64(tensor.BFloat16ToFloat32(w[i]))
		})
	case tensor.Complex64:
		g, w := parts32(got), parts32(want)
		return near(tol, len(w), func(i int) (a, b float64) { return g[i], w[i] })
	}
	if nan := nan8(want.DType()); nan != nil {
		return near(Tolerance{}, want.Len(), func(i int) (a, b float64) { return nan(got.Bytes()[i]), nan(want.Bytes()[i]) })
	}
	if !bytes.Equal(got.Bytes(), want.Bytes()) {
		for i := range got.Bytes() {
			if got.Bytes()[i] != want.Bytes()[i] {
				return fmt.Errorf("element %d differs", i*8/max(1, want.DType().Bits()))
			}
		}
	}
	return nil
}

// nan8 returns for a type of 8-bit floats what makes of its bits a number that is NaN where they are,
// and another one for each other pattern, 0 and −0 included; nil for other types. Several patterns of
// float8e5m2 and float8e4m3fn are NaN.
func nan8(d tensor.DType) func(byte) float64 {
	var first, last byte // of the patterns of NaN, without the sign
	switch d {
	case tensor.Float8E5M2:
		first, last = 0x7d, 0x7f
	case tensor.Float8E4M3FN:
		first, last = 0x7f, 0x7f
	default:
		return nil
	}
	return func(b byte) float64 {
		if magnitude := b & 0x7f; magnitude >= first && magnitude <= last {
			return math.NaN()
		}
		return float64(b)
	}
}

func parts32(t *tensor.Tensor) []float64 {
	var out []float64
	for _, v := range tensor.Data[complex64](t) {
		out = append(out, float64(real(v)), float64(imag(v)))
	}
	return out
}

func near(tol Tolerance, n int, at func(int) (got, want float64)) error {
	for i := range n {
		g, w := at(i)
		switch {
		case g == w, math.IsNaN(g) && math.IsNaN(w):
		case math.Abs(g-w) <= tol.Abs+tol.Rel*math.Abs(w) && !math.IsInf(w, 0):
		default:
			return fmt.Errorf("element %d is %v, expected %v", i, g, w)
		}
	}
	return nil
}

// identical reports whether two runs gave the same bits.
func identical(a, b []*tensor.Tensor) error {
	for i := range a {
		x, y := a[i], b[i]
		if x.DType() != y.DType() || !slices.Equal(x.Shape(), y.Shape()) {
			return fmt.Errorf("output %d is %v and %v", i, x, y)
		}
		if x.DType() == tensor.String && !slices.Equal(x.Strings(), y.Strings()) || x.DType() != tensor.String && !bytes.Equal(x.Bytes(), y.Bytes()) {
			return fmt.Errorf("output %d has other elements", i)
		}
	}
	return nil
}
