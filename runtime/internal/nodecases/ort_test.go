//go:build cgo

package nodecases_test

import (
	"testing"

	"github.com/onnxrl/onnxrl/runtime/longtest"
	"github.com/onnxrl/onnxrl/runtime/ort"
	"github.com/onnxrl/onnxrl/runtime/ort/library"
)

func TestORT(t *testing.T) {
	longtest.Slow(t)
	e, err := ort.New(t.Context(), ort.Options{Library: library.Options{AllowInstall: true}})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	own(t, e)
	foreign(t, e, 1690)
}
