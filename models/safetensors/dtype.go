package safetensors

import (
	"errors"
	"unsafe"
)

// DType is the element type of an array as the format spells it.
type DType string

// The element types that are understood. F16 and BF16 have no Go type; their arrays are read and
// written as uint16 or bytes.
const (
	Bool   DType = "BOOL"
	U8     DType = "U8"
	I8     DType = "I8"
	U16    DType = "U16"
	I16    DType = "I16"
	F16    DType = "F16"
	BF16   DType = "BF16"
	U32    DType = "U32"
	I32    DType = "I32"
	F32    DType = "F32"
	U64    DType = "U64"
	I64    DType = "I64"
	F64    DType = "F64"
	F8E4M3 DType = "F8_E4M3"
	F8E5M2 DType = "F8_E5M2"
)

// Size is the number of bytes of an element, 0 for a dtype that is not known.
func (d DType) Size() int {
	switch d {
	case Bool, U8, I8, F8E4M3, F8E5M2:
		return 1
	case U16, I16, F16, BF16:
		return 2
	case U32, I32, F32:
		return 4
	case U64, I64, F64:
		return 8
	}
	return 0
}

// Element is a Go type that an array can hold.
type Element interface {
	bool | uint8 | int8 | uint16 | int16 | uint32 | int32 | float32 | uint64 | int64 | float64
}

func dtypeOf[T Element]() DType {
	var zero T
	switch any(zero).(type) {
	case bool:
		return Bool
	case uint8:
		return U8
	case int8:
		return I8
	case uint16:
		return U16
	case int16:
		return I16
	case uint32:
		return U32
	case int32:
		return I32
	case float32:
		return F32
	case uint64:
		return U64
	case int64:
		return I64
	}
	return F64
}

// bytesOf views the elements as bytes, without a copy.
func bytesOf[T Element](data []T) []byte {
	if len(data) == 0 {
		return nil
	}
	return unsafe.Slice((*byte)(unsafe.Pointer(&data[0])), len(data)*int(unsafe.Sizeof(data[0])))
}

var errBigEndian = errors.New("safetensors on a big-endian host is not supported")

// checkHost refuses hosts whose memory does not have the order of the format.
func checkHost() error {
	one := uint16(1)
	if *(*byte)(unsafe.Pointer(&one)) != 1 {
		return errBigEndian
	}
	return nil
}
