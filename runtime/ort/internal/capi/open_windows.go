//go:build cgo

package capi

import (
	"fmt"
	"syscall"
	"unsafe"
)

func apiBase(path string) (unsafe.Pointer, error) {
	dll, err := syscall.LoadDLL(path)
	if err != nil {
		return nil, fmt.Errorf("library %s: %w", path, err)
	}
	proc, err := dll.FindProc("OrtGetApiBase")
	if err != nil {
		return nil, fmt.Errorf("library %s: %w", path, err)
	}
	addr := proc.Addr()
	// The address is code outside the Go heap; the detour through a pointer keeps
	// vet from taking it for a hidden Go pointer.
	return *(*unsafe.Pointer)(unsafe.Pointer(&addr)), nil
}
