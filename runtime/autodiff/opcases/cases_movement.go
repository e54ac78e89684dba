package opcases

import "github.com/onnxrl/onnxrl/runtime/onnx"

func movementCases() []Case {
	axis := func(a int) *onnx.Attribute { return onnx.AttrInt("axis", a) }
	const end = 1 << 40
	return []Case{
		op("Reshape", "merge", Any(2, 3, 4), ints(6, 4)),
		op("Reshape", "inferred", Any(2, 3, 4), ints(0, -1)),
		op("Reshape", "to scalar", Any(1, 1), ints()),
		op("Reshape", "computed shape", Any(2, 6), Any(3, 4)).graph(func(b *onnx.Builder, in []onnx.Value) []onnx.Value {
			return []onnx.Value{b.Op("Mul", []onnx.Value{in[1], b.Op("Reshape", []onnx.Value{in[0], b.Op("Shape", in[1:])})})}
		}),
		op("Flatten", "axis 1", Any(2, 3, 4)),
		op("Flatten", "axis 0", Any(2, 3)).attr(axis(0)),
		op("Flatten", "axis -1", Any(2, 3, 4)).attr(axis(-1)),
		op("Squeeze", "all", Any(2, 1, 3, 1)),
		op("Squeeze", "one", Any(2, 1, 3, 1), ints(1)),
		op("Squeeze", "negative", Any(2, 1, 3, 1), ints(-1, -3)),
		op("Unsqueeze", "front", Any(2, 3), ints(0)),
		op("Unsqueeze", "two", Any(2, 3), ints(1, 3)),
		op("Unsqueeze", "negative", Any(2, 3), ints(-1)),
		op("Transpose", "default", Any(2, 3, 4)),
		op("Transpose", "cycle", Any(2, 3, 4)).attr(onnx.AttrInts("perm", 1, 2, 0)),
		op("Transpose", "identity", Any(2, 3)).attr(onnx.AttrInts("perm", 0, 1)),
		op("Transpose", "heads", Any(2, 3, 2, 2)).attr(onnx.AttrInts("perm", 0, 2, 1, 3)),
		op("Expand", "row", Any(1, 3), ints(2, 3)),
		op("Expand", "new axes", Any(3, 1), ints(2, 1, 4)),
		op("Expand", "ones keep", Any(3, 4), ints(3, 1)),
		op("Expand", "scalar", Any(), ints(2, 2)),
		op("Tile", "one axis", Any(2, 3), ints(1, 3)),
		op("Tile", "two axes", Any(2, 3), ints(2, 2)),
		op("Tile", "vector", Any(3), ints(4)),
		op("Tile", "once", Any(2, 3), ints(1, 1)),
		op("Concat", "axis 0", Any(2, 3), Any(1, 3)).attr(axis(0)),
		op("Concat", "last axis", Any(2, 3), Any(2, 1), Any(2, 2)).attr(axis(-1)),
		op("Concat", "one wanted", Any(2, 3).Fixed(), Any(2, 2), Any(2, 1).Const()).attr(axis(1)),
		op("Concat", "single", Any(2, 3)).attr(axis(1)),
		op("Concat", "middle axis", Any(2, 1, 3), Any(2, 2, 3)).attr(axis(1)),
		op("Concat", "twice the same", Any(2, 2)).graph(func(b *onnx.Builder, in []onnx.Value) []onnx.Value {
			return []onnx.Value{b.Op("Concat", []onnx.Value{in[0], in[0]}, axis(0))}
		}),
		op("Split", "sizes", Any(2, 6), ints(1, 2, 3)).attr(axis(1)).outs(3),
		op("Split", "equal", Any(4, 3)).attr(onnx.AttrInt("num_outputs", 2)).outs(2),
		op("Split", "uneven", Any(5, 2)).attr(onnx.AttrInt("num_outputs", 2)).outs(2),
		op("Split", "one used", Any(2, 6), ints(1, 2, 3)).attr(axis(-1)).outs(3).only(1),
		op("Split", "two used", Any(2, 6), ints(1, 2, 3)).attr(axis(-1)).outs(3).only(0, 2),
		op("Split", "opset 13", Any(4, 3)).outs(2).opset(13),
		op("Slice", "inner", Any(4, 5), ints(1, 2), ints(3, 4)),
		op("Slice", "axes", Any(4, 5, 2), ints(1), ints(end), ints(1)),
		op("Slice", "negative bounds", Any(4, 5), ints(-3), ints(-1), ints(-1)),
		op("Slice", "steps", Any(7, 5), ints(1, 0), ints(7, 5), ints(0, 1), ints(2, 3)),
		op("Slice", "step over the end", Any(8), ints(0), ints(8), ints(0), ints(3)),
		op("Slice", "reversed", Any(5, 2), ints(-1), ints(-end), ints(0), ints(-1)),
		op("Slice", "reversed steps", Any(8, 2), ints(6), ints(0), ints(0), ints(-2)),
		op("Slice", "one element", Any(4, 3), ints(2), ints(3), ints(0), ints(5)),
		op("Slice", "computed bounds", Any(4, 5), ints(1).Fixed(), ints(3).Fixed(), ints(0)),
		op("Slice", "computed bounds and steps", Any(4, 5), ints(0, -1).Fixed(), ints(4, -6).Fixed(), ints(0, 1), ints(2, -2).Fixed()),
		op("Slice", "everything", Any(4, 3), ints(0), ints(end), ints(0)),
		op("Trilu", "upper", Any(3, 4)),
		op("Trilu", "lower", Any(2, 3, 3)).attr(onnx.AttrInt("upper", 0)),
		op("Trilu", "shifted", Any(4, 4), Int(1)),
		op("Trilu", "shifted below", Any(4, 3), Int(-1)).attr(onnx.AttrInt("upper", 0)),
		op("CenterCropPad", "crop", Any(5, 7), ints(2, 4)),
		op("CenterCropPad", "pad", Any(3, 2), ints(6, 5)),
		op("CenterCropPad", "mixed on axes", Any(2, 7, 3), ints(4, 6)).attr(onnx.AttrInts("axes", 1, -1)),
		op("CenterCropPad", "unchanged", Any(2, 3), ints(2, 3)),
	}
}

// sequenceCases go through sequences of tensors, as exporters write torch.split, torch.unbind and
// torch.stack.
func sequenceCases() []Case {
	at := func(b *onnx.Builder, seq onnx.Value, i int) onnx.Value {
		return b.Op("SequenceAt", []onnx.Value{seq, b.Int(i)})
	}
	return []Case{
		op("SplitToSequence", "sizes", Any(2, 5), ints(2, 3)).graph(func(b *onnx.Builder, in []onnx.Value) []onnx.Value {
			s := b.Op("SplitToSequence", in, onnx.AttrInt("axis", 1))
			return []onnx.Value{at(b, s, 0), b.Op("Exp", []onnx.Value{at(b, s, -1)})}
		}),
		op("SplitToSequence", "chunks", Any(5, 2), Int(2)).graph(func(b *onnx.Builder, in []onnx.Value) []onnx.Value {
			s := b.Op("SplitToSequence", in)
			return []onnx.Value{at(b, s, 2), b.Op("Exp", []onnx.Value{at(b, s, 1)})}
		}),
		op("SplitToSequence", "unbind and stack", Any(3, 2)).graph(func(b *onnx.Builder, in []onnx.Value) []onnx.Value {
			s := b.Op("SplitToSequence", in, onnx.AttrInt("keepdims", 0))
			t := b.Op("SequenceConstruct", []onnx.Value{at(b, s, 2), b.Op("Exp", []onnx.Value{at(b, s, 0)})})
			t = b.Op("SequenceInsert", []onnx.Value{t, at(b, s, 1), b.Int(1)})
			return []onnx.Value{b.Op("ConcatFromSequence", []onnx.Value{t}, onnx.AttrInt("axis", 1), onnx.AttrInt("new_axis", 1))}
		}),
		op("SplitToSequence", "erased", Any(3, 2), Int(1)).graph(func(b *onnx.Builder, in []onnx.Value) []onnx.Value {
			s := b.Op("SequenceErase", []onnx.Value{b.Op("SplitToSequence", in), b.Int(0)})
			return []onnx.Value{b.Op("ConcatFromSequence", []onnx.Value{s}, onnx.AttrInt("axis", 0))}
		}),
	}
}

func padCases() []Case {
	mode := func(m string) *onnx.Attribute { return onnx.AttrStr("mode", m) }
	return []Case{
		op("Pad", "constant", Any(2, 3), ints(1, 0, 0, 2)),
		op("Pad", "constant value", Any(2, 3), ints(1, 2, 0, 1), Any()),
		op("Pad", "negative", Any(4, 5), ints(-1, 1, 2, -2)),
		op("Pad", "negative value", Any(4, 5), ints(-1, 1, 2, -2), Any()),
		op("Pad", "axes", Any(2, 3, 2), ints(1, 2), none, ints(1)),
		op("Pad", "negative axes", Any(2, 3, 2), ints(1, 0, 2, 1), none, ints(-1, 0)),
		op("Pad", "computed widths", Any(2, 3), ints(1, 0, 0, 2).Fixed(), Any()),
		op("Pad", "computed widths of axes", Any(2, 3), ints(1, -1).Fixed(), none, ints(1)),
		op("Pad", "nothing", Any(2, 3), ints(0, 0, 0, 0)),
		op("Pad", "reflect", Any(3, 5), ints(0, 2, 0, 3)).attr(mode("reflect")),
		op("Pad", "reflect both axes", Any(4, 3), ints(2, 1, 3, 2)).attr(mode("reflect")),
		op("Pad", "edge", Any(3, 4), ints(2, 0, 1, 3)).attr(mode("edge")),
		op("Pad", "edge before only", Any(4), ints(3, 0)).attr(mode("edge")),
		op("Pad", "edge of one", Any(1, 2), ints(2, 1, 1, 1)).attr(mode("edge")),
		op("Pad", "wrap", Any(3, 4), ints(1, 2, 2, 3)).attr(mode("wrap")).opset(19),
		op("Pad", "wrap whole", Any(3), ints(3, 3)).attr(mode("wrap")).opset(19),
		op("Pad", "reflect channels", Any(1, 2, 4, 4), ints(0, 0, 1, 1, 0, 0, 1, 1)).attr(mode("reflect")),
	}
}
