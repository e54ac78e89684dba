//go:build cgo

package ort

import (
	"fmt"
	"reflect"
	"unsafe"

	onnxruntime "github.com/yalue/onnxruntime_go"

	"github.com/onnxrl/onnxrl/runtime/ort/internal/capi"
)

// onnxruntime_go keeps the handles of its objects in unexported fields, and gives
// no other way to reach them. Each of these types starts with its handle, which
// checkLayout verifies before anything is read.

func sessionHandle(s *onnxruntime.DynamicAdvancedSession) capi.Handle {
	inner := *(*unsafe.Pointer)(unsafe.Pointer(s)) // *AdvancedSession
	return *(*capi.Handle)(inner)
}

func optionsHandle(o *onnxruntime.SessionOptions) capi.Handle {
	return *(*capi.Handle)(unsafe.Pointer(o))
}

func runOptionsHandle(o *onnxruntime.RunOptions) capi.Handle {
	return *(*capi.Handle)(unsafe.Pointer(o))
}

func bindingHandle(b *onnxruntime.IoBinding) capi.Handle {
	return *(*capi.Handle)(unsafe.Pointer(b))
}

// checkLayout fails if another release of onnxruntime_go stores its handles
// elsewhere.
func checkLayout() error {
	for _, c := range []struct {
		of    any
		field string
	}{
		{onnxruntime.DynamicAdvancedSession{}, "s"},
		{onnxruntime.AdvancedSession{}, "ortSession"},
		{onnxruntime.SessionOptions{}, "o"},
		{onnxruntime.RunOptions{}, "o"},
		{onnxruntime.IoBinding{}, "o"},
	} {
		t := reflect.TypeOf(c.of)
		if t.NumField() == 0 || t.Field(0).Name != c.field || t.Field(0).Type.Kind() != reflect.Pointer {
			return fmt.Errorf("onnxruntime_go: %s does not start with the handle %q", t, c.field)
		}
	}
	return nil
}
