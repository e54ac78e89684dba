package onnx

import (
	"fmt"

	"google.golang.org/protobuf/proto"
)

// Marshal encodes a model. Equal models give equal bytes. A model whose encoding exceeds
// [MaxModelBytes] is refused; [Save] writes such models with external data. Tensors whose data lies
// in external files keep their references, which are relative to the folder the model came from.
func Marshal(m *Model) ([]byte, error) {
	if n := proto.Size(m); n > MaxModelBytes {
		return nil, fmt.Errorf("encode model: %d bytes are more than the %d that one protobuf message may have; save it with external data", n, MaxModelBytes)
	}
	b, err := proto.MarshalOptions{Deterministic: true}.Marshal(m)
	if err != nil {
		return nil, fmt.Errorf("encode model: %w", err)
	}
	return b, nil
}

// MarshalTensor encodes one TensorProto.
func MarshalTensor(t *TensorProto) ([]byte, error) {
	b, err := proto.MarshalOptions{Deterministic: true}.Marshal(t)
	if err != nil {
		return nil, fmt.Errorf("encode tensor %q: %w", t.GetName(), err)
	}
	return b, nil
}
