package encoder_test

import (
	"testing"

	"github.com/onnxrl/onnxrl/models/encoder"
	"github.com/onnxrl/onnxrl/models/encoder/encodertest"
	"github.com/onnxrl/onnxrl/runtime/engine/testengines"
	"github.com/onnxrl/onnxrl/runtime/longtest"
)

func TestTransformer(t *testing.T) {
	longtest.Slow(t)
	n := 0
	for _, change := range []func(c *encoder.TransformerConfig){
		func(c *encoder.TransformerConfig) {},
		func(c *encoder.TransformerConfig) { c.Positions, c.Pool, c.NLayers = "sinusoidal", "mean", 2 },
		func(c *encoder.TransformerConfig) { c.Causal, c.Positions, c.Pool = false, "none", "mean" },
		func(c *encoder.TransformerConfig) {
			c.Causal, c.Pool, c.Dropout, c.Activation = false, "last", 0.1, "tanh"
		},
	} {
		c := encoder.TransformerDefaults()
		c.DModel, c.NLayers, c.NHeads = 8, 1, 2
		change(&c)
		e, err := encoder.NewTransformer(c)
		if err != nil {
			t.Fatal(err)
		}
		r := encodertest.Run(t, encodertest.Suite{Encoder: e, Engines: testengines.All(t), Shapes: [][]int{{5, 3}, {4, 2, 3}}})
		if r.Causal == 0 || (r.Masks > 0) != (c.Dropout > 0) {
			t.Errorf("%+v: %+v", c, r)
		}
		n++
	}
	if n != 4 {
		t.Errorf("%d configurations", n)
	}
}
