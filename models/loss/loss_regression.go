package loss

import "github.com/onnxrl/onnxrl/runtime/onnx"

// mse is the mean of squared differences; it also reports the mean absolute error.
func mse(b *builder) (onnx.Value, map[string]onnx.Value, error) {
	d := b.bin("Sub", b.y, b.likePrediction())
	return b.perSample(b.bin("Mul", d, d)), map[string]onnx.Value{"mae": b.perSample(b.un("Abs", d))}, nil
}

// mae is the mean of absolute differences.
func mae(b *builder) (onnx.Value, map[string]onnx.Value, error) {
	d := b.bin("Sub", b.y, b.likePrediction())
	return b.perSample(b.un("Abs", d)), map[string]onnx.Value{"mse": b.perSample(b.bin("Mul", d, d))}, nil
}

// huber is 0.5·d² for |d| ≤ δ and δ·(|d| − 0.5·δ) beyond. With c = min(|d|, δ) it is c·(|d| −
// 0.5·c), which needs no branch.
func huber(b *builder) (onnx.Value, map[string]onnx.Value, error) {
	a := b.un("Abs", b.bin("Sub", b.y, b.likePrediction()))
	c := b.bin("Min", a, b.Float(float32(b.term.Delta)))
	l := b.bin("Mul", c, b.bin("Sub", a, b.bin("Mul", c, b.Float(0.5))))
	return b.perSample(l), map[string]onnx.Value{"mae": b.perSample(a)}, nil
}
