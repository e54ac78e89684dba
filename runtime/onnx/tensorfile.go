package onnx

import (
	"fmt"

	"github.com/onnxrl/onnxrl/runtime/atomicfile"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// ReadTensor reads one TensorProto from a file, as ONNX's test cases and exporters' fixtures store
// inputs and outputs. It returns the name inside the message, which may be empty, and the tensor.
func ReadTensor(path string) (name string, t *tensor.Tensor, err error) {
	b, err := readBounded(path)
	if err != nil {
		return "", nil, fmt.Errorf("read tensor: %w", err)
	}
	p, err := UnmarshalTensor(b)
	if err != nil {
		return "", nil, fmt.Errorf("read tensor %s: %w", path, err)
	}
	if t, err = TensorOf(p); err != nil {
		return "", nil, fmt.Errorf("read tensor %s: %w", path, err)
	}
	return p.Name, t, nil
}

// WriteTensor writes a tensor as one TensorProto, atomically; see [Save].
func WriteTensor(path, name string, t *tensor.Tensor) error {
	b, err := MarshalTensor(ProtoOf(name, t))
	if err != nil {
		return err
	}
	err = atomicfile.WriteBytes(path, b)
	if err != nil {
		return fmt.Errorf("write tensor %q: %w", name, err)
	}
	return nil
}
