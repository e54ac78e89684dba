package opcases

import (
	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

func arithmeticCases() []Case {
	cast := func(b *onnx.Builder, v onnx.Value, d tensor.DType) onnx.Value {
		return b.Op("Cast", []onnx.Value{v}, onnx.AttrInt("to", int(d)))
	}
	return []Case{
		op("Identity", "vector", Any(5)),
		op("Identity", "scalar", Any()),
		op("Identity", "cube", Any(2, 3, 2)),

		op("Add", "same", Any(2, 3), Any(2, 3)),
		op("Add", "row", Any(2, 3), Any(3)),
		op("Add", "both", Any(2, 1, 4), Any(3, 1)),
		op("Add", "scalar", Any(), Any(2, 2)),
		op("Add", "many rows", Any(40, 5), Any(5)),
		op("Add", "opset 13", Any(2, 3), Any(3)).opset(13),
		op("Sub", "same", Any(2, 3), Any(2, 3)),
		op("Sub", "row", Any(2, 3), Any(1, 3)),
		op("Sub", "both", Any(2, 1, 4), Any(3, 1)),
		op("Mul", "same", Any(2, 3), Any(2, 3)),
		op("Mul", "row", Any(2, 3), Any(3)),
		op("Mul", "both", Any(2, 1, 4), Any(3, 1)),
		op("Mul", "constant", Any(2, 3), Any(3).Const()),
		op("Mul", "inner axis", Any(2, 3, 4), Any(3, 1)),
		op("Mul", "itself", Any(2, 3)).graph(func(b *onnx.Builder, in []onnx.Value) []onnx.Value {
			return []onnx.Value{b.Op("Mul", []onnx.Value{in[0], in[0]})}
		}),
		op("Div", "same", Any(2, 3), nonZero(2, 3)),
		op("Div", "row", Any(2, 3), nonZero(3)),
		op("Div", "both", Any(2, 1, 4), nonZero(3, 1)),

		op("Cast", "to half and back", Any(2, 3)).graph(func(b *onnx.Builder, in []onnx.Value) []onnx.Value {
			return []onnx.Value{cast(b, cast(b, in[0], tensor.Float16), tensor.Float32)}
		}).want([]float64{1, 1, 1, 1, 1, 1}),
		op("Cast", "to the same", Any(2, 3), none).attr(onnx.AttrInt("to", int(tensor.Float32))),
		op("Cast", "to double and back", Any(2, 3)).graph(func(b *onnx.Builder, in []onnx.Value) []onnx.Value {
			return []onnx.Value{cast(b, b.Op("Exp", []onnx.Value{cast(b, in[0], tensor.Float64)}), tensor.Float32)}
		}).single(),
		op("Cast", "to integers", away(-2, 2, []float64{-2, -1, 0, 1, 2}, 2, 3)).graph(func(b *onnx.Builder, in []onnx.Value) []onnx.Value {
			return []onnx.Value{cast(b, cast(b, in[0], tensor.Int64), tensor.Float32)}
		}).zero(),
		op("CastLike", "same", Any(2, 3), Any(1).Const()),
		op("CastLike", "scalar", Any(), Any(2, 2).Const()),
		op("CastLike", "cube", Any(2, 3, 2), Any().Const()),
		op("CastLike", "to double", Any(2, 3), Tensor(tensor.Scalar(1.0))).graph(func(b *onnx.Builder, in []onnx.Value) []onnx.Value {
			return []onnx.Value{cast(b, b.Op("CastLike", in), tensor.Float32)}
		}).single(),

		op("Mod", "same", away(-2, 2, nil, 2, 3), Between(3, 4, 2, 3)).attr(onnx.AttrInt("fmod", 1)),
		op("Mod", "row", Values([]int{2, 3}, 7.3, -7.4, 1.2, 9.9, -4.6, 3.3), Values([]int{3}, 2.1, 3.2, -2.5)).attr(onnx.AttrInt("fmod", 1)),
		op("Mod", "both", Values([]int{2, 1}, 5.3, -6.4), Values([]int{3}, 2, 3.1, -1.7)).attr(onnx.AttrInt("fmod", 1)),

		op("Pow", "square", Any(2, 3), float(2)),
		op("Pow", "cube", Any(2, 3), float(3)),
		op("Pow", "one", Any(2, 3), float(1)),
		op("Pow", "nought", Any(2, 3), float(0)),
		op("Pow", "root", positive(2, 3), float(0.5)),
		op("Pow", "reciprocal", nonZero(2, 3), float(-1)),
		op("Pow", "reciprocal root", positive(2, 3), float(-0.5)),
		op("Pow", "fraction", positive(2, 3), float(1.7)),
		op("Pow", "integer exponents", nonZero(2, 3), ints(2, 3, 4)),
		op("Pow", "exponent too", positive(2, 3), Any(2, 3)),
		op("Pow", "exponent row", positive(2, 3), Any(3)),
		op("Pow", "both", positive(2, 1, 4), Any(3, 1)),
		op("Pow", "constant base", float(2), Any(2, 3)),
		op("Pow", "negative base", Values([]int{3}, -1.5, -0.5, 2), Values([]int{3}, 2, 3, 2).Const()),
		op("Pow", "square at zero", Values([]int{3}, -1, 0, 1), float(2)).want([]float64{-2, 0, 2}),
		op("Pow", "zero to nought", Values([]int{2}, 0, 2), Values([]int{2}, 0, 0).Const()).want([]float64{0, 0}),
		op("Pow", "fraction at zero", Values([]int{2}, 0, 4), float(1.5)).want([]float64{0, 3}),
		op("Pow", "zero with exponents", Values([]int{3}, 0, 0, 0), Values([]int{3}, 2, 3, 1)).want([]float64{0, 0, 1}, []float64{0, 0, 0}),

		op("Sum", "one", Any(2, 3)),
		op("Sum", "three", Any(2, 3), Any(3), Any(2, 1)),
		op("Sum", "both", Any(2, 1, 4), Any(3, 1), Any()),
		op("Mean", "one", Any(2, 3)),
		op("Mean", "three", Any(2, 3), Any(3), Any(2, 1)),
		op("Mean", "both", Any(2, 1, 4), Any(3, 1), Any()),

		op("Max", "two", Distinct(2, 3), distinctOther(2, 3)),
		op("Max", "row", Distinct(4, 3), distinctOther(3)),
		op("Max", "one", Any(2, 3)),
		op("Max", "three", Values([]int{2, 2}, -1, 0.3, 2, 0.1), Values([]int{2}, 0.6, -0.4), Values([]int{2, 1}, -0.2, 1.1)),
		op("Max", "scalar", away(-1, 1, []float64{0.2}, 3, 2), float(0.2)),
		op("Max", "tie of two", Values([]int{2}, 1, 2), Values([]int{2}, 1, 3)).want([]float64{0.5, 0}, []float64{0.5, 1}),
		op("Max", "tie of three", Values([]int{1}, 1), Values([]int{1}, 1), Values([]int{1}, 1)).cot(6).want([]float64{2}, []float64{2}, []float64{2}),
		op("Min", "two", Distinct(2, 3), distinctOther(2, 3)),
		op("Min", "row", Distinct(4, 3), distinctOther(3)),
		op("Min", "both", Distinct(2, 1, 4), distinctOther(3, 1)),
		op("Min", "tie of two", Values([]int{2}, 1, 2), Values([]int{2}, 1, 3)).want([]float64{0.5, 1}, []float64{0.5, 0}),
		op("Min", "twin critics", Values([]int{3, 1}, 1, 2, 3), Values([]int{3, 1}, 2, 2, 1)).cot(1, 2, 3).want([]float64{1, 1, 0}, []float64{0, 1, 3}),

		op("Clip", "both bounds", away(-2, 2, []float64{-0.5, 0.8}, 3, 4), float(-0.5), float(0.8)),
		op("Clip", "low only", away(-2, 2, []float64{-0.5}, 3, 4), float(-0.5)),
		op("Clip", "high only", away(-2, 2, []float64{0.8}, 3, 4), none, float(0.8)),
		op("Clip", "no bounds", Any(3, 4)),
		op("Clip", "bounds differentiated", away(-2, 2, []float64{-0.5, 0.8}, 3, 4), Values(nil, -0.5), Values(nil, 0.8)),
		op("Clip", "at the bounds", Values([]int{5}, -2, -1, 0, 1, 2), float(-1), float(1)).want([]float64{0, 1, 1, 1, 0}),

		op("Where", "same", coins(2, 3), Any(2, 3), Any(2, 3)),
		op("Where", "broadcast condition", coins(3), Any(2, 3), Any(2, 1)),
		op("Where", "scalar branch", coins(2, 3), Any(2, 3), float(-1e9)).graph(func(b *onnx.Builder, in []onnx.Value) []onnx.Value {
			return []onnx.Value{b.Op("Softmax", []onnx.Value{b.Op("Where", in)})}
		}),
		op("Where", "both", coins(2, 1, 4), Any(3, 1), Any()),
		op("Where", "guarded logarithm", Values([]int{2}, 0, 2)).graph(func(b *onnx.Builder, in []onnx.Value) []onnx.Value {
			x, zero := in[0], b.Float(0)
			ok := b.Op("Greater", []onnx.Value{x, zero})
			safe := b.Op("Where", []onnx.Value{ok, x, b.Float(1)})
			return []onnx.Value{b.Op("Where", []onnx.Value{ok, b.Op("Log", []onnx.Value{safe}), zero})}
		}).want([]float64{0, 0.5}),
	}
}
