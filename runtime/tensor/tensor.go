package tensor

import (
	"fmt"
	"math"
	"slices"
	"unsafe"
)

// Element lists the Go types that elements are read and written as. Half-precision floats are their
// bits (uint16) and are not listed: use [Tensor.Bytes] and the conversions of half.go.
type Element interface {
	~float32 | ~float64 | ~int8 | ~int16 | ~int32 | ~int64 | ~uint8 | ~uint16 | ~uint32 | ~uint64 | ~bool | ~complex64 | ~complex128
}

// Tensor is a dense, row-major, contiguous array. The zero value is not usable. A Tensor is not
// safe for concurrent writes.
type Tensor struct {
	dtype DType
	shape []int
	bytes []byte
	strs  []string
	arena *Arena
}

// Len returns the number of elements of a shape: the product of its extents, 1 for rank 0. It
// returns an error when an extent is negative or the product does not fit an int; with an extent of
// 0 it is 0, whatever the others are.
func Len(shape []int) (int, error) {
	n := 1
	if slices.Contains(shape, 0) {
		n = 0
	}
	for _, d := range shape {
		if d < 0 {
			return 0, fmt.Errorf("shape %v: negative extent", shape)
		}
		if d != 0 && n > math.MaxInt/16/d {
			return 0, fmt.Errorf("shape %v: too many elements", shape)
		}
		n *= d
	}
	return n, nil
}

func mustLen(shape []int) int {
	n, err := Len(shape)
	if err != nil {
		panic("tensor: " + err.Error())
	}
	return n
}

// alignedBytes returns n zeroed bytes of Go memory whose first byte lies on a 64-byte boundary.
func alignedBytes(n int) []byte {
	const align = 64
	buf := make([]byte, n+align-1)
	off := int(-uintptr(unsafe.Pointer(unsafe.SliceData(buf))) & (align - 1))
	return buf[off : off+n : off+n]
}

// New returns a zeroed tensor in Go memory. It panics when the shape is not valid or the element
// type unknown.
func New(d DType, shape ...int) *Tensor {
	n := mustLen(shape)
	t := &Tensor{dtype: d, shape: slices.Clone(shape)}
	switch {
	case d == String:
		t.strs = make([]string, n)
	case d.Bits() == 0:
		panic(fmt.Sprintf("tensor: New of element type %v", d))
	default:
		t.bytes = alignedBytes(d.ByteLen(n))
	}
	return t
}

// Of returns a tensor over data, shared and not copied. It panics when the shape does not hold
// len(data) elements.
func Of[T Element](data []T, shape ...int) *Tensor {
	if n := mustLen(shape); n != len(data) {
		panic(fmt.Sprintf("tensor: shape %v holds %d elements, data has %d", shape, n, len(data)))
	}
	return &Tensor{dtype: dtypeOf[T](), shape: slices.Clone(shape), bytes: bytesOf(data)}
}

// Scalar returns a rank-0 tensor.
func Scalar[T Element](v T) *Tensor { return Of([]T{v}) }

// OfStrings returns a string tensor over data, shared and not copied.
func OfStrings(data []string, shape ...int) *Tensor {
	if n := mustLen(shape); n != len(data) {
		panic(fmt.Sprintf("tensor: shape %v holds %d elements, data has %d", shape, n, len(data)))
	}
	return &Tensor{dtype: String, shape: slices.Clone(shape), strs: data}
}

// OfBytes returns a tensor of any non-string type over little-endian row-major bytes, shared and
// not copied.
func OfBytes(d DType, b []byte, shape ...int) (*Tensor, error) {
	n, err := Len(shape)
	if err != nil {
		return nil, err
	}
	if d.Bits() == 0 {
		return nil, fmt.Errorf("tensor of %v from bytes: not a fixed-width type", d)
	}
	if want := d.ByteLen(n); len(b) != want {
		return nil, fmt.Errorf("tensor %v%v needs %d bytes, got %d", d, shape, want, len(b))
	}
	return &Tensor{dtype: d, shape: slices.Clone(shape), bytes: b}, nil
}

// DType returns the element type.
func (t *Tensor) DType() DType { return t.dtype }

// Shape returns the extents. The caller must not change them.
func (t *Tensor) Shape() []int { return t.shape }

// Rank returns the number of axes.
func (t *Tensor) Rank() int { return len(t.shape) }

// Len returns the number of elements.
func (t *Tensor) Len() int {
	n := 1
	for _, d := range t.shape {
		n *= d
	}
	return n
}

// Bytes returns the tensor's memory. It is shared. It is nil for string tensors. It panics when the
// arena behind the tensor is closed.
func (t *Tensor) Bytes() []byte {
	if t.arena != nil {
		t.arena.check()
	}
	return t.bytes
}

// Strings returns the elements of a string tensor, shared. It panics for other types.
func (t *Tensor) Strings() []string {
	if t.dtype != String {
		panic(fmt.Sprintf("tensor: Strings of %v", t.dtype))
	}
	return t.strs
}

// Arena returns the arena that the tensor is a view of, or nil when it owns Go memory.
func (t *Tensor) Arena() *Arena { return t.arena }

// Data returns the elements as a shared slice. It panics when T is not the tensor's element type;
// uint16 also reads float16 and bfloat16 bits.
func Data[T Element](t *Tensor) []T {
	want := dtypeOf[T]()
	if t.dtype != want && !(want == Uint16 && (t.dtype == Float16 || t.dtype == BFloat16)) {
		panic(fmt.Sprintf("tensor: %v elements of a %v tensor", want, t.dtype))
	}
	b := t.Bytes()
	if len(b) == 0 {
		return nil
	}
	var zero T
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(b))), len(b)/int(unsafe.Sizeof(zero)))
}

// Float32s is Data[float32].
func (t *Tensor) Float32s() []float32 { return Data[float32](t) }

// Float64s is Data[float64].
func (t *Tensor) Float64s() []float64 { return Data[float64](t) }

// Int64s is Data[int64].
func (t *Tensor) Int64s() []int64 { return Data[int64](t) }

// Int32s is Data[int32].
func (t *Tensor) Int32s() []int32 { return Data[int32](t) }

// Bools is Data[bool].
func (t *Tensor) Bools() []bool { return Data[bool](t) }

// Reshape returns a view of the same memory under another shape. It panics when the number of
// elements differs.
func (t *Tensor) Reshape(shape ...int) *Tensor {
	if n := mustLen(shape); n != t.Len() {
		panic(fmt.Sprintf("tensor: reshape %v to %v", t.shape, shape))
	}
	v := *t
	v.shape = slices.Clone(shape)
	return &v
}

// Clone returns a copy in Go memory.
func (t *Tensor) Clone() *Tensor {
	c := New(t.dtype, t.shape...)
	copy(c.bytes, t.Bytes())
	copy(c.strs, t.strs)
	return c
}

// CopyFrom copies src's elements into t. It returns an error when type or shape differ.
func (t *Tensor) CopyFrom(src *Tensor) error {
	if t.dtype != src.dtype || !slices.Equal(t.shape, src.shape) {
		return fmt.Errorf("copy tensor: %v%v into %v%v", src.dtype, src.shape, t.dtype, t.shape)
	}
	copy(t.Bytes(), src.Bytes())
	copy(t.strs, src.strs)
	return nil
}

// String describes type and shape, not the elements.
func (t *Tensor) String() string { return fmt.Sprintf("%v%v", t.dtype, t.shape) }

func bytesOf[T Element](s []T) []byte {
	if len(s) == 0 {
		return []byte{}
	}
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(s))), len(s)*int(unsafe.Sizeof(s[0])))
}

func dtypeOf[T Element]() DType {
	var z T
	switch any(z).(type) {
	case float32:
		return Float32
	case float64:
		return Float64
	case int8:
		return Int8
	case int16:
		return Int16
	case int32:
		return Int32
	case int64:
		return Int64
	case uint8:
		return Uint8
	case uint16:
		return Uint16
	case uint32:
		return Uint32
	case uint64:
		return Uint64
	case bool:
		return Bool
	case complex64:
		return Complex64
	case complex128:
		return Complex128
	}
	panic(fmt.Sprintf("tensor: element type %T is not supported", z))
}
