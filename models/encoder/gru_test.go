package encoder_test

import (
	"testing"

	"github.com/onnxrl/onnxrl/models/encoder"
	"github.com/onnxrl/onnxrl/models/encoder/encodertest"
	"github.com/onnxrl/onnxrl/runtime/engine/testengines"
)

func TestGRU(t *testing.T) {
	n := 0
	for _, c := range []encoder.GRUConfig{{Hidden: 4, Layers: 1, Pool: "last"}, {Hidden: 3, Layers: 2, Pool: "mean"}} {
		e, err := encoder.NewGRU(c)
		if err != nil {
			t.Fatal(err)
		}
		r := encodertest.Run(t, encodertest.Suite{Encoder: e, Engines: testengines.All(t), Shapes: [][]int{{5, 3}, {4, 2, 3}}})
		if r.Causal == 0 {
			t.Errorf("%+v: %+v", c, r)
		}
		n++
	}
	if n != 2 {
		t.Errorf("%d configurations", n)
	}
}
