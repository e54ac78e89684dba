package tensor

import "fmt"

// Rows returns a view of rows [from, to) along the first axis, sharing memory and arena. It panics
// for rank 0, packed types and rows out of range.
func (t *Tensor) Rows(from, to int) *Tensor {
	if len(t.shape) == 0 || from < 0 || to < from || to > t.shape[0] {
		panic(fmt.Sprintf("tensor: rows [%d, %d) of %v", from, to, t))
	}
	v := *t
	v.shape = append([]int{to - from}, t.shape[1:]...)
	stride := 1
	for _, d := range t.shape[1:] {
		stride *= d
	}
	if t.dtype == String {
		v.strs = t.strs[from*stride : to*stride]
		return &v
	}
	size := t.dtype.Size() * stride
	if t.dtype.Size() == 0 {
		panic(fmt.Sprintf("tensor: rows of packed %v", t))
	}
	v.bytes = t.bytes[from*size : to*size : to*size]
	return &v
}
