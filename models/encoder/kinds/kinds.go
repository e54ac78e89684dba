// Package kinds lists the encoders that come with the program. To add one, write its package and add its Kind here.
package kinds

import (
	"onnxrl/models/encoder"
	"onnxrl/models/encoder/file"
	"onnxrl/models/encoder/mlp"
	"onnxrl/models/encoder/timecnn"
	"onnxrl/models/encoder/transformer"
)

// All returns the encoders by name.
func All() []encoder.Kind {
	return []encoder.Kind{file.Kind, mlp.Kind, timecnn.Kind, transformer.Kind}
}
