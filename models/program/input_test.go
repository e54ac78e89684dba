package program

import (
	"testing"

	"github.com/onnxrl/onnxrl/models"
	"github.com/onnxrl/onnxrl/runtime/autodiff"
	"github.com/onnxrl/onnxrl/runtime/engine"
)

// TestGradientsOfInputs asks for the gradient of a batched input beside those of the parameters:
// every shard fills its rows.
func TestGradientsOfInputs(t *testing.T) {
	n := 0
	engines(t, func(t *testing.T, c engine.Compiler) {
		var x, w []float32
		for _, shards := range []int{1, 2, 4} {
			net, values, err := models.FromModel(mlp(t, false), models.Options{})
			if err != nil {
				t.Fatal(err)
			}
			params, err := models.NewParams(net, nil)
			if err != nil {
				t.Fatal(err)
			}
			if err := params.Load(values); err != nil {
				t.Fatal(err)
			}
			p, err := New(net, params, Config{
				Engine: c, Batch: 12, BatchSymbol: "batch", Shards: shards,
				Objectives: []autodiff.Objective{{Losses: []autodiff.Loss{{Value: "loss"}}, Wrt: []string{"x", "fc1.weight", "fc1.bias", "fc2.weight", "fc2.bias"}}},
			})
			if err != nil {
				t.Fatal(err)
			}
			fillBatch(p)
			if err := p.Run(); err != nil {
				t.Fatal(err)
			}
			gx, gw := p.Output("grad/x"), p.Gradients(0).Floats()
			if gx.Shape()[0] != 12 || gx.Shape()[1] != 5 {
				t.Fatalf("%d shards: the gradient of x is %v", shards, gx)
			}
			if shards == 1 {
				x, w = append(x, gx.Float32s()...), append(w, gw...)
			}
			if i, bad := differs(x, gx.Float32s()); bad {
				t.Errorf("%d shards: element %d of the gradient of x is %g, want %g", shards, i, gx.Float32s()[i], x[i])
			}
			if i, bad := differs(w, gw); bad {
				t.Errorf("%d shards: gradient %d is %g, want %g", shards, i, gw[i], w[i])
			}
			if err := p.Close(); err != nil {
				t.Error(err)
			}
			if err := params.Close(); err != nil {
				t.Error(err)
			}
			n++
		}
	})
	if n < 3 {
		t.Errorf("%d programs", n)
	}
}
