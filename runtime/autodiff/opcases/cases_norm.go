package opcases

import "github.com/onnxrl/onnxrl/runtime/onnx"

func normCases() []Case {
	axis := func(v int) *onnx.Attribute { return onnx.AttrInt("axis", v) }
	eps := func(v float32) *onnx.Attribute { return onnx.AttrFloat("epsilon", v) }
	groups := func(v int) *onnx.Attribute { return onnx.AttrInt("num_groups", v) }
	train := onnx.AttrInt("training_mode", 1)
	return []Case{
		op("LayerNormalization", "last axis", Any(3, 5), Any(5), Any(5)),
		op("LayerNormalization", "no bias", Any(2, 3, 4), Any(4)).attr(eps(1e-2)),
		op("LayerNormalization", "two axes", Any(2, 3, 4), Any(3, 4), Any(3, 4)).attr(axis(1)),
		op("LayerNormalization", "all axes", Any(2, 4), Any(2, 4), Any(2, 4)).attr(axis(0)),
		op("LayerNormalization", "broadcast scale", Any(2, 3, 4), Any(1), Any(3, 1)).attr(axis(-2)),
		op("LayerNormalization", "statistics", Any(3, 4), Any(4), Any(4)).outs(3),
		op("LayerNormalization", "statistics alone", Any(3, 4), Any(4), Any(4)).outs(3).only(1, 2),

		op("RMSNormalization", "last axis", Any(3, 5), Any(5)).opset(23),
		op("RMSNormalization", "two axes", Any(2, 3, 4), Any(3, 4)).attr(axis(1)).opset(23),
		op("RMSNormalization", "broadcast scale", Any(2, 3, 4), Any(1)).attr(axis(-1), eps(0.1)).opset(23),

		op("InstanceNormalization", "1d", Any(2, 3, 5), Any(3), Any(3)),
		op("InstanceNormalization", "2d", Any(2, 2, 3, 2), Any(2), Any(2)).attr(eps(1e-2)),
		op("InstanceNormalization", "3d", Any(1, 2, 2, 2, 2), Any(2), Any(2)),

		op("GroupNormalization", "per group", Any(2, 4, 3), Any(2), Any(2)).attr(groups(2)),
		op("GroupNormalization", "per group 2d", Any(1, 6, 2, 2), Any(3), Any(3)).attr(groups(3), eps(1e-2)),
		op("GroupNormalization", "per channel", Any(2, 4, 3), Any(4), Any(4)).attr(groups(2)).opset(21).single(),
		op("GroupNormalization", "per channel 2d", Any(1, 6, 2, 2), Any(6), Any(6)).attr(groups(1)).opset(21).single(),

		op("MeanVarianceNormalization", "default axes", Any(2, 3, 2, 2)),
		op("MeanVarianceNormalization", "last axis", Any(2, 3, 4)).attr(onnx.AttrInts("axes", -1)),
		op("MeanVarianceNormalization", "all axes", Any(2, 3)).attr(onnx.AttrInts("axes", 0, 1)),
		op("MeanVarianceNormalization", "constant", Values([]int{1, 1, 1, 3}, 2, 2, 2)).want([]float64{0, 0, 0}),

		op("LRN", "odd", Any(2, 5, 2, 2)).attr(onnx.AttrInt("size", 3), onnx.AttrFloat("alpha", 0.5)),
		op("LRN", "five channels", Any(1, 6, 3, 1)).attr(onnx.AttrInt("size", 5), onnx.AttrFloat("alpha", 0.3), onnx.AttrFloat("beta", 0.5), onnx.AttrFloat("bias", 2)),
		op("LRN", "wide", Any(2, 3, 2, 2)).attr(onnx.AttrInt("size", 7), onnx.AttrFloat("alpha", 1)),

		op("BatchNormalization", "inference 2d", Any(2, 3, 2, 2), Any(3), Any(3), Any(3), positive(3)),
		op("BatchNormalization", "inference matrix", Any(4, 3), Any(3), Any(3), Any(3), positive(3)).attr(eps(0.1)),
		op("BatchNormalization", "inference, statistics fixed", Any(2, 2, 5), Any(2), Any(2), Any(2).Const(), positive(2).Const()),
		op("BatchNormalization", "training 2d", Any(3, 2, 2, 2), Any(2), Any(2), Any(2), positive(2)).attr(train).outs(3),
		op("BatchNormalization", "training matrix", Any(5, 3), Any(3), Any(3), Any(3), positive(3)).attr(train, onnx.AttrFloat("momentum", 0.7)).outs(3),
		op("BatchNormalization", "training, output alone", Any(2, 2, 4), Any(2), Any(2), Any(2).Fixed(), positive(2).Fixed()).attr(train, eps(1e-2)).outs(3).only(0),
	}
}
