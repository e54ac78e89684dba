package encoder_test

import (
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/models/encoder"
	"github.com/onnxrl/onnxrl/models/encoder/encodertest"
	"github.com/onnxrl/onnxrl/models/layer"
	"github.com/onnxrl/onnxrl/runtime/engine/testengines"
	"github.com/onnxrl/onnxrl/runtime/longtest"
	"github.com/onnxrl/onnxrl/runtime/rng"
)

func TestTimeCNN(t *testing.T) {
	longtest.Slow(t)
	n := 0
	for _, e := range []struct {
		change func(c *encoder.TimeCNNConfig)
		shared bool
	}{
		{func(c *encoder.TimeCNNConfig) {}, true},
		{func(c *encoder.TimeCNNConfig) { c.Pool = "last"; c.Residual = false }, true},
		{func(c *encoder.TimeCNNConfig) { c.Pool = "max"; c.NLayers = 1 }, true},
		{func(c *encoder.TimeCNNConfig) { c.Padding = "causal"; c.Pool = "last" }, true},
		{func(c *encoder.TimeCNNConfig) { c.Padding = "causal"; c.Dilation = 2; c.Kernel = 2 }, false},
		{func(c *encoder.TimeCNNConfig) { c.Padding = "same" }, false},
		{func(c *encoder.TimeCNNConfig) { c.Kernel = 1; c.Dropout = 0.2 }, false},
	} {
		c := encoder.TimeCNNDefaults()
		c.DModel, c.NLayers = 6, 2
		e.change(&c)
		cnn, err := encoder.NewTimeCNN(c)
		if err != nil {
			t.Fatal(err)
		}
		r := encodertest.Run(t, encodertest.Suite{Encoder: cnn, Engines: testengines.All(t), Shapes: [][]int{{8, 3}, {7, 2, 6}}})
		if r.Causal == 0 || (r.Shared > 100) != e.shared || (cnn.Shares(8) == nil) != e.shared || (r.Masks > 0) != (c.Dropout > 0) {
			t.Errorf("%+v: %+v", c, r)
		}
		n++
	}
	if n != 7 {
		t.Errorf("%d configurations", n)
	}
}

// TestTimeCNNTooShort asks for windows that the convolutions do not fit into.
func TestTimeCNNTooShort(t *testing.T) {
	cnn, err := encoder.NewTimeCNN(encoder.TimeCNNDefaults())
	if err != nil {
		t.Fatal(err)
	}
	if cnn.Receptive() != 7 {
		t.Errorf("receptive field %d", cnn.Receptive())
	}
	g := layer.New("x", rng.New(1), layer.Options{})
	if _, err := cnn.Build(g, g.Observation("x", 6, 3)); err == nil || !strings.Contains(err.Error(), "sees 7 steps") || !strings.Contains(err.Error(), "window of 6") {
		t.Errorf("a window of 6: %v", err)
	}
	if _, err := cnn.Build(g, g.Observation("y", 6)); err == nil || !strings.Contains(err.Error(), "float32[batch,6]") {
		t.Errorf("no window: %v", err)
	}
	if _, err := cnn.BuildShared(g, g.Observation("z", 19, 3), 20); err == nil || !strings.Contains(err.Error(), "there are 19 rows") {
		t.Errorf("too few rows: %v", err)
	}
	if err := cnn.Shares(6); err == nil {
		t.Error("it shares windows that it does not fit into")
	}
}
