//go:build cgo

package capi

/*
#cgo CFLAGS: -O3 -Wall
#cgo linux LDFLAGS: -ldl
#include <stdlib.h>
#include "shim.h"
*/
import "C"

import (
	"fmt"
	"runtime"
	"strings"
	"sync"
	"unsafe"
)

// APIVersion is the version of the function table that this package indexes. It
// is what onnxruntime_go asks for as well.
const APIVersion = 24

// Handle is an object of ONNX Runtime.
type Handle = unsafe.Pointer

// Code is ONNX Runtime's class of an error.
type Code int

// The codes that callers decide by.
const (
	CodeFail            Code = 1
	CodeInvalidArgument Code = 2
	CodeNoSuchFile      Code = 3
	CodeInvalidProtobuf Code = 7
	CodeNotImplemented  Code = 9
	CodeInvalidGraph    Code = 10
)

// Error is a failed call.
type Error struct {
	Code    Code
	Message string // ONNX Runtime's own words
}

func (e *Error) Error() string { return e.Message }

var (
	initOnce sync.Once
	initErr  error
)

// Init finds the function table of the library at path, which onnxruntime_go has
// loaded before. It must succeed once before anything else is called.
func Init(path string) error {
	initOnce.Do(func() {
		base, err := apiBase(path)
		if err != nil {
			initErr = err
			return
		}
		switch C.onnxrl_init(base, APIVersion) {
		case 0:
		case 2:
			initErr = fmt.Errorf("library %s does not serve API version %d", path, APIVersion)
		default:
			initErr = fmt.Errorf("library %s gives no API", path)
		}
	})
	return initErr
}

// check turns a status into an error and frees it.
func check(status unsafe.Pointer) error {
	if status == nil {
		return nil
	}
	err := &Error{
		Code:    Code(C.onnxrl_status_code(status)),
		Message: strings.TrimSpace(C.GoString(C.onnxrl_status_message(status))),
	}
	C.onnxrl_status_release(status)
	return err
}

// LiveValues returns the number of tensors of ONNX Runtime that this package made
// or received and has not released.
func LiveValues() int { return int(C.onnxrl_live_values()) }

// PreserveFloatMode runs f on one thread and restores the thread's floating-point
// mode afterwards. ONNX Runtime changes it when it creates the first session that
// asks for flushing.
func PreserveFloatMode(f func()) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	mode := C.onnxrl_float_mode()
	defer C.onnxrl_set_float_mode(mode)
	f()
}

// FloatMode returns the floating-point control register of the calling thread.
func FloatMode() uint64 { return uint64(C.onnxrl_float_mode()) }

func flag(b bool) C.int {
	if b {
		return 1
	}
	return 0
}

// SetDeterministic asks for kernels whose results do not depend on scheduling.
func SetDeterministic(options Handle) error { return check(C.onnxrl_deterministic(options)) }

// AddExternal gives session options the contents of initializers that the model
// declares as external data. The values' memory must stay until the session is
// made.
func AddExternal(options Handle, names Names, values []Handle) error {
	if len(values) == 0 {
		return nil
	}
	return check(C.onnxrl_add_external(options, names.list(), unsafe.Pointer(unsafe.SliceData(values)), C.size_t(len(values))))
}

// Providers lists the execution providers that the library was built with.
func Providers() ([]string, error) {
	var names **C.char
	var n C.int
	if err := check(C.onnxrl_providers(&names, &n)); err != nil {
		return nil, err
	}
	defer C.onnxrl_release_providers(names, n)
	var out []string
	for _, s := range unsafe.Slice(names, int(n)) {
		out = append(out, C.GoString(s))
	}
	return out, nil
}

// BuildInfo is the library's own description of its build.
func BuildInfo() string { return C.GoString(C.onnxrl_build_info()) }
