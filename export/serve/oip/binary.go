package oip

import (
	"encoding/binary"
	"fmt"
	"unsafe"

	"github.com/onnxrl/onnxrl/export/serve"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// HeaderLength is the HTTP header that carries the length of the JSON in a body that has tensors
// after it.
const HeaderLength = "Inference-Header-Content-Length"

// Offset returns how far into a 64-byte-aligned buffer a body should begin so that what follows its
// JSON is aligned; jsonLen is negative for a body that is JSON only.
func Offset(jsonLen int) int {
	if jsonLen < 0 {
		return 0
	}
	return -jsonLen & 63
}

// FromBytes makes a tensor of the binary form: little-endian and row-major, or for strings a uint32
// length before each. The tensor is a view of b where the alignment allows, otherwise a copy.
func FromBytes(dtype tensor.DType, shape []int, b []byte) (*tensor.Tensor, error) {
	n, err := tensor.Len(shape)
	if err != nil {
		return nil, err
	}
	if dtype == tensor.String {
		return stringsFrom(shape, n, b)
	}
	if want := dtype.ByteLen(n); want != len(b) || dtype.Size() == 0 {
		return nil, fmt.Errorf("%s of shape %v takes %d bytes, got %d", Datatype(dtype), shape, want, len(b))
	}
	if dtype == tensor.Bool {
		for i, v := range b {
			if v > 1 {
				return nil, fmt.Errorf("element %d is the byte %d, expected 0 or 1 in BOOL", i, v)
			}
		}
	}
	if uintptr(unsafe.Pointer(unsafe.SliceData(b)))%uintptr(dtype.Size()) != 0 {
		t := tensor.New(dtype, shape...)
		copy(t.Bytes(), b)
		return t, nil
	}
	return tensor.OfBytes(dtype, b, shape...)
}

func stringsFrom(shape []int, n int, b []byte) (*tensor.Tensor, error) {
	if n > len(b)/4 {
		return nil, fmt.Errorf("BYTES of shape %v has %d elements of at least 4 bytes, got %d bytes", shape, n, len(b))
	}
	if err := serve.CheckStrings(n); err != nil {
		return nil, err
	}
	v := make([]string, n)
	for i := range v {
		if len(b) < 4 {
			return nil, fmt.Errorf("element %d: %d bytes are left, expected a length of 4 bytes", i, len(b))
		}
		size := binary.LittleEndian.Uint32(b)
		if b = b[4:]; uint64(size) > uint64(len(b)) {
			return nil, fmt.Errorf("element %d: its length is %d, but %d bytes are left", i, size, len(b))
		}
		v[i] = string(b[:size])
		b = b[size:]
	}
	if len(b) > 0 {
		return nil, fmt.Errorf("%d bytes are left after %d elements", len(b), n)
	}
	return tensor.OfStrings(v, shape...), nil
}

// BinarySize returns how many bytes [AppendBinary] writes.
func BinarySize(t *tensor.Tensor) int {
	if t.DType() != tensor.String {
		return len(t.Bytes())
	}
	n := 0
	for _, s := range t.Strings() {
		n += 4 + len(s)
	}
	return n
}

// AppendBinary appends a tensor in the binary form.
func AppendBinary(dst []byte, t *tensor.Tensor) []byte {
	if t.DType() != tensor.String {
		return append(dst, t.Bytes()...)
	}
	for _, s := range t.Strings() {
		dst = binary.LittleEndian.AppendUint32(dst, uint32(len(s)))
		dst = append(dst, s...)
	}
	return dst
}
