// Package onnx is a typed, mutable view of ONNX models.
//
// The messages ([Model], [Graph], [Node], …) are the ones generated from the ONNX project's own protobuf definition, so nothing a file carries is lost between
// decoding and encoding: unknown fields, training information and metadata survive. This package adds methods to them and, beside them:
//
//   - decode and encode: [Unmarshal], [Marshal], [Load], [Save] (external data included)
//   - tensors: [TensorOf] and [ProtoOf] convert between TensorProto and tensor.Tensor
//   - construction: [Builder]
//   - types of values: [TensorType] with symbolic [Dim]s; what each value's type is, is found by the sub-package shape
//
// A graph's values are named by strings; [Value] is that name. The empty Value is an absent optional input or output, as in ONNX itself.
package onnx

//go:generate protoc --go_out=. --go_opt=paths=source_relative onnx.proto
