package loss

import (
	"fmt"
	"slices"

	"onnxrl/runtime/onnx"
	"onnxrl/runtime/tensor"
)

// crossEntropy takes logits [batch, classes, …], or with the classes on another axis, and int64 class indices of the same shape without that axis. It also reports the accuracy.
func crossEntropy(b *builder) (onnx.Value, map[string]onnx.Value, error) {
	t := b.env.Type(b.y)
	axis := b.term.Axis
	switch {
	case axis == 0:
		axis = 1
	case axis < 0:
		axis += len(t.Dims)
	}
	if axis < 1 || axis >= len(t.Dims) || !t.Dims[axis].IsKnown() {
		return "", nil, fmt.Errorf("the prediction is %v, expected a known number of classes on axis %d, after the batch", t, max(axis, 1))
	}
	classes := t.Dims[axis].Value
	tt := onnx.TensorType{DType: tensor.Int64, Ranked: true, Dims: slices.Delete(slices.Clone(t.Dims), axis, axis+1)}
	target := b.declare(tt)
	logp := b.Op("LogSoftmax", []onnx.Value{b.y}, onnx.AttrInt("axis", axis))
	index := b.bin("Unsqueeze", target, b.Ints(axis))
	picked := b.Op("GatherElements", []onnx.Value{logp, index}, onnx.AttrInt("axis", axis))
	nll := b.un("Neg", b.bin("Squeeze", picked, b.Ints(axis)))
	if s := float32(b.term.LabelSmoothing); s > 0 {
		// (1−s)·nll + s·mean over classes of −log p.
		all := b.Op("ReduceSum", []onnx.Value{logp, b.Ints(axis)}, onnx.AttrInt("keepdims", 0))
		nll = b.bin("Add", b.bin("Mul", nll, b.Float(1-s)), b.bin("Mul", all, b.Float(-s/float32(classes))))
	}
	best := b.Op("ArgMax", []onnx.Value{b.y}, onnx.AttrInt("axis", axis), onnx.AttrInt("keepdims", 0))
	hit := b.Op("Cast", []onnx.Value{b.bin("Equal", best, target)}, onnx.AttrInt("to", int(tensor.Float32)))
	return b.perSample(nll), map[string]onnx.Value{"accuracy": b.perSample(hit)}, nil
}

// bceLogits is softplus(x) − x·t, the stable form of binary cross-entropy on logits.
func bceLogits(b *builder) (onnx.Value, map[string]onnx.Value, error) {
	t := b.likePrediction()
	l := b.bin("Sub", b.un("Softplus", b.y), b.bin("Mul", b.y, t))
	return b.perSample(l), b.binaryAccuracy(t, 0), nil
}

// bce is −t·log p − (1−t)·log(1−p) on probabilities, with logarithms clamped at −100 as PyTorch does.
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
	return map[string]onnx.Value{"accuracy": b.perSample(b.Op("Cast", []onnx.Value{eq}, onnx.AttrInt("to", int(tensor.Float32))))}
}
