package portable

import (
	"fmt"
	"unsafe"

	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// The element types that kernels are generic over.
type (
	float  interface{ ~float32 | ~float64 }
	signed interface {
		~int8 | ~int16 | ~int32 | ~int64
	}
	unsigned interface {
		~uint8 | ~uint16 | ~uint32 | ~uint64
	}
	integer interface{ signed | unsigned }
	number  interface{ float | integer }
)

// data returns the elements of t as T, which must be its element type.
func data[T tensor.Element](t *tensor.Tensor) []T { return tensor.Data[T](t) }

// byFloat picks the kernel of the first input's element type.
func byFloat(f32, f64 kernel) kernel {
	return func(c *call) error {
		switch d := c.arg(0).DType(); d {
		case tensor.Float32:
			return f32(c)
		case tensor.Float64:
			return f64(c)
		default:
			return unsupported("element type %v", d)
		}
	}
}

// elements is a tensor's memory for operators that only move elements: strings, or bytes with the
// size of an element.
type elements struct {
	bytes []byte
	strs  []string
	size  int
}

// elementsOf returns t's memory. Element types packed below a byte are refused.
func elementsOf(t *tensor.Tensor) (elements, error) {
	if t.DType() == tensor.String {
		return elements{strs: t.Strings()}, nil
	}
	size := t.DType().Size()
	if size == 0 {
		return elements{}, unsupported("element type %v", t.DType())
	}
	return elements{bytes: t.Bytes(), size: size}, nil
}

// copy copies n elements from src[from:] to e[at:].
func (e elements) copy(at int, src elements, from, n int) {
	if e.strs != nil {
		copy(e.strs[at:at+n], src.strs[from:from+n])
		return
	}
	s := e.size
	switch {
	case n == 1 && s == 4:
		*(*[4]byte)(e.bytes[4*at:]) = *(*[4]byte)(src.bytes[4*from:])
	case n == 1 && s == 8:
		*(*[8]byte)(e.bytes[8*at:]) = *(*[8]byte)(src.bytes[8*from:])
	default:
		copy(e.bytes[at*s:(at+n)*s], src.bytes[from*s:(from+n)*s])
	}
}

// word16 is a 16-byte element.
type word16 [16]byte

func wordsOf[T any](b []byte) []T {
	var z T
	n := len(b) / int(unsafe.Sizeof(z))
	if n == 0 {
		return nil
	}
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(b))), n)
}

// strided is a copy between two arrays seen through strides: for every index of shape, dst[do +
// i·ds] = src[so + i·ss]. A stride of 0 repeats, a negative one reverses. It is what transposing,
// slicing, expanding, padding, joining and splitting all come down to.
type strided struct {
	shape, ds, ss []int
	do, so        int
	idx           []int
}

// reset empties s, keeping its memory.
func (s *strided) reset() { s.shape, s.ds, s.ss, s.do, s.so = s.shape[:0], s.ds[:0], s.ss[:0], 0, 0 }

// axis appends an axis, which becomes the innermost so far. Axes that continue the one before in
// both arrays are merged with it.
func (s *strided) axis(n, ds, ss int) {
	if k := len(s.shape) - 1; k >= 0 && n != 1 {
		if s.shape[k] == 1 {
			s.shape[k], s.ds[k], s.ss[k] = n, ds, ss
			return
		}
		if s.ds[k] == n*ds && s.ss[k] == n*ss {
			s.shape[k], s.ds[k], s.ss[k] = s.shape[k]*n, ds, ss
			return
		}
	}
	if n == 1 && len(s.shape) > 0 {
		return
	}
	s.shape, s.ds, s.ss = append(s.shape, n), append(s.ds, ds), append(s.ss, ss)
}

// run copies. Every index must lie inside both arrays; Go's bounds checks enforce it.
func (s *strided) run(dst, src elements) {
	for _, n := range s.shape {
		if n == 0 {
			return
		}
	}
	if len(s.shape) == 0 {
		s.axis(1, 1, 1)
	}
	k := len(s.shape) - 1
	if s.shape[k] == 1 || s.ds[k] == 1 && s.ss[k] == 1 {
		n := s.shape[k]
		s.each(k, func(d, o int) { dst.copy(d, src, o, n) })
		return
	}
	switch {
	case dst.strs != nil:
		stridedRun(s, dst.strs, src.strs)
	case dst.size == 1:
		stridedRun(s, dst.bytes, src.bytes)
	case dst.size == 2:
		stridedRun(s, wordsOf[uint16](dst.bytes), wordsOf[uint16](src.bytes))
	case dst.size == 4:
		stridedRun(s, wordsOf[uint32](dst.bytes), wordsOf[uint32](src.bytes))
	case dst.size == 8:
		stridedRun(s, wordsOf[uint64](dst.bytes), wordsOf[uint64](src.bytes))
	default:
		stridedRun(s, wordsOf[word16](dst.bytes), wordsOf[word16](src.bytes))
	}
}

// each calls f with the offsets of every index of the first k axes.
func (s *strided) each(k int, f func(d, o int)) {
	s.idx = resize(s.idx, k)
	clear(s.idx)
	d, o := s.do, s.so
	for {
		f(d, o)
		a := k - 1
		for ; a >= 0; a-- {
			s.idx[a]++
			d, o = d+s.ds[a], o+s.ss[a]
			if s.idx[a] < s.shape[a] {
				break
			}
			d, o, s.idx[a] = d-s.shape[a]*s.ds[a], o-s.shape[a]*s.ss[a], 0
		}
		if a < 0 {
			return
		}
	}
}

func stridedRun[T any](s *strided, dst, src []T) {
	k := len(s.shape) - 1
	n, ds, ss := s.shape[k], s.ds[k], s.ss[k]
	s.each(k, func(d, o int) {
		switch {
		case ds == 1 && ss == 0:
			v, row := src[o], dst[d:d+n]
			for i := range row {
				row[i] = v
			}
		case ds == 1:
			row := dst[d : d+n]
			for i := range row {
				row[i] = src[o]
				o += ss
			}
		default:
			for range n {
				dst[d] = src[o]
				d, o = d+ds, o+ss
			}
		}
	})
}

// resize returns s with length n, its memory kept where it is large enough.
func resize(s []int, n int) []int {
	if cap(s) < n {
		return make([]int, n)
	}
	return s[:n]
}

// rowMajor fills dst with the strides of a contiguous array of the given shape.
func rowMajor(dst, shape []int) []int {
	dst = resize(dst, len(shape))
	n := 1
	for i := len(shape) - 1; i >= 0; i-- {
		dst[i] = n
		n *= shape[i]
	}
	return dst
}

// product multiplies extents.
func product(s []int) int {
	n := 1
	for _, v := range s {
		n *= v
	}
	return n
}

// normAxis maps a possibly negative axis into [0, rank).
func normAxis(axis, rank int) (int, error) {
	if axis < -rank || axis >= rank {
		return 0, fmt.Errorf("axis %d is out of range for rank %d", axis, rank)
	}
	if axis < 0 {
		axis += rank
	}
	return axis, nil
}

// intsOf appends the elements of an integer tensor.
func intsOf(dst []int, t *tensor.Tensor) ([]int, error) {
	switch t.DType() {
	case tensor.Int64:
		for _, v := range t.Int64s() {
			dst = append(dst, int(v))
		}
	case tensor.Int32:
		for _, v := range t.Int32s() {
			dst = append(dst, int(v))
		}
	default:
		return nil, fmt.Errorf("expected integers, got %v", t)
	}
	return dst, nil
}
