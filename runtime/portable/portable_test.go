package portable_test

import (
	"testing"

	"github.com/onnxrl/onnxrl/runtime/engine"
	"github.com/onnxrl/onnxrl/runtime/engine/enginetest"
	"github.com/onnxrl/onnxrl/runtime/portable"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// config is what the engine can do.
var config = enginetest.Config{
	Open: func(*testing.T) engine.Compiler { return portable.New() },
	DTypes: []tensor.DType{
		tensor.Float32, tensor.Float64, tensor.Float16, tensor.BFloat16, tensor.Bool, tensor.String,
		tensor.Int8, tensor.Int16, tensor.Int32, tensor.Int64, tensor.Uint8, tensor.Uint16, tensor.Uint32, tensor.Uint64,
	},
	Interrupts: true,
}

func TestSuite(t *testing.T) { enginetest.Run(t, config) }

func TestSuiteShared(t *testing.T) { enginetest.Run(t, enginetest.Shared(config)) }
