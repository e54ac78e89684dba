package opcases

import (
	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

func indexingCases() []Case {
	axis := func(a int) *onnx.Attribute { return onnx.AttrInt("axis", a) }
	red := func(r string) *onnx.Attribute { return onnx.AttrStr("reduction", r) }
	batch := onnx.AttrInt("batch_dims", 1)
	cases := []Case{
		op("Gather", "rows", Any(5, 3), index(0, 5, 4)),
		op("Gather", "negative", Any(5, 3), index(-5, 5, 6)),
		op("Gather", "matrix of indices", Any(5, 2), index(0, 5, 2, 3)),
		op("Gather", "last axis", Any(2, 5), index(-5, 5, 3)).attr(axis(-1)),
		op("Gather", "middle axis", Any(2, 4, 3), index(0, 4, 2, 2)).attr(axis(1)),
		op("Gather", "scalar", Any(4, 3), Int(2)),
		op("Gather", "negative scalar", Any(4, 3), Int(-1)).attr(axis(1)),
		op("Gather", "dynamic scalar", Any(4, 3), index(0, 4)),
		op("Gather", "one constant", Any(4, 3), ints(1)).attr(axis(1)),
		op("Gather", "int32", Any(5, 3), Tensor(tensor.Of([]int32{1, 1, -1}, 3))),
		op("Gather", "vector", Any(5), index(0, 5, 7)),

		op("GatherElements", "actions", Any(4, 3), index(-3, 3, 4, 1)).attr(axis(1)),
		op("GatherElements", "actions in time", Any(2, 3, 4), index(0, 4, 2, 3, 1)).attr(axis(-1)),
		op("GatherElements", "axis 0", Any(4, 3), index(0, 4, 2, 3)),
		op("GatherElements", "repeated", Any(2, 3), index(-3, 3, 2, 5)).attr(axis(1)),
		op("GatherElements", "part", Any(4, 4), index(0, 4, 2, 3)).attr(axis(1)),
		op("GatherElements", "wide", Any(2, 80), index(0, 80, 2, 1)).attr(axis(1)),

		op("GatherND", "elements", Any(3, 4), intsOf([]int{3, 2}, 0, 1, 2, 3, 0, 1)),
		op("GatherND", "rows", Any(3, 4), intsOf([]int{2, 2, 1}, 0, 2, 2, -1)),
		op("GatherND", "batch", Any(2, 3, 4), index(0, 3, 2, 1)).attr(batch),
		op("GatherND", "batch of many", Any(2, 3, 2), index(-2, 2, 2, 3, 2)).attr(batch),
		op("GatherND", "two batch axes", Any(2, 2, 3), index(0, 3, 2, 2, 1)).attr(onnx.AttrInt("batch_dims", 2)),

		op("TopK", "last axis", Distinct(3, 5), ints(2)).outs(2),
		op("TopK", "smallest", Distinct(3, 5), ints(3)).attr(onnx.AttrInt("largest", 0)).outs(2),
		op("TopK", "axis 0", Distinct(5, 2), ints(2)).attr(axis(0)).outs(2),
		op("TopK", "middle axis", Distinct(2, 4, 3), ints(2)).attr(axis(1)).outs(2),
		op("TopK", "all", Distinct(4), ints(4)).outs(2),

		op("Compress", "rows", Any(4, 3), bools([]int{4}, true, false, true, true)).attr(axis(0)),
		op("Compress", "columns", Any(2, 3), bools([]int{3}, true, false, true)).attr(axis(-1)),
		op("Compress", "short condition", Any(4, 2, 2), bools([]int{2}, false, true)).attr(axis(0)),
		op("Compress", "flat", Any(2, 3), bools([]int{5}, true, false, false, true, true)),
		op("Compress", "middle axis", Any(2, 3, 2), bools([]int{3}, false, true, true)).attr(axis(1)),

		op("ReverseSequence", "time first", Any(4, 3, 2), ints(4, 1, 3)),
		op("ReverseSequence", "batch first", Any(3, 4), ints(2, 4, 1)).attr(onnx.AttrInt("time_axis", 1), onnx.AttrInt("batch_axis", 0)),
		op("ReverseSequence", "whole", Any(3, 2), ints(3, 3)),

		op("TensorScatter", "linear", Any(2, 4, 3), Any(2, 2, 3), ints(0, 2)).opset(24),
		op("TensorScatter", "from the start", Any(2, 2, 4, 3), Any(2, 2, 2, 3)).opset(24),
		op("TensorScatter", "circular", Any(2, 4, 3), Any(2, 3, 3), ints(2, 3)).attr(onnx.AttrStr("mode", "circular")).opset(24),
		op("TensorScatter", "last axis", Any(2, 3, 4), Any(2, 3, 2), ints(1, 0)).attr(axis(-1)).opset(24),
	}
	// The places of the scatter cases differ from each other for the reduction none, and meet for
	// the others.
	apart, meet := intsOf([]int{2, 2}, 0, 3, 2, 1), intsOf([]int{2, 2}, 1, 1, -1, 3)
	apartND, meetND := intsOf([]int{3, 1}, 3, 0, 1), intsOf([]int{3, 1}, 1, 1, -1)
	return append(cases,
		op("ScatterElements", "none", Any(3, 4), apart, Any(2, 2)).attr(axis(1)),
		op("ScatterElements", "none axis 0", Any(4, 2), apart, Any(2, 2)),
		op("ScatterElements", "add", Any(3, 4), meet, Any(2, 2)).attr(axis(1), red("add")),
		op("ScatterElements", "mul", nonZero(3, 4), meet, nonZero(2, 2)).attr(axis(1), red("mul")),
		op("ScatterElements", "max", Distinct(3, 4), meet, distinctOther(2, 2)).attr(axis(1), red("max")),
		op("ScatterElements", "min", Distinct(3, 4), meet, distinctOther(2, 2)).attr(axis(1), red("min")),
		op("ScatterElements", "max tie", Values([]int{2}, 1, 1), ints(0, 0), Values([]int{2}, 1, 1)).attr(red("max")).cot(6, 6).
			want([]float64{2, 6}, []float64{2, 2}),
		op("ScatterElements", "mul by zero", Values([]int{2}, 2, 3), ints(0, 0), Values([]int{2}, 0, 5)).attr(red("mul")).
			want([]float64{0, 1}, []float64{10, 0}),
		op("ScatterElements", "opset 16", Any(3, 4), meet, Any(2, 2)).attr(axis(1), red("add")).opset(16),
		op("ScatterND", "none", Any(4, 3), apartND, Any(3, 3)),
		op("ScatterND", "elements", Any(3, 4), intsOf([]int{2, 2}, 0, 1, 2, -1), Any(2)),
		op("ScatterND", "add", Any(4, 3), meetND, Any(3, 3)).attr(red("add")),
		op("ScatterND", "mul", nonZero(4, 3), meetND, nonZero(3, 3)).attr(red("mul")),
		op("ScatterND", "max", Distinct(4, 3), meetND, distinctOther(3, 3)).attr(red("max")),
		op("ScatterND", "min", Distinct(4, 3), meetND, distinctOther(3, 3)).attr(red("min")),
		op("ScatterND", "opset 13", Any(4, 3), apartND, Any(3, 3)).opset(13),
	)
}
