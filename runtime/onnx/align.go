package onnx

import "unsafe"

func aligned(b []byte, n int) bool {
	return uintptr(unsafe.Pointer(unsafe.SliceData(b)))%uintptr(n) == 0
}
