//go:build cgo

package gradcheck_test

import (
	"testing"

	"github.com/onnxrl/onnxrl/runtime/engine"
	"github.com/onnxrl/onnxrl/runtime/ort"
	"github.com/onnxrl/onnxrl/runtime/ort/library"
)

// native opens ONNX Runtime.
func native(t *testing.T) []engine.Compiler {
	t.Helper()
	c, err := ort.New(t.Context(), ort.Options{Library: library.Options{AllowInstall: true}})
	if err != nil {
		t.Fatal(err)
	}
	return []engine.Compiler{c}
}
