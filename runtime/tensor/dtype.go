package tensor

import "fmt"

// DType is an element type. The numbers are those of ONNX's TensorProto.DataType, so that no table
// stands between the two.
type DType int32

// The element types of ONNX up to IR version 13.
const (
	Undefined      DType = 0
	Float32        DType = 1
	Uint8          DType = 2
	Int8           DType = 3
	Uint16         DType = 4
	Int16          DType = 5
	Int32          DType = 6
	Int64          DType = 7
	String         DType = 8
	Bool           DType = 9
	Float16        DType = 10
	Float64        DType = 11
	Uint32         DType = 12
	Uint64         DType = 13
	Complex64      DType = 14
	Complex128     DType = 15
	BFloat16       DType = 16
	Float8E4M3FN   DType = 17
	Float8E4M3FNUZ DType = 18
	Float8E5M2     DType = 19
	Float8E5M2FNUZ DType = 20
	Uint4          DType = 21
	Int4           DType = 22
	Float4E2M1     DType = 23
	Float8E8M0     DType = 24
	Uint2          DType = 25
	Int2           DType = 26
)

var dtypeInfo = map[DType]struct {
	name string
	bits int
}{
	Undefined: {"undefined", 0}, Float32: {"float32", 32}, Uint8: {"uint8", 8}, Int8: {"int8", 8}, Uint16: {"uint16", 16}, Int16: {"int16", 16},
	Int32: {"int32", 32}, Int64: {"int64", 64}, String: {"string", 0}, Bool: {"bool", 8}, Float16: {"float16", 16}, Float64: {"float64", 64},
	Uint32: {"uint32", 32}, Uint64: {"uint64", 64}, Complex64: {"complex64", 64}, Complex128: {"complex128", 128}, BFloat16: {"bfloat16", 16},
	Float8E4M3FN: {"float8e4m3fn", 8}, Float8E4M3FNUZ: {"float8e4m3fnuz", 8}, Float8E5M2: {"float8e5m2", 8}, Float8E5M2FNUZ: {"float8e5m2fnuz", 8},
	Uint4: {"uint4", 4}, Int4: {"int4", 4}, Float4E2M1: {"float4e2m1", 4}, Float8E8M0: {"float8e8m0", 8}, Uint2: {"uint2", 2}, Int2: {"int2", 2},
}

// String returns the Go-like lower-case name, for instance "float32".
func (d DType) String() string {
	if i, ok := dtypeInfo[d]; ok {
		return i.name
	}
	return fmt.Sprintf("dtype(%d)", int32(d))
}

// Bits returns the width of one element, or 0 for strings and unknown types. Types below 8 bits are
// packed, the first element in the low bits.
func (d DType) Bits() int { return dtypeInfo[d].bits }

// Size returns the bytes of one element, or 0 where an element has no whole number of bytes
// (strings, packed and unknown types).
func (d DType) Size() int {
	b := d.Bits()
	if b%8 != 0 {
		return 0
	}
	return b / 8
}

// IsFloat reports whether gradients can flow through values of this type.
func (d DType) IsFloat() bool {
	switch d {
	case Float16, BFloat16, Float32, Float64:
		return true
	}
	return false
}

// IsInteger reports whether d is a signed or unsigned integer of whole bytes.
func (d DType) IsInteger() bool {
	switch d {
	case Int8, Int16, Int32, Int64, Uint8, Uint16, Uint32, Uint64:
		return true
	}
	return false
}

// ByteLen returns how many bytes n elements of type d take, packed types rounded up to whole bytes.
func (d DType) ByteLen(n int) int { return (n*d.Bits() + 7) / 8 }

// ParseDType is the inverse of [DType.String].
func ParseDType(s string) (DType, error) {
	for d, i := range dtypeInfo {
		if i.name == s && d != Undefined {
			return d, nil
		}
	}
	return Undefined, fmt.Errorf("parse element type: %q is none of ONNX's", s)
}
