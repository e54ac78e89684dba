package opcases

import (
	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

func visionCases() []Case {
	block := func(v int) *onnx.Attribute { return onnx.AttrInt("blocksize", v) }
	mode := func(v string) *onnx.Attribute { return onnx.AttrStr("mode", v) }
	pad := func(v string) *onnx.Attribute { return onnx.AttrStr("padding_mode", v) }
	corners := onnx.AttrInt("align_corners", 1)
	// Sample points lie 0.1 from the middles and edges of elements of axes of up to 4 elements.
	inner := func(shape ...int) Arg { return away(-0.9, 0.9, gridKinks(), shape...) }
	outer := func(shape ...int) Arg { return away(-1.6, 1.6, gridKinks(), shape...) }
	rois := func(v ...float32) Arg { return Tensor(tensor.Of(v, len(v)/5, 5)) }
	pooled := func(v ...int) *onnx.Attribute { return onnx.AttrInts("pooled_shape", v...) }
	boxes := Values([]int{2, 4}, 0.6, 0.7, 3.9, 3.3, 1.2, 0.4, 4.3, 3.8)
	aligned := func(height, width, samples int) []*onnx.Attribute {
		return []*onnx.Attribute{onnx.AttrInt("output_height", height), onnx.AttrInt("output_width", width), onnx.AttrInt("sampling_ratio", samples)}
	}
	return []Case{
		op("DepthToSpace", "depth first", Any(2, 8, 2, 3)).attr(block(2)),
		op("DepthToSpace", "columns first", Any(1, 8, 3, 2)).attr(block(2), mode("CRD")),
		op("DepthToSpace", "block of three", Any(1, 9, 1, 2)).attr(block(3)),
		op("SpaceToDepth", "two", Any(2, 2, 4, 6)).attr(block(2)),
		op("SpaceToDepth", "three", Any(1, 1, 3, 6)).attr(block(3)),
		op("SpaceToDepth", "one", Any(1, 2, 2, 2)).attr(block(1)),

		op("Col2Im", "apart", Any(2, 4, 6), ints(4, 6), ints(2, 2)).attr(onnx.AttrInts("strides", 2, 2)),
		op("Col2Im", "overlapping", Any(1, 12, 9), ints(4, 5), ints(2, 3)),
		op("Col2Im", "padded, dilated", Any(1, 4, 25), ints(5, 5), ints(2, 2)).attr(onnx.AttrInts("pads", 1, 1, 1, 1), onnx.AttrInts("dilations", 2, 2)),
		op("Col2Im", "strided, tail", Any(1, 6, 4), ints(5, 6), ints(2, 3)).attr(onnx.AttrInts("strides", 2, 3)),

		op("GridSample", "bilinear", Any(2, 3, 4, 4), inner(2, 3, 2, 2)).attr(mode("bilinear")).opset(16),
		op("GridSample", "linear zeros", Any(1, 2, 4, 2), outer(1, 2, 3, 2)).attr(mode("linear")).opset(20),
		op("GridSample", "linear border", Any(1, 2, 4, 4), outer(1, 3, 3, 2)).attr(mode("linear"), pad("border")).opset(20),
		op("GridSample", "linear reflection", Any(1, 2, 4, 4), outer(1, 3, 3, 2)).attr(mode("linear"), pad("reflection")).opset(20),
		op("GridSample", "linear reflection corners", Any(1, 1, 5, 3), outer(1, 3, 3, 2)).attr(mode("linear"), pad("reflection"), corners).opset(20),
		op("GridSample", "linear corners", Any(1, 1, 5, 3), inner(1, 3, 3, 2)).attr(mode("linear"), corners).opset(20),
		op("GridSample", "nearest", Any(2, 2, 4, 4), outer(2, 3, 2, 2).Fixed()).attr(mode("nearest")).opset(20),
		op("GridSample", "nearest reflection", Any(1, 2, 4, 4), outer(1, 3, 3, 2).Fixed()).attr(mode("nearest"), pad("reflection")).opset(20),
		op("GridSample", "cubic", Any(1, 2, 4, 4), inner(1, 2, 3, 2)).attr(mode("cubic")).opset(20),
		op("GridSample", "cubic border corners", Any(1, 1, 5, 5), inner(1, 3, 2, 2)).attr(mode("cubic"), pad("border"), corners).opset(20),
		op("GridSample", "cubic reflection", Any(1, 1, 4, 4), outer(1, 3, 2, 2)).attr(mode("cubic"), pad("reflection")).opset(20),
		op("GridSample", "volume", Any(1, 2, 2, 4, 4), inner(1, 2, 2, 1, 3)).attr(mode("linear")).opset(20),
		op("GridSample", "volume border", Any(1, 2, 2, 4, 4), outer(1, 2, 2, 1, 3)).attr(mode("linear"), pad("border")).opset(20),

		op("AffineGrid", "plane", Any(2, 2, 3), ints(2, 1, 3, 4)).opset(20),
		op("AffineGrid", "plane corners", Any(1, 2, 3), ints(1, 2, 4, 3)).attr(corners).opset(20),
		op("AffineGrid", "volume", Any(1, 3, 4), ints(1, 1, 2, 3, 2)).opset(20),

		op("Det", "two", Any(2, 2)),
		op("Det", "three, batch", Any(2, 3, 3)),
		op("Det", "four, batches", Any(2, 1, 4, 4)),
		op("Det", "five", Any(5, 5)),
		op("Det", "singular", Values([]int{2, 2}, 1, 2, 2, 4)).want([]float64{4, -2, -2, 1}),

		op("MaxRoiPool", "one region", Distinct(1, 2, 5, 6), rois(0, 0, 0, 5, 4)).attr(pooled(2, 2)),
		op("MaxRoiPool", "overlapping", Distinct(2, 2, 6, 6), rois(0, 1, 0, 4, 4, 1, 0, 2, 5, 5, 0, 3, 3, 3, 3)).attr(pooled(2, 3)),
		op("MaxRoiPool", "scaled", Distinct(1, 1, 6, 5), rois(0, 0, 0, 8, 10, 0, 2, 4, 9, 6)).attr(pooled(3, 2), onnx.AttrFloat("spatial_scale", 0.5)),

		op("RoiAlign", "half pixel", Any(2, 2, 5, 6), boxes, intsOf([]int{2}, 0, 1)).attr(aligned(2, 3, 2)...),
		op("RoiAlign", "output half pixel", Any(1, 2, 6, 6), boxes, intsOf([]int{2}, 0, 0)).attr(aligned(3, 2, 1)...).
			attr(onnx.AttrStr("coordinate_transformation_mode", "output_half_pixel"), onnx.AttrFloat("spatial_scale", 0.8)),
		op("RoiAlign", "region fixed", Any(1, 1, 4, 4), boxes.Fixed(), intsOf([]int{2}, 0, 0)).attr(aligned(2, 2, 3)...),

		op("Dropout", "inference", Any(3, 4), float(0.5)),
		op("Dropout", "inference said", Any(2, 3), float(0.3), bools(nil, false)),
		op("Dropout", "ratio nothing in training", Any(2, 3), float(0), bools(nil, true)).outs(2).only(0),
		op("Dropout", "training", Any(64)).graph(dropoutOverItself).zero(),
	}
}

// dropoutOverItself is the difference of a dropped out value and what its mask makes of the input:
// it is zero and so must be its gradient, whatever the mask.
func dropoutOverItself(b *onnx.Builder, in []onnx.Value) []onnx.Value {
	out := b.OpN("Dropout", "", 2, []onnx.Value{in[0], b.Float(0.75), b.Const(tensor.Scalar(true))})
	mask := b.Op("Cast", []onnx.Value{out[1]}, onnx.AttrInt("to", int(tensor.Float32)))
	kept := b.Op("Mul", []onnx.Value{in[0], b.Op("Mul", []onnx.Value{mask, b.Float(4)})})
	return []onnx.Value{b.Op("Sub", []onnx.Value{out[0], kept})}
}

// gridKinks lists the normalised coordinates at which interpolation on axes of 2, 3, 4 or 5
// elements changes its element.
func gridKinks() []float64 {
	return []float64{-1.5, -1.25, -1, -0.75, -0.5, -0.25, 0, 0.25, 0.5, 0.75, 1, 1.25, 1.5}
}
