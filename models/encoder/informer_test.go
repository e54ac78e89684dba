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

func TestInformer(t *testing.T) {
	longtest.Slow(t)
	n := 0
	for _, k := range []struct {
		change func(c *encoder.InformerConfig)
		shapes [][]int
		point  uint64
	}{
		{func(c *encoder.InformerConfig) {}, [][]int{{5, 3}, {4, 2, 3}}, 0},
		{func(c *encoder.InformerConfig) { c.Kernels, c.NLayers, c.Dropout = []int{1, 3}, 2, 0.1 }, [][]int{{5, 3}, {4, 2, 3}}, 0},
		// Two queries of three attend; at this point the step of a difference changes none of them.
		{func(c *encoder.InformerConfig) {
			c.Attention, c.Factor, c.NHeads, c.Timestamps, c.Pool = "probsparse", 1, 1, 1, "mean"
		}, [][]int{{3, 3}, {3, 2, 3}}, 18},
	} {
		c := encoder.InformerDefaults()
		c.DModel, c.NLayers, c.NHeads, c.DFF = 8, 1, 2, 12
		k.change(&c)
		e, err := encoder.NewInformer(c)
		if err != nil {
			t.Fatal(err)
		}
		r := encodertest.Run(t, encodertest.Suite{Encoder: e, Engines: testengines.All(t), Shapes: k.shapes, Point: k.point})
		if r.Causal == 0 || (r.Masks > 0) != (c.Dropout > 0) {
			t.Errorf("%+v: %+v", c, r)
		}
		n++
	}
	if n != 3 {
		t.Errorf("%d configurations", n)
	}
}

// TestInformerAgainstTorch compares features and gradients with torch.nn's layers, and with ProbSparse
// attention query by query.
func TestInformerAgainstTorch(t *testing.T) {
	engines := testengines.All(t)
	n := encodertest.Torch(t, "testdata/informer.json", encoder.InformerKind, engines)
	if n != len(engines)*3760 {
		t.Errorf("%d elements compared", n)
	}
}

// TestInformerTimestamps asks for more timestamps than there are features.
func TestInformerTimestamps(t *testing.T) {
	c := encoder.InformerDefaults()
	c.Timestamps = 3
	e, err := encoder.NewInformer(c)
	if err != nil {
		t.Fatal(err)
	}
	g := layer.New("x", rng.New(1), layer.Options{})
	if _, err := e.Build(g, g.Observation("x", 6, 3)); err == nil || !strings.Contains(err.Error(), "timestamps: the last 3 features") {
		t.Errorf("no values beside the timestamps: %v", err)
	}
}
