package experiment

import (
	"github.com/onnxrl/onnxrl/agents"
	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/models/encoder"
)

// Kinds lists what documents can name: package kinds has those that come with onnxrl, to which a
// program may append its own.
type Kinds struct {
	Envs     []envs.Kind
	Agents   []agents.Kind
	Encoders []encoder.Kind
}
