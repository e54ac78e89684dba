//go:build !cgo

package gradcheck_test

import (
	"testing"

	"github.com/onnxrl/onnxrl/runtime/engine"
)

// native is empty: ONNX Runtime needs cgo.
func native(*testing.T) []engine.Compiler { return nil }
