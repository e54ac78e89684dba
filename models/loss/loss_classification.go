package loss

import (
	"fmt"
	"slices"

	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// Classes tells which labels a term of kind "cross_entropy" takes for a prediction of the given
// type: 0 to classes−1, and IgnoreIndex. ok is false for the other kinds, whose targets are no
// labels, and for a type that the kind does not take.
func (t Term) Classes(prediction onnx.TensorType) (classes int, ok bool) {
	axis, ok := t.classAxis(prediction)
	if !ok {
		return 0, false
	}
	return prediction.Dims[axis].Value, true
}

func (t Term) classAxis(prediction onnx.TensorType) (axis int, ok bool) {
	switch axis = t.Axis; {
	case axis == 0:
		axis = 1
	case axis < 0:
		axis += len(prediction.Dims)
	}
	return axis, t.Kind == "cross_entropy" && axis >= 1 && axis < len(prediction.Dims) && prediction.Dims[axis].IsKnown()
}

// crossEntropy takes logits [batch, classes, …], or with the classes on another axis, and int64
// class indices of the same shape without that axis. Labels outside 0…classes−1 fail on every
// engine. It also reports the accuracy.
func crossEntropy(b *builder) (onnx.Value, map[string]onnx.Value, error) {
	t := b.env.Type(b.y)
	axis, ok := b.term.classAxis(t)
	if !ok {
		return "", nil, fmt.Errorf("the prediction is %v, expected a known number of classes on axis %d, after the batch", t, max(b.term.Axis, 1))
	}
	classes := t.Dims[axis].Value
	tt := onnx.TensorType{DType: tensor.Int64, Ranked: true, Dims: slices.Delete(slices.Clone(t.Dims), axis, axis+1)}
	target := b.declare(tt)
	label, ignored := target, onnx.Value("")
	if b.term.IgnoreIndex != nil {
		ignored = b.bin("Equal", target, b.Int(*b.term.IgnoreIndex))
		label = b.Op("Where", []onnx.Value{ignored, b.Int(0), label})
	}
	// A negative label is none; for GatherElements it would be a class counted from the end.
	label = b.Op("Where", []onnx.Value{b.bin("Less", label, b.Int(0)), b.Int(classes), label})
	logp := b.Op("LogSoftmax", []onnx.Value{b.y}, onnx.AttrInt("axis", axis))
	index := b.bin("Unsqueeze", label, b.Ints(axis))
	picked := b.Op("GatherElements", []onnx.Value{logp, index}, onnx.AttrInt("axis", axis))
	nll := b.un("Neg", b.bin("Squeeze", picked, b.Ints(axis)))
	if s := float32(b.term.LabelSmoothing); s > 0 {
		// (1−s)·nll + s·mean over classes of −log p.
		all := b.Op("ReduceSum", []onnx.Value{logp, b.Ints(axis)}, onnx.AttrInt("keepdims", 0))
		nll = b.bin("Add", b.bin("Mul", nll, b.Float(1-s)), b.bin("Mul", all, b.Float(-s/float32(classes))))
	}
	best := b.Op("ArgMax", []onnx.Value{b.y}, onnx.AttrInt("axis", axis), onnx.AttrInt("keepdims", 0))
	hit := b.float(b.bin("Equal", best, target))
	return b.perCounted(nll, ignored), map[string]onnx.Value{"accuracy": b.perCounted(hit, ignored)}, nil
}

// perCounted averages over the elements of each sample that are not ignored; a sample without any
// has 0. Without a mask it averages over all.
func (b *builder) perCounted(v, ignored onnx.Value) onnx.Value {
	if ignored == "" {
		return b.perSample(v)
	}
	// Not a product: the loss of an ignored element may be infinite.
	v = b.Op("Where", []onnx.Value{ignored, b.Float(0), v})
	if len(b.env.Type(v).Dims) == 1 {
		return v
	}
	share := b.perSample(b.float(b.un("Not", ignored)))
	return b.bin("Div", b.perSample(v), b.bin("Max", share, b.Float(1e-12)))
}

func (b *builder) float(v onnx.Value) onnx.Value {
	return b.Op("Cast", []onnx.Value{v}, onnx.AttrInt("to", int(tensor.Float32)))
}

// bceLogits is softplus(x) − x·t, the stable form of binary cross-entropy on logits.
func bceLogits(b *builder) (onnx.Value, map[string]onnx.Value, error) {
	t := b.likePrediction()
	l := b.bin("Sub", b.un("Softplus", b.y), b.bin("Mul", b.y, t))
	return b.perSample(l), b.binaryAccuracy(t, 0), nil
}

// bce is −t·log p − (1−t)·log(1−p) on probabilities, with logarithms clamped at −100 as PyTorch
// does.
func bce(b *builder) (onnx.Value, map[string]onnx.Value, error) {
	t := b.likePrediction()
	one := b.Float(1)
	log := func(v onnx.Value) onnx.Value { return b.bin("Max", b.un("Log", v), b.Float(-100)) }
	pos := b.bin("Mul", t, log(b.y))
	neg := b.bin("Mul", b.bin("Sub", one, t), log(b.bin("Sub", one, b.y)))
	return b.perSample(b.un("Neg", b.bin("Add", pos, neg))), b.binaryAccuracy(t, 0.5), nil
}

// binaryAccuracy compares prediction and target after thresholding, the target at one half.
func (b *builder) binaryAccuracy(t onnx.Value, threshold float32) map[string]onnx.Value {
	eq := b.bin("Equal", b.bin("Greater", b.y, b.Float(threshold)), b.bin("Greater", t, b.Float(0.5)))
	return map[string]onnx.Value{"accuracy": b.perSample(b.float(eq))}
}
