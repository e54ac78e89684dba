package tensor

import "unsafe"

// mapMemory allocates: WebAssembly has no mappings, and its memory does not move.
func mapMemory(n int) ([]byte, error) {
	b := make([]byte, n+Align-1)
	skip := (Align - int(uintptr(unsafe.Pointer(&b[0]))%Align)) % Align
	return b[skip : skip+n : skip+n], nil
}

func unmapMemory([]byte) error { return nil }
