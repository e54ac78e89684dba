//go:build cgo

package capi

// #include "shim.h"
import "C"

import "unsafe"

// maxRank bounds shapes that are read; ONNX Runtime's own kernels stop earlier.
const maxRank = 64

// NewValue makes a tensor over memory that the caller keeps in place until the
// value is released. data may be nil for no bytes. memory is the description of
// host memory that onnxruntime_go holds.
func NewValue(memory Handle, data unsafe.Pointer, bytes int, dims []int64, dtype int32) (Handle, error) {
	var out unsafe.Pointer
	err := check(C.onnxrl_make_value(memory, C.uintptr_t(uintptr(data)), C.size_t(bytes),
		(*C.int64_t)(unsafe.SliceData(dims)), C.size_t(len(dims)), C.int32_t(dtype), &out))
	return out, err
}

// NewStrings makes a tensor of strings; they are copied.
func NewStrings(text []string, dims []int64) (Handle, error) {
	var out unsafe.Pointer
	if err := check(C.onnxrl_make_strings((*C.int64_t)(unsafe.SliceData(dims)), C.size_t(len(dims)), &out)); err != nil {
		return nil, err
	}
	for i, s := range text {
		if err := check(C.onnxrl_set_string(out, C.size_t(i), unsafe.Pointer(unsafe.StringData(s)), C.size_t(len(s)))); err != nil {
			Release(out)
			return nil, err
		}
	}
	return out, nil
}

// Release frees a value.
func Release(value Handle) { C.onnxrl_release_value(value) }

// TypeOf returns element type and shape of a tensor.
func TypeOf(value Handle) (dtype int32, dims []int64, err error) {
	var d C.int32_t
	var buf [maxRank]C.int64_t
	var rank C.size_t
	if err := check(C.onnxrl_value_type(value, &d, &buf[0], maxRank, &rank)); err != nil {
		return 0, nil, err
	}
	dims, err = extents(&buf, rank)
	return int32(d), dims, err
}

func extents(buf *[maxRank]C.int64_t, rank C.size_t) ([]int64, error) {
	if rank > maxRank {
		return nil, &Error{Code: CodeInvalidArgument, Message: "tensor has more than 64 axes"}
	}
	dims := make([]int64, rank)
	for i := range dims {
		dims[i] = int64(buf[i])
	}
	return dims, nil
}

// Bytes returns n bytes of the memory of a tensor that ONNX Runtime allocated,
// shared; n must be what its type and shape take.
func Bytes(value Handle, n int) ([]byte, error) {
	var data unsafe.Pointer
	if err := check(C.onnxrl_value_data(value, &data)); err != nil || data == nil {
		return nil, err
	}
	return unsafe.Slice((*byte)(data), n), nil
}

// Strings copies the n elements of a tensor of strings.
func Strings(value Handle, n int) ([]string, error) {
	out := make([]string, n)
	var total C.size_t
	if err := check(C.onnxrl_strings_length(value, &total)); err != nil || total == 0 {
		return out, err
	}
	text := make([]byte, total)
	offsets := make([]C.size_t, n)
	if err := check(C.onnxrl_strings_content(value, unsafe.Pointer(&text[0]), total, &offsets[0], C.size_t(n))); err != nil {
		return nil, err
	}
	for i := range out {
		end := total
		if i+1 < n {
			end = offsets[i+1]
		}
		out[i] = string(text[offsets[i]:end])
	}
	return out, nil
}
