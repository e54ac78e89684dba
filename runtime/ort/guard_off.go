//go:build cgo && !(ortguard && unix)

package ort

import "unsafe"

// guards is the empty half of guard_on.go.
type guards struct{}

func (*guards) add(_ string, b []byte, _ bool) unsafe.Pointer {
	return unsafe.Pointer(unsafe.SliceData(b))
}
func (*guards) enter()   {}
func (*guards) leave()   {}
func (*guards) release() {}
