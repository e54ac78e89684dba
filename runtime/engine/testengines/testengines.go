// Package testengines gives tests every engine that there is where they run. Packages other than
// programs do not choose engines, so only tests import it.
//
// # How to add an engine
//
// Append it to All; every test that asks for all engines then runs with it.
package testengines

import (
	"errors"
	"testing"

	"github.com/onnxrl/onnxrl/runtime/engine"
	"github.com/onnxrl/onnxrl/runtime/ort"
	"github.com/onnxrl/onnxrl/runtime/ort/library"
	"github.com/onnxrl/onnxrl/runtime/portable"
)

// All returns the portable engine and, where it can be had, ONNX Runtime, found or installed as the
// program does it. They end with the process. A library that is there and unusable fails the test.
func All(t testing.TB) []engine.Compiler {
	t.Helper()
	list := []engine.Compiler{portable.New()}
	c, err := ort.New(t.Context(), ort.Options{Library: library.Options{AllowInstall: true}})
	switch {
	case err == nil:
		list = append(list, c)
	case errors.Is(err, ort.ErrUnavailable):
		t.Logf("ONNX Runtime is not available here: %v", err)
	default:
		t.Fatal(err)
	}
	return list
}

// Fastest returns ONNX Runtime where it can be had, else the portable engine.
func Fastest(t testing.TB) engine.Compiler {
	t.Helper()
	list := All(t)
	return list[len(list)-1]
}

// Allocations is how many allocations a test of a training step's steady state must put up with:
// none on ONNX Runtime, and a few on the portable engine, which keeps buffers in pools that the
// garbage collector empties now and then, and whose larger products start goroutines.
func Allocations(c engine.Compiler) float64 {
	if c.Name() == portable.Name {
		return 20
	}
	return 0
}
