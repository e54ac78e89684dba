package opcases

import (
	"github.com/onnxrl/onnxrl/runtime/onnx"
)

func activationCases() []Case {
	var cases []Case
	add := func(c Case, lo, hi float64, kinks ...float64) {
		for _, s := range []struct {
			name  string
			shape []int
		}{{"scalar", nil}, {"vector", []int{9}}, {"cube", []int{2, 3, 4}}} {
			k := c
			k.Args = []Arg{away(lo, hi, kinks, s.shape...)}
			if k.Name += s.name; c.Name != "" {
				k.Name = c.Name + " " + s.name
			}
			cases = append(cases, k)
		}
	}
	alpha := func(v float32) *onnx.Attribute { return onnx.AttrFloat("alpha", v) }
	add(op("Relu", ""), -2, 2, 0)
	add(op("LeakyRelu", ""), -2, 2, 0)
	add(op("LeakyRelu", "alpha").attr(alpha(0.3)), -2, 2, 0)
	add(op("LeakyRelu", "negative alpha").attr(alpha(-0.3)), -2, 2, 0)
	add(op("ThresholdedRelu", ""), -2, 2, 1)
	add(op("ThresholdedRelu", "alpha").attr(alpha(0.5)), -2, 2, 0.5)
	// ONNX Runtime computes Shrink of float64 in float32.
	add(op("Shrink", "").single(), -2, 2, -0.5, 0.5)
	add(op("Shrink", "hard").single().attr(onnx.AttrFloat("lambd", 1)), -2, 2, -1, 1)
	add(op("Shrink", "soft").single().attr(onnx.AttrFloat("lambd", 0.7), onnx.AttrFloat("bias", 0.7)), -2, 2, -0.7, 0.7)
	add(op("Elu", ""), -2, 2, 0)
	add(op("Elu", "alpha").attr(alpha(0.6)), -2, 2, 0)
	add(op("Selu", ""), -2, 2, 0)
	add(op("Selu", "own").attr(alpha(1.2), onnx.AttrFloat("gamma", 0.8)), -2, 2, 0)
	add(op("Celu", ""), -2, 2, 0)
	add(op("Celu", "alpha").attr(alpha(0.6)), -2, 2, 0)
	add(op("Sigmoid", ""), -4, 4)
	add(op("HardSigmoid", ""), -4, 4, -2.5, 2.5)
	add(op("HardSigmoid", "own").attr(alpha(0.5), onnx.AttrFloat("beta", 0.4)), -3, 3, -0.8, 1.2)
	add(op("HardSwish", ""), -5, 5, -3, 3)
	add(op("Tanh", ""), -3, 3)
	add(op("Softplus", ""), -4, 4)
	add(op("Softsign", ""), -3, 3)
	add(op("Mish", ""), -3, 3)
	add(op("Swish", "").opset(24), -3, 3)
	add(op("Swish", "alpha").attr(alpha(1.7)).opset(24), -3, 3)
	add(op("Gelu", "").opset(20), -3, 3)
	add(op("Gelu", "tanh").attr(onnx.AttrStr("approximate", "tanh")).opset(20), -3, 3)
	axis := func(a int) *onnx.Attribute { return onnx.AttrInt("axis", a) }
	return append(cases,
		op("Relu", "at zero", Values([]int{3}, -1, 0, 1)).want([]float64{0, 0, 1}),
		op("LeakyRelu", "at zero", Values([]int{3}, -1, 0, 1)).attr(alpha(0.25)).want([]float64{0.25, 0.25, 1}),
		op("ThresholdedRelu", "at the threshold", Values([]int{3}, 0.5, 1, 1.5)).want([]float64{0, 0, 1}),
		op("Shrink", "at the bounds", Values([]int{3}, -0.5, 0.5, 0.75)).want([]float64{0, 0, 1}),
		op("Elu", "at zero", Values([]int{2}, 0, 1)).attr(alpha(0.5)).want([]float64{0.5, 1}),
		op("Selu", "at zero", Values([]int{2}, 0, 1)).attr(alpha(2), onnx.AttrFloat("gamma", 0.5)).want([]float64{1, 0.5}),
		op("Celu", "at zero", Values([]int{2}, 0, 1)).attr(alpha(2)).want([]float64{1, 1}),
		op("HardSigmoid", "at the bounds", Values([]int{3}, -2.5, 0, 2.5)).want([]float64{0, 0.2, 0}),
		op("HardSwish", "at the bounds", Values([]int{3}, -3, 0, 3)).want([]float64{0, 0.5, 1}),
		op("Softplus", "far out", Values([]int{4}, -200, -30, 30, 200)).want([]float64{0, 9.357622968840175e-14, 1, 1}),
		op("Sigmoid", "far out", Values([]int{3}, -200, 0, 200)).want([]float64{0, 0.25, 0}),
		op("Tanh", "far out", Values([]int{3}, -200, 0, 200)).want([]float64{0, 1, 0}),
		op("Mish", "far out", Values([]int{2}, -200, 200)).want([]float64{0, 1}),
		op("PRelu", "slope per channel", away(-2, 2, []float64{0}, 2, 3, 4), Any(3, 1)),
		op("PRelu", "one slope", away(-2, 2, []float64{0}, 2, 3, 4), Any(1)),
		op("PRelu", "slope per element", away(-2, 2, []float64{0}, 2, 3), Any(2, 3)),
		op("PRelu", "constant slope", away(-2, 2, []float64{0}, 2, 3), Any(3).Const()),
		op("PRelu", "at zero", Values([]int{2}, 0, 1), Values([]int{2}, 0.5, 0.5)).want([]float64{0.5, 1}, []float64{0, 0}),
		op("Softmax", "matrix", Any(3, 5)),
		op("Softmax", "axis 0", Any(3, 5)).attr(axis(0)),
		op("Softmax", "middle axis", Any(2, 3, 4)).attr(axis(1)),
		op("Softmax", "vector", Any(6)),
		op("Softmax", "opset 13", Any(2, 3, 4)).attr(axis(-2)).opset(13),
		op("Softmax", "large logits", Values([]int{3}, 1000, 0, -1000)).cot(1, 2, 3).want([]float64{0, 0, 0}),
		op("LogSoftmax", "matrix", Any(3, 5)),
		op("LogSoftmax", "axis 0", Any(3, 5)).attr(axis(0)),
		op("LogSoftmax", "middle axis", Any(2, 3, 4)).attr(axis(1)),
		op("LogSoftmax", "opset 13", Any(2, 3, 4)).attr(axis(-2)).opset(13),
		op("LogSoftmax", "large logits", Values([]int{3}, 1000, 0, -1000)).cot(1, 2, 3).want([]float64{-5, 2, 3}),
	)
}
