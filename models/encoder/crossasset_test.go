package encoder_test

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/models/encoder"
	"github.com/onnxrl/onnxrl/models/layer"
	"github.com/onnxrl/onnxrl/runtime/engine/testengines"
	"github.com/onnxrl/onnxrl/runtime/gradcheck"
	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/rng"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

const assets, width = 4, 6

func configurations() []encoder.CrossAssetConfig {
	small := encoder.CrossAssetDefaults()
	small.NHeads = 2
	mlp := small
	mlp.Mix, mlp.NLayers, mlp.DModel, mlp.Activation = "mlp", 2, 5, "tanh"
	none := small
	none.Mix = "none"
	return []encoder.CrossAssetConfig{small, mlp, none}
}

func build(t *testing.T, c encoder.CrossAssetConfig, o layer.Options) (*layer.Graph, *onnx.Model) {
	t.Helper()
	g := layer.New("mix", rng.New(2), o)
	out, err := encoder.BuildCrossAsset(g.In("mix"), c, encoder.CrossAssetInputs{
		Features: g.Observation("features", assets, width), Position: g.Observation("position", assets), Cash: g.Observation("cash", 1), Valid: g.Batched("valid", tensor.Bool, assets),
	})
	if err != nil {
		t.Fatal(err)
	}
	// The sum of normalised features is always 0, and its gradient nothing but rounding; a weighted
	// sum is not.
	weights := tensor.New(tensor.Float32, g.Extent(out.Portfolio, -1))
	rng.New(4).Stream().FillNormal32(weights.Float32s(), 0, 1)
	g.Output("weighted", g.Mul(out.Portfolio, g.Const(weights)))
	g.Output("assets", out.Assets)
	g.Output("portfolio", out.Portfolio)
	m, err := g.Model()
	if err != nil {
		t.Fatal(err)
	}
	return g, m
}

func inputs(batch int) map[string]*tensor.Tensor {
	in := map[string]*tensor.Tensor{
		"features": tensor.New(tensor.Float32, batch, assets, width), "position": tensor.New(tensor.Float32, batch, assets), "cash": tensor.New(tensor.Float32, batch, 1),
		"valid": tensor.New(tensor.Bool, batch, assets),
	}
	s := rng.New(3).Stream()
	for _, name := range []string{"features", "position", "cash"} {
		s.FillNormal32(in[name].Float32s(), 0, 1)
	}
	for i := range in["valid"].Bools() {
		in["valid"].Bools()[i] = i%assets != 2 || i > assets
	}
	return in
}

func near(a, b []float32) bool {
	return slices.EqualFunc(a, b, func(x, y float32) bool { return math.Abs(float64(x-y)) <= 2e-5 })
}

func TestCrossAsset(t *testing.T) {
	n := 0
	for _, c := range configurations() {
		g, m := build(t, c, layer.Options{})
		if err := onnx.Check(m); err != nil {
			t.Fatal(err)
		}
		for _, e := range testengines.All(t) {
			const batch = 3
			in := inputs(batch)
			run := func(in map[string]*tensor.Tensor) (assets, portfolio []float32) {
				out, err := gradcheck.Run(t.Context(), e, m, in)
				if err != nil {
					t.Fatal(err)
				}
				return out["assets"].Float32s(), out["portfolio"].Float32s()
			}
			a, p := run(in)
			d := len(p) / batch
			if len(a) != batch*assets*d || c.DModel > 0 && d != c.DModel || c.DModel == 0 && d != width {
				t.Fatalf("%s: %d asset features, %d of the portfolio", c.Mix, len(a), len(p))
			}
			// Permuted assets give permuted features and the same portfolio.
			perm := []int{2, 0, 3, 1}
			moved := inputs(batch)
			for b := range batch {
				for i, from := range perm {
					copy(moved["features"].Float32s()[(b*assets+i)*width:][:width], in["features"].Float32s()[(b*assets+from)*width:])
					moved["position"].Float32s()[b*assets+i] = in["position"].Float32s()[b*assets+from]
					moved["valid"].Bools()[b*assets+i] = in["valid"].Bools()[b*assets+from]
				}
			}
			ma, mp := run(moved)
			for b := range batch {
				for i, from := range perm {
					n++
					if !near(ma[(b*assets+i)*d:][:d], a[(b*assets+from)*d:][:d]) {
						t.Errorf("%s on %s: permuting the assets changes an asset's features", c.Mix, e.Name())
					}
				}
			}
			if n++; !near(mp, p) {
				t.Errorf("%s on %s: permuting the assets changes the portfolio", c.Mix, e.Name())
			}
			// In row 0, asset 2 is not valid: what it holds must not matter to anybody else.
			hidden := inputs(batch)
			for i := range width {
				hidden["features"].Float32s()[2*width+i] = 50
			}
			ha, hp := run(hidden)
			for _, i := range []int{0, 1, 3} {
				if n++; !near(ha[i*d:][:d], a[i*d:][:d]) {
					t.Errorf("%s on %s: an asset that is not valid is seen by asset %d", c.Mix, e.Name(), i)
				}
			}
			if n++; !near(hp, p) {
				t.Errorf("%s on %s: an asset that is not valid counts in the portfolio", c.Mix, e.Name())
			}
			// A valid one is seen, except without mixing; position and cash matter always.
			seen := inputs(batch)
			seen["features"].Float32s()[3*width] += 1
			sa, sp := run(seen)
			if n++; near(sa[:d], a[:d]) != (c.Mix == "none") || near(sp, p) {
				t.Errorf("%s on %s: assets do not see each other as they should", c.Mix, e.Name())
			}
			for _, name := range []string{"position", "cash"} {
				more := inputs(batch)
				more[name].Float32s()[0] += 1
				ca, _ := run(more)
				if n++; near(ca[:d], a[:d]) {
					t.Errorf("%s on %s: %s does not matter", c.Mix, e.Name(), name)
				}
			}
			// Nothing valid at all must not be NaN.
			none := inputs(batch)
			clear(none["valid"].Bools())
			na, np := run(none)
			for _, v := range append(na, np...) {
				if v != v {
					t.Fatalf("%s on %s: NaN without any valid asset", c.Mix, e.Name())
				}
			}
			n++
			bound, err := onnx.BindDims(m, map[string]int{layer.Batch: 2})
			if err != nil {
				t.Fatal(err)
			}
			prob := gradcheck.Problem{Model: bound, Inputs: inputs(2), Wrt: []string{"features", "position", "cash"}, Outputs: []string{"weighted"}}
			for _, s := range g.Params() {
				prob.Wrt = append(prob.Wrt, s.Name)
			}
			if _, err := gradcheck.Check(t.Context(), e, prob, gradcheck.Options{}); err != nil {
				t.Errorf("%s on %s: %v", c.Mix, e.Name(), err)
			}
			n++
		}
	}
	if want := 3 * len(testengines.All(t)) * (12 + 1 + 3 + 1 + 1 + 2 + 1 + 1); n != want {
		t.Errorf("%d comparisons, expected %d", n, want)
	}
}

func TestWhatDoesNotFit(t *testing.T) {
	g := layer.New("x", rng.New(1), layer.Options{})
	f := g.Observation("f", assets, width)
	n := 0
	for _, c := range []struct {
		in     encoder.CrossAssetInputs
		change func(c *encoder.CrossAssetConfig)
		want   string
	}{
		{encoder.CrossAssetInputs{Features: g.Observation("flat", width)}, nil, "the features are float32[batch,6]"},
		{encoder.CrossAssetInputs{Features: f, Position: g.Observation("pos", assets+1)}, nil, "position is float32[batch,5], expected float32[batch,4]"},
		{encoder.CrossAssetInputs{Features: f, Cash: g.Observation("cash", 2)}, nil, "cash is float32[batch,2], expected float32[batch,1]"},
		{encoder.CrossAssetInputs{Features: f, Valid: g.Observation("valid", assets)}, nil, "valid is float32[batch,4], expected bool[batch,4]"},
		{encoder.CrossAssetInputs{Features: f}, func(c *encoder.CrossAssetConfig) { c.NHeads = 4 }, "4 heads do not divide the features' width of 6"},
		{encoder.CrossAssetInputs{Features: f}, func(c *encoder.CrossAssetConfig) { c.Mix = "mean" }, "attention"},
		{encoder.CrossAssetInputs{Features: f}, func(c *encoder.CrossAssetConfig) { c.DModel = 7; c.NHeads = 2 }, "must divide d_model, 7"},
	} {
		conf := encoder.CrossAssetDefaults()
		conf.NHeads = 1
		if c.change != nil {
			c.change(&conf)
		}
		if _, err := encoder.BuildCrossAsset(g, conf, c.in); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v does not mention %q", err, c.want)
		}
		n++
	}
	if n != 7 {
		t.Errorf("%d cases", n)
	}
}
