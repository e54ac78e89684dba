package encoder_test

import (
	"slices"
	"testing"

	"github.com/onnxrl/onnxrl/models"
	"github.com/onnxrl/onnxrl/models/encoder"
	"github.com/onnxrl/onnxrl/models/encoder/encodertest"
	"github.com/onnxrl/onnxrl/models/layer"
	"github.com/onnxrl/onnxrl/runtime/engine/testengines"
	"github.com/onnxrl/onnxrl/runtime/gradcheck"
	"github.com/onnxrl/onnxrl/runtime/longtest"
	"github.com/onnxrl/onnxrl/runtime/rng"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

func smallTimeFormer(t *testing.T, change func(c *encoder.TimeFormerConfig)) *encoder.TimeFormer {
	t.Helper()
	c := encoder.TimeFormerDefaults()
	c.DModel, c.NLayers, c.NHeads, c.FFMult = 8, 1, 2, 2
	change(&c)
	e, err := encoder.NewTimeFormer(c)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func TestTimeFormer(t *testing.T) {
	longtest.Slow(t)
	n := 0
	for _, change := range []func(c *encoder.TimeFormerConfig){
		func(c *encoder.TimeFormerConfig) {},
		func(c *encoder.TimeFormerConfig) { c.NLayers, c.Timestamps, c.Pool = 2, 1, "mean" },
		func(c *encoder.TimeFormerConfig) { c.NHeads, c.Dropout, c.Activation = 4, 0.1, "tanh" },
	} {
		e := smallTimeFormer(t, change)
		c := e.Config().(encoder.TimeFormerConfig)
		r := encodertest.Run(t, encodertest.Suite{Encoder: e, Engines: testengines.All(t), Shapes: [][]int{{5, 3}, {4, 2, 3}}})
		if r.Causal == 0 || (r.Masks > 0) != (c.Dropout > 0) {
			t.Errorf("%+v: %+v", c, r)
		}
		n++
	}
	if n != 3 {
		t.Errorf("%d configurations", n)
	}
}

// TestTimeFormerAgainstTorch compares features and gradients with the paper's product of weights and decay,
// divided by its sum.
func TestTimeFormerAgainstTorch(t *testing.T) {
	engines := testengines.All(t)
	if n := encodertest.Torch(t, "testdata/timeformer.json", encoder.TimeFormerKind, engines); n != len(engines)*2596 {
		t.Errorf("%d elements compared", n)
	}
}

// TestTimeFormerDecay: with rates so fast that nothing before a step is left of its neighbours' influence, a
// window has the features of its last step alone; with the first rates it has not.
func TestTimeFormerDecay(t *testing.T) {
	const steps = 6
	x := tensor.New(tensor.Float32, 1, steps, 3)
	rng.New(2).Stream().FillNormal32(x.Float32s(), 0, 1)
	moved := x.Clone()
	for i := range moved.Float32s()[:(steps-1)*3] {
		moved.Float32s()[i]++
	}
	n := 0
	for _, rate := range []float32{0, 12} {
		g := layer.New("x", rng.New(3), layer.Options{})
		z, err := smallTimeFormer(t, func(*encoder.TimeFormerConfig) {}).Build(g, g.Observation("x", steps, 3))
		if err != nil {
			t.Fatal(err)
		}
		g.Output("z", z)
		_, values, err := g.Network(models.Options{})
		if err != nil {
			t.Fatal(err)
		}
		for i := range values["block0.decay"].Float32s() {
			values["block0.decay"].Float32s()[i] = rate
		}
		m, err := g.Model()
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range testengines.All(t) {
			var z [2][]float32
			for i, in := range []*tensor.Tensor{x, moved} {
				out, err := gradcheck.Run(t.Context(), c, m, map[string]*tensor.Tensor{"x": in})
				if err != nil {
					t.Fatal(err)
				}
				z[i] = out["z"].Float32s()
			}
			if same := slices.Equal(z[0], z[1]); same != (rate > 0) {
				t.Errorf("%s: with a rate of e^%v, features without the earlier steps are the same: %v", c.Name(), rate, same)
			}
			n++
		}
	}
	if n != 2*len(testengines.All(t)) {
		t.Errorf("%d engines", n)
	}
}
