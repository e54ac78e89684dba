package artifact_test

import (
	"context"
	"fmt"
	"log"
	"os"

	"github.com/onnxrl/onnxrl/models/artifact"
	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// A model is published twice, as a parent and its child; then prod is moved to the child.
func Example() {
	dir, err := os.MkdirTemp("", "store")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	s, err := artifact.Open(dir, artifact.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer s.Close()

	ctx := context.Background()
	publish := func(gain float32, aliases []string, parents ...string) artifact.Version {
		v, err := s.Publish(ctx, artifact.Draft{
			Manifest:   artifact.Manifest{Name: "amplifier", Kind: "model", Metrics: map[string]float64{"gain": float64(gain)}, Parents: parents},
			ModelBytes: amplifier(gain),
			Golden: &artifact.Golden{Inputs: map[string]*tensor.Tensor{"x": tensor.Of([]float32{1, 2}, 2)},
				Outputs: map[string]*tensor.Tensor{"y": tensor.Of([]float32{gain, 2 * gain}, 2)}},
			Aliases: aliases,
		})
		if err != nil {
			log.Fatal(err)
		}
		return v
	}
	old := publish(1, []string{"prod"})
	publish(2, nil, old.Digest)
	v, err := s.Alias(ctx, "amplifier:latest", "prod")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(v.Manifest.Name, v.Aliases, v.Manifest.Inputs[0].Name, v.Manifest.Inputs[0].Shape)

	line, err := s.Lineage("amplifier:prod")
	if err != nil {
		log.Fatal(err)
	}
	for _, a := range line {
		fmt.Println(a.Depth, "gain", a.Version.Manifest.Metrics["gain"])
	}
	// Output:
	// amplifier [latest prod] x [2]
	// 0 gain 2
	// 1 gain 1
}

// amplifier is y = gain · x.
func amplifier(gain float32) []byte {
	b := onnx.NewBuilder("amplifier", 18)
	x := b.Input("x", onnx.TypeOf(tensor.Float32, 2))
	b.Output(b.Rename(b.Op("Mul", []onnx.Value{x, b.Initializer("gain", tensor.Scalar(gain))}), "y"), onnx.TypeOf(tensor.Float32, 2))
	m, err := b.Model()
	if err != nil {
		log.Fatal(err)
	}
	text, err := onnx.Marshal(m)
	if err != nil {
		log.Fatal(err)
	}
	return text
}
