package opcases

import (
	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

func imageCases() []Case {
	scales := func(v ...float32) Arg { return Tensor(tensor.Of(v, len(v))) }
	mode := func(v string) *onnx.Attribute { return onnx.AttrStr("mode", v) }
	coord := func(v string) *onnx.Attribute { return onnx.AttrStr("coordinate_transformation_mode", v) }
	near := func(v string) *onnx.Attribute { return onnx.AttrStr("nearest_mode", v) }
	anti, exclude := onnx.AttrInt("antialias", 1), onnx.AttrInt("exclude_outside", 1)
	return []Case{
		op("Resize", "nearest twice", Any(1, 2, 3, 2), none, scales(1, 1, 2, 2)).attr(coord("asymmetric"), near("floor")),
		op("Resize", "nearest sizes", Any(2, 1, 4, 5), none, none, ints(2, 1, 3, 7)),
		op("Resize", "nearest ceil align corners", Any(1, 1, 4, 3), none, none, ints(1, 1, 6, 5)).attr(near("ceil"), coord("align_corners")),
		op("Resize", "nearest round up, half pixel", Any(1, 1, 5, 6), none, scales(1, 1, 0.6, 0.8)).attr(near("round_prefer_ceil")),
		op("Resize", "nearest tf half pixel", Any(1, 1, 4, 4), none, none, ints(1, 1, 7, 2)).attr(near("floor"), coord("tf_half_pixel_for_nn")),
		op("Resize", "linear", Any(1, 2, 3, 4), none, scales(1, 1, 2, 1.5)).attr(mode("linear")),
		op("Resize", "linear sizes", Any(2, 1, 5, 4), none, none, ints(2, 1, 3, 7)).attr(mode("linear"), coord("pytorch_half_pixel")),
		op("Resize", "linear align corners", Any(1, 1, 3, 4), none, none, ints(1, 1, 5, 3)).attr(mode("linear"), coord("align_corners")),
		op("Resize", "linear asymmetric", Any(1, 1, 3, 4), none, none, ints(1, 1, 5, 3)).attr(mode("linear"), coord("asymmetric")),
		op("Resize", "linear symmetric", Any(1, 1, 4, 4), none, scales(1, 1, 0.6, 1.7)).attr(mode("linear"), coord("half_pixel_symmetric")).opset(19),
		op("Resize", "linear 1d", Any(1, 2, 5), none, scales(1, 1, 1.6)).attr(mode("linear")),
		op("Resize", "linear 3d", Any(1, 1, 2, 3, 2), none, scales(1, 1, 2, 1.5, 2)).attr(mode("linear")),
		op("Resize", "linear axes", Any(1, 2, 3, 4), none, scales(1.5, 2)).attr(mode("linear"), onnx.AttrInts("axes", 3, 2)),
		op("Resize", "linear antialias", Any(1, 1, 7, 6), none, scales(1, 1, 0.5, 0.6)).attr(mode("linear"), anti),
		op("Resize", "linear crop", Any(1, 1, 4, 5), scales(0, 0, 0.2, 0.1, 1, 1, 0.8, 1.2), none, ints(1, 1, 3, 4)).attr(mode("linear"), coord("tf_crop_and_resize")),
		op("Resize", "linear keep aspect", Any(1, 1, 4, 6), none, none, ints(7, 8)).attr(mode("linear"), onnx.AttrInts("axes", 2, 3),
			onnx.AttrStr("keep_aspect_ratio_policy", "not_larger")),
		op("Resize", "linear keep aspect from below", Any(1, 1, 4, 6), none, none, ints(7, 8)).attr(mode("linear"), onnx.AttrInts("axes", 2, 3),
			onnx.AttrStr("keep_aspect_ratio_policy", "not_smaller")),
		op("Resize", "cubic", Any(1, 2, 4, 5), none, scales(1, 1, 2, 1.5)).attr(mode("cubic")),
		op("Resize", "cubic excluding outside", Any(1, 1, 4, 5), none, none, ints(1, 1, 6, 4)).attr(mode("cubic"), exclude, onnx.AttrFloat("cubic_coeff_a", -0.5)),
		op("Resize", "cubic align corners", Any(1, 1, 4, 5), none, none, ints(1, 1, 6, 4)).attr(mode("cubic"), coord("align_corners")),
		op("Resize", "cubic antialias", Any(1, 1, 8, 7), none, scales(1, 1, 0.5, 0.6)).attr(mode("cubic"), anti),
		op("Resize", "cubic antialias excluding outside", Any(1, 1, 8, 7), none, scales(1, 1, 0.5, 0.6)).attr(mode("cubic"), anti, exclude),
		op("Resize", "long", Any(1, 1, 1200), none, none, ints(1, 1, 1300)).attr(mode("linear")),
	}
}
