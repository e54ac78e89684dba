//go:build !cgo

package ort

// Cgo reports whether the program was built with cgo, without which ONNX Runtime cannot be called.
const Cgo = false
