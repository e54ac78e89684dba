package portable

import (
	"fmt"
	"math"

	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// Activations: functions of one value whose shape depends on attributes. All are computed in
// float64 and rounded once.
var activationOperators = []operator{
	{name: "Sigmoid", versions: []int{6, 13}, minIn: 1, maxIn: 1, build: floats(sigmoid)},
	{name: "Softplus", versions: []int{1, 22}, minIn: 1, maxIn: 1, build: floats(softplus)},
	{name: "Softsign", versions: []int{1, 22}, minIn: 1, maxIn: 1, build: floats(func(x float64) float64 { return x / (1 + math.Abs(x)) })},
	{name: "HardSwish", versions: []int{14, 22}, minIn: 1, maxIn: 1, build: floats(func(x float64) float64 { return x * math.Max(0, math.Min(1, x/6+0.5)) })},
	{name: "Mish", versions: []int{18, 22}, minIn: 1, maxIn: 1, build: floats(func(x float64) float64 { return x * math.Tanh(softplus(x)) })},
	{name: "Elu", versions: []int{6, 22}, minIn: 1, maxIn: 1, build: floatsWith(func(n *node) (func(float64) float64, error) {
		a := float64(n.Float("alpha", 1))
		return func(x float64) float64 { return elu(x, a) }, nil
	})},
	{name: "Celu", versions: []int{12, 28}, minIn: 1, maxIn: 1, build: floatsWith(func(n *node) (func(float64) float64, error) {
		a := float64(n.Float("alpha", 1))
		return func(x float64) float64 { return math.Max(0, x) + math.Min(0, a*math.Expm1(x/a)) }, nil
	})},
	{name: "Selu", versions: []int{6, 22}, minIn: 1, maxIn: 1, build: floatsWith(func(n *node) (func(float64) float64, error) {
		a, g := float64(n.Float("alpha", 1.67326319217681884765625)), float64(n.Float("gamma", 1.05070102214813232421875))
		return func(x float64) float64 { return g * elu(x, a) }, nil
	})},
	{name: "LeakyRelu", versions: []int{6, 16}, minIn: 1, maxIn: 1, build: floatsWith(func(n *node) (func(float64) float64, error) {
		a := float64(n.Float("alpha", 0.01))
		return func(x float64) float64 {
			if x < 0 {
				return a * x
			}
			return x
		}, nil
	})},
	{name: "ThresholdedRelu", versions: []int{10, 22}, minIn: 1, maxIn: 1, build: floatsWith(func(n *node) (func(float64) float64, error) {
		a := float64(n.Float("alpha", 1))
		return func(x float64) float64 {
			if x > a {
				return x
			}
			return 0
		}, nil
	})},
	{name: "HardSigmoid", versions: []int{6, 22}, minIn: 1, maxIn: 1, build: floatsWith(func(n *node) (func(float64) float64, error) {
		a, b := float64(n.Float("alpha", 0.2)), float64(n.Float("beta", 0.5))
		return func(x float64) float64 { return math.Max(0, math.Min(1, a*x+b)) }, nil
	})},
	{name: "Shrink", versions: []int{9}, minIn: 1, maxIn: 1, build: buildShrink},
	{name: "Swish", versions: []int{24}, minIn: 1, maxIn: 1, build: floatsWith(func(n *node) (func(float64) float64, error) {
		a := float64(n.Float("alpha", 1))
		return func(x float64) float64 { return x * sigmoid(a*x) }, nil
	})},
	{name: "Gelu", versions: []int{20}, minIn: 1, maxIn: 1, build: buildGelu},
	{domain: "com.microsoft", name: "Gelu", versions: []int{1}, minIn: 1, maxIn: 1, build: floats(geluErf)},
	{domain: "com.microsoft", name: "BiasGelu", versions: []int{1}, minIn: 2, maxIn: 2, build: biased(geluErf)},
	{domain: "com.microsoft", name: "FastGelu", versions: []int{1}, minIn: 1, maxIn: 2, build: biased(geluTanh)},
	{domain: "com.microsoft", name: "QuickGelu", versions: []int{1}, minIn: 1, maxIn: 1, build: floatsWith(func(n *node) (func(float64) float64, error) {
		a := float64(n.Float("alpha", 1.702))
		return func(x float64) float64 { return x * sigmoid(a*x) }, nil
	})},
	{name: "PRelu", versions: []int{7, 9, 16}, minIn: 2, maxIn: 2, build: binary(
		pair(loopsOf(prelu[float32])), pair(loopsOf(prelu[float64])), pair(loopsOf(prelu[int32])), pair(loopsOf(prelu[int64])),
		pair(loopsOf(prelu[uint32])), pair(loopsOf(prelu[uint64])))},
	{name: "Clip", versions: []int{6}, minIn: 1, maxIn: 1, build: buildClipAttr},
	{name: "Clip", versions: []int{11, 12, 13}, minIn: 1, maxIn: 3, build: plain(clip)},
}

func sigmoid(x float64) float64 {
	if x >= 0 {
		return 1 / (1 + math.Exp(-x))
	}
	e := math.Exp(x)
	return e / (1 + e)
}

func softplus(x float64) float64 { return math.Max(x, 0) + math.Log1p(math.Exp(-math.Abs(x))) }

func elu(x, a float64) float64 {
	if x < 0 {
		return a * math.Expm1(x)
	}
	return x
}

func prelu[T number](x, slope T) T {
	if x < 0 {
		return slope * x
	}
	return x
}

func geluErf(x float64) float64 { return 0.5 * x * (1 + math.Erf(x/math.Sqrt2)) }

func geluTanh(x float64) float64 {
	return 0.5 * x * (1 + math.Tanh(math.Sqrt(2/math.Pi)*(x+0.044715*x*x*x)))
}

// biased builds f(x + bias), the bias being optional and broadcast.
func biased(f func(float64) float64) builder {
	sum := binaryKernel(pair(loopsOf(func(a, b float32) float32 { return float32(f(float64(a + b))) })), pair(loopsOf(func(a, b float64) float64 { return f(a + b) })))
	return func(n *node) (kernel, error) {
		alone, err := floats(f)(n)
		if err != nil || n.In(1) != "" {
			return sum, err
		}
		return alone, nil
	}
}

func buildGelu(n *node) (kernel, error) {
	switch a := n.Str("approximate", "none"); a {
	case "none":
		return floats(geluErf)(n)
	case "tanh":
		return floats(geluTanh)(n)
	default:
		return nil, fmt.Errorf("approximate %q is not known", a)
	}
}

func shrinkOn[T number](lambd, bias float64) unaryLoop {
	return on(each(func(v T) T {
		x := float64(v)
		switch {
		case x < -lambd:
			return T(x + bias)
		case x > lambd:
			return T(x - bias)
		}
		return 0
	}))
}

func buildShrink(n *node) (kernel, error) {
	l, b := float64(n.Float("lambd", 0.5)), float64(n.Float("bias", 0))
	return unaryKernel(shrinkOn[float32](l, b), shrinkOn[float64](l, b), shrinkOn[int8](l, b), shrinkOn[int16](l, b), shrinkOn[int32](l, b),
		shrinkOn[int64](l, b), shrinkOn[uint8](l, b), shrinkOn[uint16](l, b), shrinkOn[uint32](l, b), shrinkOn[uint64](l, b)), nil
}

func clipInto[T number](dst, src []T, lo, hi *tensor.Tensor) {
	var l, h T
	if lo != nil {
		l = data[T](lo)[0]
	}
	if hi != nil {
		h = data[T](hi)[0]
	}
	for i, v := range src {
		if lo != nil && v < l {
			v = l
		}
		// The upper bound wins where the bounds cross, as in min(max(x, lo), hi).
		if hi != nil && v > h {
			v = h
		}
		dst[i] = v
	}
}

func clipped[T number](c *call, x, lo, hi *tensor.Tensor) error {
	clipInto(data[T](c.make(0, x.DType(), x.Shape()...)), data[T](x), lo, hi)
	return nil
}

func clip(c *call) error { return clipBetween(c, c.arg(1), c.arg(2)) }

func clipBetween(c *call, lo, hi *tensor.Tensor) error {
	x := c.arg(0)
	for _, b := range []*tensor.Tensor{lo, hi} {
		if b != nil && (b.DType() != x.DType() || b.Len() != 1) {
			return fmt.Errorf("bound %v is not a scalar of %v", b, x.DType())
		}
	}
	ops, err := numbersOf(x)
	if err != nil {
		return err
	}
	return ops.clip(c, x, lo, hi)
}

func buildClipAttr(n *node) (kernel, error) {
	lo := tensor.Scalar(n.Float("min", -math.MaxFloat32))
	hi := tensor.Scalar(n.Float("max", math.MaxFloat32))
	lo64, hi64 := tensor.Scalar(float64(lo.Float32s()[0])), tensor.Scalar(float64(hi.Float32s()[0]))
	return byFloat(func(c *call) error { return clipBetween(c, lo, hi) }, func(c *call) error { return clipBetween(c, lo64, hi64) }), nil
}
