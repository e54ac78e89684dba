//go:build cgo

package ort

import (
	"maps"
	"slices"
	"testing"

	"github.com/onnxrl/onnxrl/runtime/onnx"
)

// SetHandOver makes models hand over their initializers from these sizes on, until
// the test ends.
func SetHandOver(t *testing.T, total, each int) {
	oldTotal, oldEach := handOverTotal, handOverEach
	handOverTotal, handOverEach = total, each
	t.Cleanup(func() { handOverTotal, handOverEach = oldTotal, oldEach })
}

// CloseBindings closes the bindings that nobody else can reach any more, and
// returns how many there were.
func CloseBindings(t *testing.T) int {
	bound.mu.Lock()
	lost := slices.Collect(maps.Keys(bound.open))
	bound.mu.Unlock()
	for _, b := range lost {
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	}
	return len(lost)
}

var CheckLayout = checkLayout

// Accept is what stands before ONNX Runtime.
func Accept(m *onnx.Model) error {
	_, err := accept(m)
	return err
}

// Unguarded hands models and data to ONNX Runtime as they are. Only a process that may die should
// ask for it.
func Unguarded(on bool) { unguarded = on }

var ProductsForConvs = productsForConvs
