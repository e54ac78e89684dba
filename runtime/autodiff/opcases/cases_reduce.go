package opcases

import "github.com/onnxrl/onnxrl/runtime/onnx"

func reduceCases() []Case {
	var cases []Case
	keep := onnx.AttrInt("keepdims", 0)
	noop := onnx.AttrInt("noop_with_empty_axes", 1)
	add := func(name string, gen func(shape ...int) Arg) {
		cases = append(cases,
			op(name, "all", gen(2, 3)),
			op(name, "all, dropped", gen(2, 3)).attr(keep),
			op(name, "axis 0", gen(3, 4), ints(0)),
			op(name, "computed axes", gen(3, 2, 4), ints(1, -1).Fixed()),
			op(name, "computed axis dropped", gen(3, 4), ints(-1).Fixed()).attr(keep),
			op(name, "last axis dropped", gen(2, 3, 4), ints(-1)).attr(keep),
			op(name, "middle axis", gen(2, 3, 4), ints(1)),
			op(name, "two axes dropped", gen(2, 3, 4), ints(2, 0)).attr(keep),
			op(name, "extent 1", gen(2, 1, 3), ints(1)).attr(keep),
			op(name, "broadcast after", gen(2, 3), Any(2, 3)).graph(func(b *onnx.Builder, in []onnx.Value) []onnx.Value {
				return []onnx.Value{b.Op("Mul", []onnx.Value{in[1], b.Op(name, []onnx.Value{in[0], b.Ints(1)})})}
			}),
		)
		// From opset 18 on all of them take the axes as an input.
		if name == "ReduceSum" {
			cases = append(cases, op(name, "opset 13", gen(2, 3, 4), ints(1)).opset(13))
		} else {
			cases = append(cases, op(name, "opset 13", gen(2, 3, 4)).attr(onnx.AttrInts("axes", 1)).opset(13))
		}
	}
	add("ReduceSum", Any)
	add("ReduceMean", Any)
	add("ReduceSumSquare", Any)
	add("ReduceL1", nonZero)
	add("ReduceL2", nonZero)
	add("ReduceLogSum", positive)
	add("ReduceLogSumExp", Any)
	add("ReduceMax", Distinct)
	add("ReduceMin", Distinct)
	add("ReduceProd", nonZero)
	return append(cases,
		op("ReduceSum", "no axes", Any(2, 3)).attr(noop),
		op("ReduceL1", "no axes", Any(2, 3)).attr(noop),
		op("ReduceL2", "no axes", Any(2, 3)).attr(noop),
		op("ReduceSumSquare", "no axes", Any(2, 3)).attr(noop),
		op("ReduceSumSquare", "empty axes", Any(2, 3), ints()).attr(noop),
		op("ReduceLogSum", "no axes", Between(1, 2, 2, 3)).attr(noop),
		op("ReduceSum", "empty axes", Any(2, 3), ints()).attr(noop),
		op("ReduceMean", "no axes", Any(2, 3)).attr(noop),
		op("ReduceMax", "no axes", Any(2, 3)).attr(noop),
		op("ReduceProd", "no axes", Any(2, 3)).attr(noop),
		op("ReduceMax", "ties", Values([]int{2, 3}, 1, 2, 2, 3, 3, 3), ints(1)).cot(6, 6).want([]float64{0, 3, 3, 2, 2, 2}),
		op("ReduceMin", "ties", Values([]int{2, 3}, 1, 1, 2, 3, 3, 3), ints(1)).cot(6, 6).want([]float64{3, 3, 0, 2, 2, 2}),
		op("ReduceL1", "at zero", Values([]int{3}, -1, 0, 2)).want([]float64{-1, 0, 1}),
		op("ReduceL2", "at zero", Values([]int{2, 2}, 0, 0, 3, 4), ints(1)).want([]float64{0, 0, 0.6, 0.8}),
		op("ReduceProd", "one zero", Values([]int{3}, 2, 0, 3)).want([]float64{0, 6, 0}),
		op("ReduceProd", "two zeros", Values([]int{3}, 2, 0, 0)).want([]float64{0, 0, 0}),
		op("ReduceProd", "zeros by row", Values([]int{3, 2}, 2, 3, 0, 5, 0, 0), ints(1)).want([]float64{3, 2, 5, 0, 0, 0}),
		op("ReduceLogSumExp", "large", Values([]int{2}, 1000, 900)).want([]float64{1, 0}),

		op("LpNormalization", "p 2", nonZero(3, 4)),
		op("LpNormalization", "p 2 axis 1", nonZero(2, 3, 4)).attr(onnx.AttrInt("axis", 1)),
		op("LpNormalization", "p 1", nonZero(3, 4)).attr(onnx.AttrInt("p", 1)),
		op("LpNormalization", "p 1 axis 0", nonZero(3, 4)).attr(onnx.AttrInt("p", 1), onnx.AttrInt("axis", 0)),
		op("LpNormalization", "zero vector", Values([]int{2, 2}, 0, 0, 3, 4)).cot(1, 1, 1, 0).want([]float64{0, 0, 0.128, -0.096}),

		op("CumSum", "vector", Any(5), Int(0)),
		op("CumSum", "reverse", Any(2, 4), Int(1)).attr(onnx.AttrInt("reverse", 1)),
		op("CumSum", "exclusive", Any(2, 4), Int(-1)).attr(onnx.AttrInt("exclusive", 1)),
		op("CumSum", "both", Any(3, 2, 2), Int(0)).attr(onnx.AttrInt("exclusive", 1), onnx.AttrInt("reverse", 1)),
		op("CumProd", "vector", Any(5), Int(0)).opset(26),
		op("CumProd", "reverse", Any(2, 4), Int(1)).attr(onnx.AttrInt("reverse", 1)).opset(26),
		op("CumProd", "exclusive", Any(2, 7), Int(-1)).attr(onnx.AttrInt("exclusive", 1)).opset(26),
		op("CumProd", "both", Any(3, 2, 2), Int(0)).attr(onnx.AttrInt("exclusive", 1), onnx.AttrInt("reverse", 1)).opset(26),
		op("CumProd", "zeros", Values([]int{4}, 2, 0, 3, 5), Int(0)).opset(26).want([]float64{1, 2 + 6 + 30, 0, 0}),
	)
}
