// Package testengines gives tests every engine that there is where they run. Packages other than
// programs do not choose engines, so only tests import it.
//
// # How to add an engine
//
// Append it to All; every test that asks for all engines then runs with it.
package testengines

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"

	"github.com/onnxrl/onnxrl/runtime/engine"
	"github.com/onnxrl/onnxrl/runtime/ort"
	"github.com/onnxrl/onnxrl/runtime/ort/library"
	"github.com/onnxrl/onnxrl/runtime/portable"
)

// kept is how many sessions that no test uses any more stay for the next one.
const kept = 64

// engines are those of the process.
var engines = sync.OnceValues(func() ([]engine.Compiler, error) {
	list := []engine.Compiler{engine.Share(portable.New(), kept)}
	c, err := ort.New(context.Background(), ort.Options{Library: library.Options{AllowInstall: true}})
	if err == nil {
		list = append(list, engine.Share(c, kept))
	}
	return list, err
})

// All returns the portable engine and, where it can be had, ONNX Runtime, found or installed as the
// program does it. They end with the process, and compile equal models once ([engine.Share]): tests
// make the same agent again and again. A library that is there and unusable fails the test.
func All(t testing.TB) []engine.Compiler {
	t.Helper()
	list, err := engines()
	switch {
	case errors.Is(err, ort.ErrUnavailable):
		t.Logf("ONNX Runtime is not available here: %v", err)
	case err != nil:
		t.Fatal(err)
	}
	return slices.Clone(list)
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
