package ort

import "github.com/onnxrl/onnxrl/runtime/tensor"

// elementType returns ONNX Runtime's number of an element type. The numbers are
// ONNX's, save for the types that came last.
func elementType(d tensor.DType) (n int32, ok bool) {
	switch {
	case d >= tensor.Float32 && d <= tensor.Float4E2M1:
		return int32(d), true
	case d == tensor.Uint2:
		return 24, true
	case d == tensor.Int2:
		return 25, true
	}
	return 0, false
}

// dtypeOf is the inverse of elementType.
func dtypeOf(n int32) (d tensor.DType, ok bool) {
	switch {
	case n >= 1 && n <= 23:
		return tensor.DType(n), true
	case n == 24:
		return tensor.Uint2, true
	case n == 25:
		return tensor.Int2, true
	}
	return tensor.Undefined, false
}
