package encoder_test

import (
	"fmt"
	"log"

	"github.com/onnxrl/onnxrl/configs"
	"github.com/onnxrl/onnxrl/models/encoder"
	"github.com/onnxrl/onnxrl/models/layer"
	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/rng"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// gatedConfig is what a document may say of the encoder: encoder: {kind: gated, width: 32}.
type gatedConfig struct {
	Width int `yaml:"width"`
}

func (c gatedConfig) Validate() error {
	var p configs.Problems
	p.AtLeast("width", c.Width, 1)
	return p.Err()
}

// gated is one layer, half of which decides how much of the other half passes.
type gated struct{ c gatedConfig }

func (e gated) Config() any { return e.c }

func (e gated) Build(g *layer.Graph, x onnx.Value) (onnx.Value, error) {
	if err := encoder.CheckInput(g, x, 2); err != nil {
		return "", err
	}
	return g.GLU(g.Linear("fc", x, 2*e.c.Width, layer.Orthogonal(1))), g.Err()
}

// gatedKind is appended to the list of encoders that documents can name.
var gatedKind = encoder.Kind{Name: "gated", New: func(params configs.Section) (encoder.Encoder, error) {
	c := gatedConfig{Width: 16}
	if err := params.Decode(&c); err != nil {
		return nil, err
	}
	return gated{c}, nil
}}

// A user-defined encoder is configured as a document does, and built into a graph.
func Example() {
	doc, err := configs.Parse("run.yaml", []byte("encoder: {kind: gated, width: 3}"))
	if err != nil {
		log.Fatal(err)
	}
	var c struct {
		Encoder configs.Kinded `yaml:"encoder"`
	}
	if err := doc.Decode(&c); err != nil {
		log.Fatal(err)
	}
	e, err := encoder.New([]encoder.Kind{gatedKind}, c.Encoder)
	if err != nil {
		log.Fatal(err)
	}
	g := layer.New("features", rng.New(1), layer.Options{})
	y, err := e.Build(g, g.Batched("x", tensor.Float32, 5))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(g.Dims(y))
	for _, p := range g.Params() {
		fmt.Println(p.Name, p.Shape)
	}
	// Output:
	// [batch 3]
	// fc.weight [6 5]
	// fc.bias [6]
}
