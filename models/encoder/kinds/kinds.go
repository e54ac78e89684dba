// Package kinds lists the encoders that come with the program. To add one, write its package and
// add its Kind here.
package kinds

import (
	"github.com/onnxrl/onnxrl/models/encoder"
	"github.com/onnxrl/onnxrl/models/encoder/file"
	"github.com/onnxrl/onnxrl/models/encoder/gru"
	"github.com/onnxrl/onnxrl/models/encoder/informer"
	"github.com/onnxrl/onnxrl/models/encoder/mlp"
	"github.com/onnxrl/onnxrl/models/encoder/set"
	"github.com/onnxrl/onnxrl/models/encoder/timecnn"
	"github.com/onnxrl/onnxrl/models/encoder/timeformer"
	"github.com/onnxrl/onnxrl/models/encoder/timesnet"
	"github.com/onnxrl/onnxrl/models/encoder/transformer"
)

// All returns the encoders by name.
func All() []encoder.Kind {
	return []encoder.Kind{file.Kind, gru.Kind, informer.Kind, mlp.Kind, set.Kind, timecnn.Kind, timeformer.Kind, timesnet.Kind, transformer.Kind}
}
