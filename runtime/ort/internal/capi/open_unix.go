//go:build cgo && !windows

package capi

// #include <stdlib.h>
// #include "shim.h"
import "C"

import (
	"fmt"
	"unsafe"
)

func apiBase(path string) (unsafe.Pointer, error) {
	cPath := C.CString(path)
	defer C.free(unsafe.Pointer(cPath))
	base := C.onnxrl_open(cPath)
	if base == nil {
		return nil, fmt.Errorf("library %s has no OrtGetApiBase", path)
	}
	return base, nil
}
