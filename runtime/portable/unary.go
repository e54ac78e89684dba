package portable

import (
	"math"

	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// unaryLoop applies an element-wise function to memory of one element type.
type unaryLoop struct {
	from, to tensor.DType
	run      func(dst, src *tensor.Tensor)
}

// on makes the loop of one element type.
func on[T, R tensor.Element](f func(dst []R, src []T)) unaryLoop {
	return unaryLoop{tensor.Scalar(*new(T)).DType(), tensor.Scalar(*new(R)).DType(), func(dst, src *tensor.Tensor) { f(data[R](dst), data[T](src)) }}
}

// unaryKernel runs the loop of the input's element type.
func unaryKernel(loops ...unaryLoop) kernel {
	return func(c *call) error {
		x := c.arg(0)
		d := x.DType()
		for i := range loops {
			if loops[i].from == d {
				loops[i].run(c.make(0, loops[i].to, x.Shape()...), x)
				return nil
			}
		}
		return unsupported("element type %v", d)
	}
}

// unary builds an operator without attributes.
func unary(loops ...unaryLoop) builder { return plain(unaryKernel(loops...)) }

// each makes a slice function of an element function.
func each[T, R any](f func(T) R) func(dst []R, src []T) {
	return func(dst []R, src []T) {
		for i, v := range src {
			dst[i] = f(v)
		}
	}
}

// floats builds an operator on floats from a function of float64; float32 is computed through it
// and rounded once.
func floats(f func(float64) float64) builder {
	return unary(on(func(dst, src []float32) {
		for i, v := range src {
			dst[i] = float32(f(float64(v)))
		}
	}), on(each(f)))
}

// floatsWith is floats for operators whose function depends on attributes.
func floatsWith(make func(n *node) (func(float64) float64, error)) builder {
	return func(n *node) (kernel, error) {
		f, err := make(n)
		if err != nil {
			return nil, err
		}
		return floats(f)(n)
	}
}

var unaryOperators = []operator{
	{name: "Abs", versions: []int{6, 13}, minIn: 1, maxIn: 1, build: unary(on(abs[float32]), on(abs[float64]), on(abs[int8]), on(abs[int16]), on(abs[int32]), on(abs[int64]),
		on(same[uint8]), on(same[uint16]), on(same[uint32]), on(same[uint64]))},
	{name: "Neg", versions: []int{6, 13}, minIn: 1, maxIn: 1, build: unary(on(neg[float32]), on(neg[float64]), on(neg[int8]), on(neg[int16]), on(neg[int32]), on(neg[int64]))},
	{name: "Sign", versions: []int{9, 13}, minIn: 1, maxIn: 1, build: unary(on(sign[float32]), on(sign[float64]), on(sign[int8]), on(sign[int16]), on(sign[int32]), on(sign[int64]),
		on(sign[uint8]), on(sign[uint16]), on(sign[uint32]), on(sign[uint64]))},
	{name: "Relu", versions: []int{6, 13, 14}, minIn: 1, maxIn: 1, build: unary(on(relu[float32]), on(relu[float64]), on(relu[int8]), on(relu[int16]), on(relu[int32]), on(relu[int64]))},
	{name: "Reciprocal", versions: []int{6, 13}, minIn: 1, maxIn: 1, build: unary(on(reciprocal[float32]), on(reciprocal[float64]))},
	{name: "Not", versions: []int{1}, minIn: 1, maxIn: 1, build: unary(on(each(func(b bool) bool { return !b })))},
	{name: "BitwiseNot", versions: []int{18}, minIn: 1, maxIn: 1, build: unary(on(flip[int8]), on(flip[int16]), on(flip[int32]), on(flip[int64]),
		on(flip[uint8]), on(flip[uint16]), on(flip[uint32]), on(flip[uint64]))},
	{name: "IsNaN", versions: []int{9, 13, 20}, minIn: 1, maxIn: 1, build: unary(on(isNaN[float32]), on(isNaN[float64]))},
	{name: "IsInf", versions: []int{10, 20}, minIn: 1, maxIn: 1, build: buildIsInf},

	{name: "Sqrt", versions: []int{6, 13}, minIn: 1, maxIn: 1, build: floats(math.Sqrt)},
	{name: "Exp", versions: []int{6, 13}, minIn: 1, maxIn: 1, build: floats(math.Exp)},
	{name: "Log", versions: []int{6, 13}, minIn: 1, maxIn: 1, build: floats(math.Log)},
	{name: "Sin", versions: []int{7, 22}, minIn: 1, maxIn: 1, build: floats(math.Sin)},
	{name: "Cos", versions: []int{7, 22}, minIn: 1, maxIn: 1, build: floats(math.Cos)},
	{name: "Tan", versions: []int{7, 22}, minIn: 1, maxIn: 1, build: floats(math.Tan)},
	{name: "Asin", versions: []int{7, 22}, minIn: 1, maxIn: 1, build: floats(math.Asin)},
	{name: "Acos", versions: []int{7, 22}, minIn: 1, maxIn: 1, build: floats(math.Acos)},
	{name: "Atan", versions: []int{7, 22}, minIn: 1, maxIn: 1, build: floats(math.Atan)},
	{name: "Sinh", versions: []int{9, 22}, minIn: 1, maxIn: 1, build: floats(math.Sinh)},
	{name: "Cosh", versions: []int{9, 22}, minIn: 1, maxIn: 1, build: floats(math.Cosh)},
	{name: "Tanh", versions: []int{6, 13}, minIn: 1, maxIn: 1, build: unary(on(tanh32), on(each(math.Tanh)))},
	{name: "Asinh", versions: []int{9, 22}, minIn: 1, maxIn: 1, build: floats(math.Asinh)},
	{name: "Acosh", versions: []int{9, 22}, minIn: 1, maxIn: 1, build: floats(math.Acosh)},
	{name: "Atanh", versions: []int{9, 22}, minIn: 1, maxIn: 1, build: floats(math.Atanh)},
	{name: "Erf", versions: []int{9, 13}, minIn: 1, maxIn: 1, build: floats(math.Erf)},
	{name: "Ceil", versions: []int{6, 13}, minIn: 1, maxIn: 1, build: floats(math.Ceil)},
	{name: "Floor", versions: []int{6, 13}, minIn: 1, maxIn: 1, build: floats(math.Floor)},
	{name: "Round", versions: []int{11, 22}, minIn: 1, maxIn: 1, build: floats(math.RoundToEven)},
}

func same[T any](dst, src []T) { copy(dst, src) }

func abs[T signed | float](dst, src []T) {
	for i, v := range src {
		if v < 0 || v == 0 {
			v = 0 - v
		}
		if v == 0 {
			v = 0 // an absolute value of -0 is +0
		}
		dst[i] = v
	}
}

func neg[T signed | float](dst, src []T) {
	for i, v := range src {
		dst[i] = -v
	}
}

func sign[T number](dst, src []T) {
	for i, v := range src {
		switch {
		case v > 0:
			dst[i] = 1
		case v < 0:
			dst[i] = 0
			dst[i]--
		default:
			dst[i] = v // zero, and NaN stays NaN
		}
	}
}

func relu[T signed | float](dst, src []T) {
	for i, v := range src {
		if v < 0 {
			v = 0
		}
		dst[i] = v
	}
}

func reciprocal[T float](dst, src []T) {
	for i, v := range src {
		dst[i] = 1 / v
	}
}

func flip[T integer](dst, src []T) {
	for i, v := range src {
		dst[i] = ^v
	}
}

func isNaN[T float](dst []bool, src []T) {
	for i, v := range src {
		dst[i] = v != v
	}
}

func buildIsInf(n *node) (kernel, error) {
	pos, neg := n.Int("detect_positive", 1) != 0, n.Int("detect_negative", 1) != 0
	return unaryKernel(
		on(each(func(v float32) bool { return pos && math.IsInf(float64(v), 1) || neg && math.IsInf(float64(v), -1) })),
		on(each(func(v float64) bool { return pos && math.IsInf(v, 1) || neg && math.IsInf(v, -1) }))), nil
}

// tanh32 is math.Tanh to within a unit in the last place of float32, several times faster. Near
// zero, where 1 - 2/(e²ˣ+1) would cancel, it is the odd polynomial of Cephes' tanhf.
func tanh32(dst, src []float32) {
	for i, v := range src {
		x := float64(v)
		if x > -0.625 && x < 0.625 {
			z := x * x
			p := (((-5.70498872745e-3*z+2.06390887954e-2)*z-5.37397155531e-2)*z+1.33314422036e-1)*z - 3.33332819422e-1
			dst[i] = float32(p*z*x + x)
			continue
		}
		// Beyond the range of e²ˣ the quotient is 0 or 2 exactly, and NaN stays NaN.
		dst[i] = float32(1 - 2/(math.Exp(2*x)+1))
	}
}
