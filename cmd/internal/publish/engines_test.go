package publish

import (
	"errors"
	"testing"

	"onnxrl/runtime/engine"
	"onnxrl/runtime/ort"
	"onnxrl/runtime/ort/library"
	"onnxrl/runtime/portable"
)

// engines returns the portable engine and, in builds with cgo, ONNX Runtime.
func engines(t *testing.T) []engine.Compiler {
	t.Helper()
	list := []engine.Compiler{portable.New()}
	c, err := ort.New(t.Context(), ort.Options{Library: library.Options{AllowInstall: true}})
	switch {
	case err == nil:
		list = append(list, c)
	case !errors.Is(err, ort.ErrUnavailable):
		t.Fatal(err)
	}
	return list
}
