package portable

import "onnxrl/runtime/tensor"

// sequence is a list of tensors. It is immutable: operators that change one make another, and its tensors are never in a frame's registers.
type sequence struct {
	elem  tensor.DType
	items []*tensor.Tensor
}
