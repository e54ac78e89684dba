package bake

import (
	"errors"
	"math"
	"path/filepath"
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/models"
	"github.com/onnxrl/onnxrl/models/head"
	"github.com/onnxrl/onnxrl/models/layer"
	"github.com/onnxrl/onnxrl/runtime/engine"
	"github.com/onnxrl/onnxrl/runtime/engine/testengines"
	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/onnx/shape"
	"github.com/onnxrl/onnxrl/runtime/portable"
	"github.com/onnxrl/onnxrl/runtime/rng"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

const (
	window, assets, features = 4, 3, 5
	alternatives             = 3
)

// scaling has the difficulties of real features: volumes, prices far from 0 with a small spread,
// limits, a feature that is passed on and a flag that is always known.
func scaling() Affine {
	return Affine{
		Input: "window",
		Mean:  []float64{3.1e8, 99.7, 0.001, 0, 0}, Std: []float64{1.7e8, 2.5, 0.013, 1, 1},
		Clip: []float64{0, 3, 0, 0, 0}, Keep: []bool{false, false, false, false, true},
	}
}

func scaled() Wrapper {
	a := scaling()
	return &a
}

// policy is a policy for masked choices of 3 assets, with a critic. gain is that of the logits.
func policy(t *testing.T, gain float64) (*models.Network, *models.Params) {
	t.Helper()
	g := layer.New("policy", rng.New(3), layer.Options{})
	x, position := g.Observation("window", window, assets, features), g.Observation("position", assets)
	mask := g.Batched("mask", tensor.Bool, assets*alternatives)
	z := g.Concat(1, g.Reshape(x, -1, window*assets*features), position)
	z = g.In("body").MLP(z, []int{32}, "tanh", layer.Orthogonal(1))
	c := head.NewCategorical(g, head.Logits(g, z, layer.Orthogonal(gain), alternatives, alternatives, alternatives), mask, alternatives, alternatives, alternatives)
	g.Output("action", c.Mode())
	g.Output("log_probs", c.LogProbs)
	g.Output("value", g.Squeeze(g.Linear("value", z, 1, layer.Orthogonal(1)), 1))
	net, values, err := g.Network(models.Options{})
	if err != nil {
		t.Fatal(err)
	}
	params, err := models.NewParams(net, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { params.Close() })
	if err := params.Load(values); err != nil {
		t.Fatal(err)
	}
	return net, params
}

// recorded returns observations as the policy is trained on them, with records that are not known.
func recorded(t *testing.T, rows int) (samples, raw []*tensor.Tensor) {
	t.Helper()
	s := rng.New(5).Stream()
	z := tensor.New(tensor.Float32, rows, window, assets, features)
	for i := 0; i < z.Len(); i += features {
		f := z.Float32s()[i : i+features]
		f[4] = 1
		if s.Float64() < 0.1 {
			f[4] = float32(s.IntN(2))
			continue
		}
		for k := range f[:4] {
			f[k] = float32(s.Normal())
		}
		f[1] = max(-3, min(3, 3*f[1]))
	}
	position, mask := tensor.New(tensor.Float32, rows, assets), tensor.New(tensor.Bool, rows, assets*alternatives)
	for i := range position.Float32s() {
		position.Float32s()[i] = float32(s.Float64())
	}
	for i := range mask.Bools() {
		mask.Bools()[i] = i%alternatives == 2 || s.Float64() < 0.7
	}
	a := scaling()
	x, err := a.Unscale(z)
	if err != nil {
		t.Fatal(err)
	}
	return []*tensor.Tensor{z, position, mask}, []*tensor.Tensor{x, nil, nil}
}

func choices() []Choice {
	return []Choice{{Output: "action", Scores: "log_probs", Heads: []int{alternatives, alternatives, alternatives}}}
}

func TestAgentTakesUnscaledObservations(t *testing.T) {
	net, params := policy(t, 1)
	m, err := Agent(net, params.View, nil, scaled())
	if err != nil {
		t.Fatal(err)
	}
	samples, raw := recorded(t, 300)
	pair := Pair{Network: net, Params: params, Baked: m, Samples: samples, Raw: raw, Choices: choices()}
	for _, c := range testengines.All(t) {
		path := filepath.Join(t.TempDir(), "agent.onnx")
		r, err := Write(t.Context(), path, c, pair, map[string]string{"assets": "A,B,C"})
		if err != nil {
			t.Fatalf("%s: %v", c.Name(), err)
		}
		// 4 batches of 1 and of 7 rows, and one of all; 9 log-probabilities and a value per row,
		// and 3 choices.
		if rows := 4 + 28 + 300; r.Rows != rows || r.Values != 10*rows || r.Choices != 3*rows || r.Changed > r.Ties || r.MaxError > 1e-5 || r.MaxError == 0 {
			t.Errorf("%s: report %+v, want %d rows", c.Name(), r, rows)
		}
		got, err := onnx.Load(path)
		if err != nil {
			t.Fatal(err)
		}
		if v, _ := got.Meta("onnxrl.parity"); !strings.Contains(v, "996 choices") {
			t.Errorf("%s: metadata %q", c.Name(), v)
		}
		if v, _ := got.Meta(MetaScales); v != "window" {
			t.Errorf("%s: scales %q", c.Name(), v)
		}
		if err := onnx.Check(got); err != nil {
			t.Error(err)
		}
		if _, err := shape.Infer(got, map[string]int{"batch": 3}); err != nil {
			t.Error(err)
		}
		var names []string
		for _, v := range append(got.Graph.Input, got.Graph.Output...) {
			names = append(names, v.Name)
		}
		if strings.Join(names, " ") != "window position mask action log_probs value" {
			t.Errorf("%s: inputs and outputs are %v", c.Name(), names)
		}
		if got.Opset("") != oldestOpset || got.IrVersion != 7 {
			t.Errorf("%s: opset %d, IR %d", c.Name(), got.Opset(""), got.IrVersion)
		}

		// An observation that was not scaled is refused as soon as it matters.
		wrong := pair
		wrong.Raw = nil
		if _, err := Prove(t.Context(), c, wrong); !errors.As(err, new(*ParityError)) {
			t.Errorf("%s: scaled observations: error %v", c.Name(), err)
		}
	}
}

// TestScalingEqualsItsDefinition compares with float64 arithmetic on the float32 that is given.
func TestScalingEqualsItsDefinition(t *testing.T) {
	a := scaling()
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	x := []float32{
		3.1e8, 99.7, 0.001, 0.5, 1, // all near their means
		9.9e8, 111, -1, -7, 0, // limited from above
		1, 80, 0.02, 0, 1, // limited from below
		nan, 99, 0.002, 3, 1, // one is not known
		3e8, 99, 0.002, inf, 0, // one is infinite
		nan, nan, nan, nan, 1, // none is known
		nan, nan, nan, nan, nan, // nor is the flag
		3.1e8, 99.70001, 0.0010001, 1e-30, -inf, // only the flag is not
	}
	rows := len(x) / features
	known := []bool{true, true, true, false, false, false, false, false}

	b := onnx.NewBuilder("scaling", 18)
	v := b.Input("window", onnx.TensorType{DType: tensor.Float32, Ranked: true, Dims: []onnx.Dim{onnx.Symbol("batch"), onnx.Known(features)}})
	b.Output(b.Rename(v, "z"), onnx.TensorType{DType: tensor.Float32, Ranked: true, Dims: []onnx.Dim{onnx.Symbol("batch"), onnx.Known(features)}})
	m, err := b.Model()
	if err != nil {
		t.Fatal(err)
	}
	net, _, err := models.FromModel(m, models.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if m, err = Agent(net, nil, nil, &a); err != nil {
		t.Fatal(err)
	}
	compared := 0
	for _, c := range testengines.All(t) {
		s, err := c.Compile(m, engine.Options{})
		if err != nil {
			t.Fatal(err)
		}
		out := make([]*tensor.Tensor, 1)
		if err := s.Run(t.Context(), out, []*tensor.Tensor{tensor.Of(x, rows, features)}); err != nil {
			t.Fatal(err)
		}
		for i, got := range out[0].Float32s() {
			k, want := i%features, 0.0
			if known[i/features] || a.Keep[k] && x[i]-x[i] == 0 {
				want = (float64(x[i]) - a.Mean[k]) / a.Std[k]
				if l := a.Clip[k]; l > 0 {
					want = max(-l, min(l, want))
				}
			}
			// Two roundings of differences and one of the quotient, and no cancellation.
			if d := math.Abs(float64(got) - want); !(d <= 4*math.Pow(2, -24)*math.Abs(want)+1e-9) {
				t.Errorf("%s: record %d, feature %d: %g gives %g, want %g", c.Name(), i/features, k, x[i], got, want)
			}
			compared++
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
	if compared < rows*features {
		t.Errorf("%d values were compared", compared)
	}
}

func TestUnscaleIsTheInverse(t *testing.T) {
	samples, raw := recorded(t, 50)
	a := scaling()
	unknown := 0
	for i, x := range raw[0].Float32s() {
		k, z := i%features, samples[0].Float32s()[i]
		if x != x {
			unknown++
			if z != 0 || a.Keep[k] {
				t.Fatalf("value %d: %g became NaN", i, z)
			}
			continue
		}
		// The rounding of x to float32 is worth this much of z.
		if back := (float64(x) - a.Mean[k]) / a.Std[k]; math.Abs(back-float64(z)) > 1e-6+math.Pow(2, -24)*math.Abs(float64(x))/a.Std[k] {
			t.Errorf("value %d: %g came back as %g", i, z, back)
		}
	}
	if unknown < 50 {
		t.Errorf("%d values are not known", unknown)
	}
	if _, err := a.Unscale(tensor.New(tensor.Float32, 2, 4)); err == nil || !strings.Contains(err.Error(), "float32[… 5]") {
		t.Errorf("four features: error %v", err)
	}
}

// TestTies lets a network choose between almost equal alternatives.
func TestTies(t *testing.T) {
	samples, raw := recorded(t, 100)
	for i := range assets * alternatives {
		samples[2].Bools()[i] = true // All alternatives of the first row are valid.
	}
	for _, c := range testengines.All(t) {
		net, params := policy(t, 1)
		clear(params.View("logits.weight").Float32s())
		bias := params.View("logits.bias").Float32s()
		bias[1] = 4e-6 // The second alternative of the first head is ahead by less than Margin.
		baked, err := Agent(net, params.View, nil, scaled())
		if err != nil {
			t.Fatal(err)
		}
		pair := Pair{Network: net, Params: params, Baked: baked.Clone(), Samples: samples, Raw: raw, Choices: choices()}
		if r, err := Prove(t.Context(), c, pair); !errors.Is(err, ErrTies) || r.Ties == 0 || r.Changed != 0 || !strings.Contains(err.Error(), "1 %") {
			t.Errorf("%s: %+v, %v; want ErrTies", c.Name(), r, err)
		}
		pair.AllowTies = true
		bias[0], bias[1] = 4e-6, 0 // Behind the baked form's back: now the first is.
		r, err := Prove(t.Context(), c, pair)
		if err != nil || r.Changed == 0 || r.Changed >= r.Ties || r.Ties >= r.Choices {
			t.Errorf("%s: %+v, %v; want some changed choices", c.Name(), r, err)
		}
		bias[0] = 1.5e-4
		var e *ParityError
		if _, err := Prove(t.Context(), c, pair); !errors.As(err, &e) || e.Output != "action" || e.Want != 0 || e.Got != 1 {
			t.Errorf("%s: error %v, want a changed action", c.Name(), err)
		}
	}
}

func TestMargin(t *testing.T) {
	for _, k := range []struct {
		scores []float32
		want   float64
	}{{[]float32{3}, 1}, {[]float32{1, 4}, 3}, {[]float32{4, 1}, 3}, {[]float32{1, 4, 2, 4}, 0}, {[]float32{0, -1e8, -2}, 2}, {[]float32{-5, -4, -1}, 3}} {
		if got := margin(k.scores); got != k.want {
			t.Errorf("%v: %g, want %g", k.scores, got, k.want)
		}
	}
}

func TestAgentRefuses(t *testing.T) {
	net, params := policy(t, 1)
	for _, k := range []struct {
		edit func(a *Affine)
		want string
	}{
		{func(a *Affine) { a.Input = "prices" }, `input "prices": the network has no such input`},
		{func(a *Affine) { a.Input = "mask" }, `input "mask": it is bool[batch,9], the statistics are of 5 features`},
		{func(a *Affine) { a.Mean, a.Std, a.Clip, a.Keep = a.Mean[:4], a.Std[:4], nil, nil }, "float32[batch,4,3,5], the statistics are of 4 features"},
		{func(a *Affine) { a.Std[2] = 0 }, `input "window": feature 2: deviation 0`},
		{func(a *Affine) { a.Std[2] = 1e-60 }, "feature 2: deviation"},
		{func(a *Affine) { a.Mean[1] = math.NaN() }, "feature 1: mean NaN"},
		{func(a *Affine) { a.Mean[1] = 1e300 }, "feature 1: mean"},
		{func(a *Affine) { a.Clip[0] = -1 }, "feature 0: limit -1"},
		{func(a *Affine) { a.Clip = a.Clip[:2] }, "5 means, 5 deviations, 2 limits and 5 marks"},
		{func(a *Affine) { *a = Affine{Input: "window"} }, "0 means"},
	} {
		a := scaling()
		k.edit(&a)
		if _, err := Agent(net, params.View, nil, &a); err == nil || !strings.Contains(err.Error(), k.want) {
			t.Errorf("error %v, want %q", err, k.want)
		}
	}
}

func TestChoicesAreChecked(t *testing.T) {
	net, params := policy(t, 1)
	m, err := Agent(net, params.View, nil, scaled())
	if err != nil {
		t.Fatal(err)
	}
	samples, raw := recorded(t, 3)
	for _, k := range []struct {
		c    Choice
		want string
	}{
		{Choice{Output: "act", Scores: "log_probs", Heads: []int{9}}, `choice "act"`},
		{Choice{Output: "action", Scores: "log_probs", Heads: []int{3, 3}}, "need whole numbers [batch 2] and float32[batch 6]"},
		{Choice{Output: "value", Scores: "log_probs", Heads: []int{9}}, "need whole numbers"},
		{Choice{Output: "action", Scores: "log_probs", Heads: []int{9, 0, 0}}, "heads of [9 0 0] alternatives"},
	} {
		if _, err := Prove(t.Context(), portable.New(), Pair{Network: net, Params: params, Baked: m, Samples: samples, Raw: raw, Choices: []Choice{k.c}}); err == nil || !strings.Contains(err.Error(), k.want) {
			t.Errorf("%v: error %v, want %q", k.c, err, k.want)
		}
	}
}
