package opcases

import "github.com/onnxrl/onnxrl/runtime/onnx"

func convCases() []Case {
	strides := func(v ...int) *onnx.Attribute { return onnx.AttrInts("strides", v...) }
	pads := func(v ...int) *onnx.Attribute { return onnx.AttrInts("pads", v...) }
	dilations := func(v ...int) *onnx.Attribute { return onnx.AttrInts("dilations", v...) }
	extra := func(v ...int) *onnx.Attribute { return onnx.AttrInts("output_padding", v...) }
	shape := func(v ...int) *onnx.Attribute { return onnx.AttrInts("output_shape", v...) }
	group := func(v int) *onnx.Attribute { return onnx.AttrInt("group", v) }
	auto := func(v string) *onnx.Attribute { return onnx.AttrStr("auto_pad", v) }
	return []Case{
		op("Conv", "1d", Any(2, 3, 7), Any(4, 3, 3), Any(4)),
		op("Conv", "1d padded", Any(2, 3, 6), Any(2, 3, 3), Any(2)).attr(pads(1, 1)),
		op("Conv", "1d causal", Any(2, 2, 6), Any(2, 2, 2)).attr(pads(4, 0), dilations(4)),
		op("Conv", "1d dilated groups", Any(1, 4, 9), Any(6, 2, 3), Any(6)).attr(pads(2, 1), dilations(2), group(2)),
		op("Conv", "1d stride", Any(2, 2, 8), Any(3, 2, 3), Any(3)).attr(strides(3), pads(1, 0)),
		op("Conv", "1d point", Any(3, 4, 5), Any(2, 4, 1), Any(2)),
		op("Conv", "2d", Any(2, 2, 4, 5), Any(3, 2, 3, 2), Any(3)),
		op("Conv", "2d no bias, padded unevenly", Any(1, 2, 4, 4), Any(2, 2, 3, 3)).attr(pads(1, 0, 2, 1)),
		op("Conv", "2d depthwise", Any(2, 3, 4, 4), Any(3, 1, 3, 3), Any(3)).attr(pads(1, 1, 1, 1), group(3)),
		op("Conv", "2d stride groups", Any(1, 4, 6, 5), Any(4, 2, 3, 3), Any(4)).attr(pads(1, 1, 1, 1), strides(2, 3), group(2)),
		op("Conv", "2d stride dilated", Any(1, 1, 7, 8), Any(2, 1, 2, 3)).attr(strides(2, 1), dilations(3, 2)),
		op("Conv", "2d padded beyond the kernel", Any(1, 1, 3, 3), Any(1, 1, 2, 2)).attr(pads(2, 3, 2, 3)),
		op("Conv", "2d same upper", Any(1, 2, 5, 6), Any(2, 2, 2, 3), Any(2)).attr(auto("SAME_UPPER"), strides(2, 2)),
		op("Conv", "2d same lower", Any(1, 2, 5, 6), Any(2, 2, 2, 3), Any(2)).attr(auto("SAME_LOWER"), strides(1, 2)),
		op("Conv", "2d valid", Any(1, 2, 5, 6), Any(2, 2, 3, 3)).attr(auto("VALID"), strides(2, 2)),
		op("Conv", "2d unused tail", Any(1, 1, 6, 8), Any(1, 1, 2, 3)).attr(strides(4, 4)),
		op("Conv", "2d huge kernel", Any(1, 2, 17, 17), Any(2, 1, 17, 16), Any(2)).attr(pads(3, 2, 3, 2), group(2)),
		op("Conv", "2d huge kernel stride", Any(2, 1, 20, 20), Any(2, 1, 17, 16)).attr(strides(2, 3), pads(1, 1, 1, 1)),
		op("Conv", "2d small images", Any(16, 16, 2, 3), Any(16, 16, 3, 5), Any(16)).attr(pads(1, 2, 1, 2)),
		op("Conv", "2d small images beyond reach", Any(16, 16, 1, 7), Any(17, 16, 1, 5)).attr(pads(0, 2, 0, 2)),
		op("Conv", "2d small images stride dilated", Any(17, 16, 4, 3), Any(16, 16, 3, 2), Any(16)).attr(strides(2, 1), dilations(1, 2), pads(1, 2, 1, 1)),
		op("Conv", "3d", Any(1, 2, 3, 4, 3), Any(2, 2, 2, 2, 2), Any(2)).attr(pads(1, 0, 1, 0, 1, 0)),
		op("Conv", "3d stride groups", Any(1, 2, 4, 4, 3), Any(4, 1, 2, 3, 1)).attr(strides(2, 1, 2), group(2)),

		op("ConvTranspose", "1d", Any(2, 3, 4), Any(3, 2, 3), Any(2)),
		op("ConvTranspose", "1d stride", Any(2, 3, 4), Any(3, 2, 4), Any(2)).attr(strides(2), pads(1, 1)),
		op("ConvTranspose", "1d output padding", Any(1, 2, 3), Any(2, 2, 3)).attr(strides(3), extra(2), pads(1, 0)),
		op("ConvTranspose", "2d", Any(1, 2, 3, 2), Any(2, 3, 2, 3), Any(3)),
		op("ConvTranspose", "2d groups stride", Any(1, 4, 3, 3), Any(4, 2, 3, 3), Any(4)).attr(strides(2, 2), pads(1, 1, 1, 1), extra(1, 1), group(2)),
		op("ConvTranspose", "2d dilated", Any(1, 2, 3, 3), Any(2, 1, 2, 2)).attr(dilations(2, 3), pads(0, 1, 1, 0)),
		op("ConvTranspose", "2d output shape", Any(1, 1, 3, 3), Any(1, 2, 3, 3), Any(2)).attr(strides(3, 2), shape(10, 8)),
		op("ConvTranspose", "2d smaller output shape", Any(1, 1, 3, 3), Any(1, 2, 3, 3)).attr(strides(2, 2), shape(6, 5)),
		op("ConvTranspose", "2d same upper", Any(1, 1, 3, 3), Any(1, 2, 3, 3), Any(2)).attr(strides(2, 2), auto("SAME_UPPER")),
		op("ConvTranspose", "2d same lower", Any(1, 1, 3, 3), Any(1, 2, 2, 3)).attr(strides(1, 2), auto("SAME_LOWER")),
		op("ConvTranspose", "3d", Any(1, 2, 2, 2, 3), Any(2, 2, 2, 1, 2), Any(2)).attr(strides(1, 2, 1)),
	}
}

func poolCases() []Case {
	k := func(v ...int) *onnx.Attribute { return onnx.AttrInts("kernel_shape", v...) }
	strides := func(v ...int) *onnx.Attribute { return onnx.AttrInts("strides", v...) }
	pads := func(v ...int) *onnx.Attribute { return onnx.AttrInts("pads", v...) }
	dilations := func(v ...int) *onnx.Attribute { return onnx.AttrInts("dilations", v...) }
	auto := func(v string) *onnx.Attribute { return onnx.AttrStr("auto_pad", v) }
	ceil, counted := onnx.AttrInt("ceil_mode", 1), onnx.AttrInt("count_include_pad", 1)
	return []Case{
		op("MaxPool", "1d", Distinct(2, 2, 7)).attr(k(3)),
		op("MaxPool", "1d stride padded", Distinct(1, 3, 8)).attr(k(3), strides(2), pads(1, 1)),
		op("MaxPool", "2d apart", Distinct(2, 2, 4, 6)).attr(k(2, 2), strides(2, 2)),
		op("MaxPool", "2d apart, tail", Distinct(1, 2, 5, 7)).attr(k(2, 2), strides(2, 2)),
		op("MaxPool", "2d overlapping", Distinct(1, 2, 5, 5)).attr(k(3, 3), pads(1, 1, 1, 1)),
		op("MaxPool", "2d dilated", Distinct(1, 1, 6, 6)).attr(k(2, 3), dilations(2, 2)),
		op("MaxPool", "2d ceil", Distinct(1, 1, 5, 6)).attr(k(2, 2), strides(2, 3), ceil),
		op("MaxPool", "2d columns first", Distinct(2, 2, 4, 5)).attr(k(2, 2), onnx.AttrInt("storage_order", 1)),
		op("MaxPool", "2d same", Distinct(1, 2, 5, 4)).attr(k(2, 3), strides(2, 2), auto("SAME_UPPER")),
		op("MaxPool", "3d", Distinct(1, 1, 4, 4, 3)).attr(k(2, 2, 2), strides(2, 1, 1)),
		op("MaxPool", "with indices", Distinct(1, 2, 4, 4)).attr(k(2, 2), strides(2, 2)).outs(2),
		op("MaxPool", "first of ties", Values([]int{1, 1, 4}, 1, 1, 1, 0)).attr(k(2)).want([]float64{1, 1, 1, 0}),

		op("AveragePool", "1d", Any(2, 2, 7)).attr(k(3)),
		op("AveragePool", "2d", Any(2, 2, 4, 6)).attr(k(2, 2), strides(2, 2)),
		op("AveragePool", "2d padded", Any(1, 2, 5, 5)).attr(k(3, 3), pads(1, 1, 1, 1)),
		op("AveragePool", "2d padded and counted", Any(1, 2, 5, 5)).attr(k(3, 3), pads(1, 0, 1, 2), strides(2, 1), counted),
		op("AveragePool", "2d ceil", Any(1, 1, 5, 6)).attr(k(2, 3), strides(2, 2), ceil),
		op("AveragePool", "2d ceil counted", Any(1, 1, 5, 7)).attr(k(3, 3), strides(2, 2), pads(1, 1, 1, 1), ceil, counted),
		op("AveragePool", "beyond the padding", Any(1, 1, 6)).attr(k(3), strides(2), pads(1, 1), ceil, counted).
			want([]float64{1. / 3, 2. / 3, 1. / 3, 2. / 3, 1. / 3, 1./3 + 1./2}),
		op("AveragePool", "2d dilated", Any(1, 1, 6, 6)).attr(k(2, 3), dilations(2, 2)).opset(19),
		op("AveragePool", "2d same lower", Any(1, 2, 5, 4)).attr(k(2, 3), strides(2, 2), auto("SAME_LOWER")),
		op("AveragePool", "3d", Any(1, 2, 3, 4, 3)).attr(k(2, 2, 3), pads(0, 1, 0, 1, 0, 0)),

		op("LpPool", "1d", nonZero(2, 2, 6)).attr(k(2)),
		op("LpPool", "2d p 2", nonZero(1, 2, 4, 5)).attr(k(2, 3), strides(2, 1)),
		op("LpPool", "2d p 1 padded", nonZero(1, 2, 4, 4)).attr(k(3, 3), pads(1, 1, 0, 1), onnx.AttrInt("p", 1)),
		op("LpPool", "2d p 3", nonZero(1, 1, 5, 4)).attr(k(2, 2), strides(3, 2), onnx.AttrInt("p", 3)),
		op("LpPool", "2d dilated", nonZero(1, 1, 5, 5)).attr(k(2, 2), dilations(2, 3)),
		op("LpPool", "zeros", Values([]int{1, 1, 3}, 0, 0, 2)).attr(k(2)).want([]float64{0, 0, 1}),

		op("GlobalAveragePool", "1d", Any(2, 3, 4)),
		op("GlobalAveragePool", "2d", Any(2, 3, 2, 3)),
		op("GlobalAveragePool", "3d", Any(1, 2, 2, 3, 2)),
		op("GlobalMaxPool", "1d", Distinct(2, 3, 4)),
		op("GlobalMaxPool", "2d", Distinct(2, 2, 2, 3)),
		op("GlobalMaxPool", "3d", Distinct(1, 2, 2, 2, 2)),
		op("GlobalMaxPool", "ties shared", Values([]int{1, 1, 4}, 3, 1, 3, 2)).want([]float64{0.5, 0, 0.5, 0}),
		op("GlobalLpPool", "p 2", nonZero(2, 3, 4)),
		op("GlobalLpPool", "p 1", nonZero(2, 2, 2, 3)).attr(onnx.AttrInt("p", 1)),
		op("GlobalLpPool", "p 3", nonZero(2, 2, 2, 2)).attr(onnx.AttrInt("p", 3)),
		op("GlobalLpPool", "zeros", Values([]int{1, 2, 2}, 0, 0, 3, 4)).want([]float64{0, 0, 0.6, 0.8}),

		op("MaxUnpool", "1d", Any(1, 2, 3), intsOf([]int{1, 2, 3}, 0, 3, 4, 6, 9, 11)).attr(k(2), strides(2)),
		op("MaxUnpool", "2d", Any(1, 1, 2, 2), intsOf([]int{1, 1, 2, 2}, 5, 7, 13, 15)).attr(k(2, 2), strides(2, 2)),
		op("MaxUnpool", "2d two channels", Any(1, 2, 1, 2), intsOf([]int{1, 2, 1, 2}, 0, 3, 12, 10)).attr(k(2, 2), strides(2, 2)),
	}
}
