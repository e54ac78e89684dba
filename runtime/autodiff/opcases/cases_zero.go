package opcases

import (
	"github.com/onnxrl/onnxrl/runtime/onnx"
)

// zeroCases cover operators without gradient: the model does not move and the gradient is zero.
// Those that the specification does not tag as differentiable have one case as well, so that their
// place in the list is tested.
func zeroCases() []Case {
	whole := []float64{-3, -2, -1, 0, 1, 2, 3}
	half := []float64{-2.5, -1.5, -0.5, 0.5, 1.5, 2.5}
	cases := []Case{
		op("Hardmax", "matrix", Distinct(3, 4)).zero(),
		op("Hardmax", "axis 0", Distinct(3, 4)).attr(onnx.AttrInt("axis", 0)).zero(),
		op("Hardmax", "cube", Distinct(2, 3, 2)).attr(onnx.AttrInt("axis", 1)).zero(),
		op("Hardmax", "vector", Distinct(6)).zero(),
	}
	unary := func(name string, kinks []float64) {
		cases = append(cases,
			op(name, "vector", away(-3, 3, kinks, 5)).zero(),
			op(name, "scalar", away(-3, 3, kinks)).zero(),
			op(name, "cube", away(-3, 3, kinks, 2, 2, 3)).zero(),
		)
	}
	unary("Floor", whole)
	unary("Ceil", whole)
	unary("Round", half)
	unary("Sign", []float64{0})
	unary("IsNaN", nil)
	unary("IsInf", nil)
	unary("NonZero", []float64{0})
	unary("Shape", nil)
	unary("Size", nil)
	for _, name := range []string{"ArgMax", "ArgMin"} {
		cases = append(cases,
			op(name, "vector", Distinct(5)).zero(),
			op(name, "last axis", Distinct(3, 4)).attr(onnx.AttrInt("axis", -1)).zero(),
			op(name, "cube", Distinct(2, 2, 3)).attr(onnx.AttrInt("axis", 1), onnx.AttrInt("keepdims", 0)).zero(),
		)
	}
	for _, name := range []string{"Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual"} {
		cases = append(cases,
			op(name, "same", Distinct(2, 3), distinctOther(2, 3)).zero(),
			op(name, "row", Distinct(4, 3), distinctOther(3)).zero(),
			op(name, "both", Distinct(2, 1, 4), distinctOther(3, 1)).zero(),
		)
	}
	return cases
}

// contribCases cover operators of com.microsoft. Only ONNX Runtime executes the originals;
// elsewhere what they expand to is checked against itself.
func contribCases() []Case {
	ms := func(name, variant string, args ...Arg) Case { return op(name, variant, args...).domain(onnx.DomainMS) }
	return []Case{
		ms("FusedMatMul", "plain", Any(2, 3), Any(3, 4)).attr(onnx.AttrFloat("alpha", 0.5)),
		ms("FusedMatMul", "transposed", Any(3, 2), Any(4, 3)).attr(onnx.AttrInt("transA", 1), onnx.AttrInt("transB", 1)),
		ms("FusedMatMul", "batched", Any(2, 5, 3), Any(2, 4, 3)).attr(onnx.AttrInt("transB", 1)),
		ms("Gelu", "vector", Any(5)),
		ms("Gelu", "matrix", Any(2, 3)),
		ms("Gelu", "cube", Any(2, 3, 2)),
		ms("BiasGelu", "vector", Any(5), Any(5)),
		ms("BiasGelu", "matrix", Any(2, 3), Any(3)),
		ms("BiasGelu", "cube", Any(2, 3, 2), Any(2)),
		ms("FastGelu", "plain", Any(2, 3)).loose(30),
		ms("FastGelu", "bias", Any(2, 3), Any(3)).loose(30),
		ms("FastGelu", "cube", Any(2, 3, 2), Any(2)).loose(30),
		ms("QuickGelu", "vector", Any(5)),
		ms("QuickGelu", "alpha", Any(2, 3)).attr(onnx.AttrFloat("alpha", 1)),
		ms("QuickGelu", "cube", Any(2, 3, 2)),
	}
}
