package encoder_test

import (
	"testing"

	"github.com/onnxrl/onnxrl/models/encoder"
	"github.com/onnxrl/onnxrl/models/encoder/encodertest"
	"github.com/onnxrl/onnxrl/runtime/engine/testengines"
)

func TestMLP(t *testing.T) {
	n := 0
	for _, c := range []encoder.MLPConfig{
		encoder.MLPDefaults(),
		{Hidden: []int{24, 12}, Activation: "gelu", Init: "fan_in", LayerNorm: true, Dropout: 0.5},
		{Hidden: []int{16}, Activation: "silu", Init: "xavier"},
		{Hidden: []int{16}, Activation: "tanh", Init: "kaiming"},
	} {
		e, err := encoder.NewMLP(c)
		if err != nil {
			t.Fatal(err)
		}
		r := encodertest.Run(t, encodertest.Suite{Encoder: e, Engines: testengines.All(t), Shapes: [][]int{{7}, {4, 3}, {4, 2, 3}}})
		if (r.Masks > 0) != (c.Dropout > 0) || r.Assets == 0 {
			t.Errorf("%+v: %+v", c, r)
		}
		n++
	}
	if n != 4 {
		t.Errorf("%d configurations", n)
	}
}
