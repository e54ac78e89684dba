package opcases

import "github.com/onnxrl/onnxrl/runtime/onnx"

func lossCases() []Case {
	reduce := func(v string) *onnx.Attribute { return onnx.AttrStr("reduction", v) }
	ignore := func(v int) *onnx.Attribute { return onnx.AttrInt("ignore_index", v) }
	labels := func(shape []int, v ...int) Arg { return intsOf(shape, v...) }
	return []Case{
		op("SoftmaxCrossEntropyLoss", "mean", Any(4, 3), index(0, 3, 4)),
		op("SoftmaxCrossEntropyLoss", "sum", Any(4, 3), index(0, 3, 4)).attr(reduce("sum")),
		op("SoftmaxCrossEntropyLoss", "none", Any(4, 3), index(0, 3, 4)).attr(reduce("none")),
		op("SoftmaxCrossEntropyLoss", "weights", Any(4, 3), index(0, 3, 4), positive(3)),
		op("SoftmaxCrossEntropyLoss", "weights none", Any(4, 3), index(0, 3, 4), positive(3).Const()).attr(reduce("none")),
		op("SoftmaxCrossEntropyLoss", "ignored", Any(4, 3), labels([]int{4}, 0, -1, 2, -1)).attr(ignore(-1)),
		op("SoftmaxCrossEntropyLoss", "ignored weights", Any(4, 3), labels([]int{4}, 0, 1, 2, 1), positive(3).Const()).attr(ignore(1)),
		op("SoftmaxCrossEntropyLoss", "log probabilities", Any(4, 3), index(0, 3, 4)).outs(2),
		op("SoftmaxCrossEntropyLoss", "log probabilities alone", Any(4, 3), index(0, 3, 4)).outs(2).only(1),
		op("SoftmaxCrossEntropyLoss", "planes", Any(2, 3, 2, 2), index(0, 3, 2, 2, 2), positive(3).Const()).outs(2),
		op("SoftmaxCrossEntropyLoss", "planes none", Any(2, 3, 4), index(0, 3, 2, 4)).attr(reduce("none"), ignore(1)),

		op("NegativeLogLikelihoodLoss", "mean", Any(4, 3), index(0, 3, 4)),
		op("NegativeLogLikelihoodLoss", "sum weights", Any(4, 3), index(0, 3, 4), positive(3)).attr(reduce("sum")),
		op("NegativeLogLikelihoodLoss", "mean weights ignored", Any(4, 3), labels([]int{4}, 0, 1, 2, 1), positive(3).Const()).attr(ignore(2)),
		op("NegativeLogLikelihoodLoss", "none", Any(2, 3, 2, 2), index(0, 3, 2, 2, 2)).attr(reduce("none")),
		op("NegativeLogLikelihoodLoss", "ignored outside", Any(3, 2), labels([]int{3}, 0, 1, -100)).attr(ignore(-100)),
	}
}

func fourierCases() []Case {
	inverse, onesided := onnx.AttrInt("inverse", 1), onnx.AttrInt("onesided", 1)
	axis := func(v int) *onnx.Attribute { return onnx.AttrInt("axis", v) }
	return []Case{
		op("DFT", "real", Any(2, 5, 1)),
		op("DFT", "real, onesided", Any(2, 6, 1)).attr(onesided),
		op("DFT", "complex", Any(2, 5, 2)),
		op("DFT", "complex inverse", Any(2, 4, 2)).attr(inverse),
		op("DFT", "first axis", Any(3, 4, 2)).attr(axis(0)),
		op("DFT", "longer", Any(2, 4, 1), Int(6)),
		op("DFT", "shorter, onesided", Any(2, 6, 1), Int(5)).attr(onesided),
		op("DFT", "axis as input", Any(2, 3, 4, 1), none, Int(1)).opset(20),
		op("DFT", "default axis", Any(2, 3, 4, 2)).attr(inverse).opset(20),
		op("DFT", "long", Any(1, 1100, 1)).attr(onesided),
		op("DFT", "long complex", Any(1, 800, 2)).loose(10),
		op("DFT", "long inverse, longer", Any(1, 800, 2), Int(820)).attr(inverse).loose(10),
		op("STFT", "rectangular", Any(2, 10, 1), Int(3), none, Int(4)),
		op("STFT", "window", Any(1, 12, 1), Int(4), Any(6)),
		op("STFT", "window, both sides", Any(1, 9, 1), Int(2), Any(4), Int(4)).attr(onnx.AttrInt("onesided", 0)),
	}
}
