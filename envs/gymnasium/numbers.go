package gymnasium

import "unsafe"

// numbers returns the elements that lie in b, which must begin where one may and hold whole ones.
// It is not a tensor's job here: rows are looked at in every step, and it allocates nothing.
func numbers[T int64 | float32 | float64](b []byte) []T {
	if len(b) == 0 {
		return nil
	}
	var one T
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(b))), len(b)/int(unsafe.Sizeof(one)))
}
