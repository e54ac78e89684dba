//go:build cgo

package ort_test

import (
	"testing"

	"github.com/onnxrl/onnxrl/runtime/engine"
	"github.com/onnxrl/onnxrl/runtime/engine/enginetest"
	"github.com/onnxrl/onnxrl/runtime/ort"
	"github.com/onnxrl/onnxrl/runtime/ort/library"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

func open(t testing.TB) engine.Compiler {
	t.Helper()
	e, err := ort.New(t.Context(), ort.Options{Library: library.Options{AllowInstall: true}})
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// config is what the engine can do.
var config = enginetest.Config{
	Open: func(t *testing.T) engine.Compiler { return open(t) },
	DTypes: []tensor.DType{
		tensor.Float32, tensor.Float64, tensor.Float16, tensor.BFloat16, tensor.Bool, tensor.String,
		tensor.Int8, tensor.Int16, tensor.Int32, tensor.Int64, tensor.Uint8, tensor.Uint16, tensor.Uint32, tensor.Uint64,
	},
	Interrupts: true,
}

func TestSuite(t *testing.T) {
	for _, c := range []enginetest.Config{config, enginetest.Shared(config)} {
		enginetest.Run(t, c)
		if l := ort.Live(); l != (ort.Objects{}) {
			t.Errorf("native objects are left: %+v", l)
		}
	}
}
