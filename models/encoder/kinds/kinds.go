// Package kinds has the encoders that come with the program, and lists them: one in each file, and
// file, any ONNX model, in a package of its own.
//
// # How to add an encoder
//
// See package encoder. Its file and a place in [All] are all that it needs here.
package kinds

import (
	"github.com/onnxrl/onnxrl/models/encoder"
	"github.com/onnxrl/onnxrl/models/encoder/file"
)

// All returns the encoders by name.
func All() []encoder.Kind {
	return []encoder.Kind{file.Kind, GRUKind, InformerKind, MLPKind, SetKind, TimeCNNKind, TimeFormerKind, TimesNetKind, TransformerKind}
}
