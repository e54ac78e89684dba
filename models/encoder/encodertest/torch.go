package encodertest

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"os"
	"slices"
	"testing"

	"github.com/onnxrl/onnxrl/configs"
	"github.com/onnxrl/onnxrl/models"
	"github.com/onnxrl/onnxrl/models/encoder"
	"github.com/onnxrl/onnxrl/models/layer"
	"github.com/onnxrl/onnxrl/runtime/engine"
	"github.com/onnxrl/onnxrl/runtime/rng"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// torchCase is an encoder as PyTorch computes it, in double precision: cmd/peers/encoder_vectors.py
// writes files of them.
type torchCase struct {
	Name string
	// Encoder is its section of a configuration.
	Encoder json.RawMessage
	// Observation is the input, [batch, W, …, F].
	Observation array
	// Params are all parameters, by their names below the encoder's scope.
	Params map[string]array
	// Features are the result, and Grads the gradients of its product with Cotangent, by parameter.
	Features, Cotangent array
	Grads               map[string][]float32
}

// array is a tensor in a file.
type array struct {
	Shape []int
	Data  []float32
}

func (a array) tensor() *tensor.Tensor {
	t := tensor.New(tensor.Float32, a.Shape...)
	copy(t.Float32s(), a.Data)
	return t
}

// Torch compares encoders of a kind with the cases of a file, on every engine, within 1e-4 of the
// largest element of each tensor, and returns how many elements it compared. An encoder must have
// the parameters of its case and no others.
func Torch(t *testing.T, path string, kind encoder.Kind, engines []engine.Compiler) int {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var cases []torchCase
	if err := json.Unmarshal(data, &cases); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	n := 0
	for _, c := range cases {
		t.Run(c.Name, func(t *testing.T) {
			d, err := configs.Parse(path, fmt.Appendf(nil, `{"encoder": %s}`, c.Encoder))
			if err != nil {
				t.Fatal(err)
			}
			var section struct{ Encoder configs.Kinded }
			if err := d.Decode(&section); err != nil {
				t.Fatal(err)
			}
			e, err := encoder.New([]encoder.Kind{kind}, section.Encoder)
			if err != nil {
				t.Fatal(err)
			}
			r := &runner{T: t, Suite: Suite{Encoder: e}}
			g := layer.New("torch", rng.New(seed), layer.Options{})
			z, err := e.Build(g.In("encoder"), g.Observation("observation", c.Observation.Shape[1:]...))
			if err != nil {
				t.Fatal(err)
			}
			g.Output("features", z)
			_, values, err := g.Network(models.Options{})
			if err != nil {
				t.Fatal(err)
			}
			names := slices.Sorted(maps.Keys(values))
			if len(names) != len(c.Params) {
				t.Fatalf("%d parameters, PyTorch's has %d: %q", len(names), len(c.Params), names)
			}
			for _, name := range names {
				want, ok := c.Params[name[len("encoder."):]]
				if !ok || fmt.Sprint(want.Shape) != fmt.Sprint(values[name].Shape()) {
					t.Fatalf("parameter %q %v, PyTorch's is %v", name, values[name].Shape(), want.Shape)
				}
				// Initial values are the initializers of the model.
				copy(values[name].Float32s(), want.Data)
			}
			m, err := g.Model()
			if err != nil {
				t.Fatal(err)
			}
			for _, e := range engines {
				got := r.differentiated(e, m, c.Observation.Shape[0], names, c.Observation.tensor(), c.Cotangent.tensor())
				r.same("features on "+e.Name(), got["features"].Float32s(), c.Features.Data, 1e-4, &n)
				for _, name := range names {
					want := c.Grads[name[len("encoder."):]]
					if largest(want) < 1e-5 {
						// A gradient that is 0 in theory, as of a bias that a normalisation takes
						// out again, is rounding.
						if v := largest(got[name].Float32s()); v > 1e-4 || len(want) != got[name].Len() {
							t.Errorf("gradient of %s on %s reaches %v, expected none", name, e.Name(), v)
						}
						n += len(want)
						continue
					}
					r.same("gradient of "+name+" on "+e.Name(), got[name].Float32s(), want, 1e-4, &n)
				}
			}
		})
	}
	return n
}

func largest(x []float32) float64 {
	v := 0.0
	for _, e := range x {
		v = max(v, math.Abs(float64(e)))
	}
	return v
}
