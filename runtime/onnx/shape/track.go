package shape

import (
	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// Track makes e follow a builder: every input, constant and node that b adds is known to e at once.
func (e *Env) Track(b *onnx.Builder) {
	b.OnNode(e.Apply)
	b.OnType(func(v onnx.Value, t onnx.TensorType, content *tensor.Tensor) {
		e.Set(v, Fact{Type: t, Const: content})
	})
}
