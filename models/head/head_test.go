package head_test

import (
	"encoding/json"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/models/head"
	"github.com/onnxrl/onnxrl/models/layer"
	"github.com/onnxrl/onnxrl/runtime/autodiff"
	"github.com/onnxrl/onnxrl/runtime/engine/testengines"
	"github.com/onnxrl/onnxrl/runtime/gradcheck"
	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/rng"
	"github.com/onnxrl/onnxrl/runtime/sorted"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

type torchCase struct {
	Name   string `json:"name"`
	Sizes  []int  `json:"sizes"`
	Mode   [][]int
	Inputs map[string]struct {
		Shape []int
		Data  []float64
	}
	Outputs map[string]struct {
		Data, Cotangent []float64
		Grads           map[string][]float64
	}
}

// TestEqualsTorch compares values and gradients with those of torch.distributions, on every engine.
func TestEqualsTorch(t *testing.T) {
	data, err := os.ReadFile("testdata/torch.json")
	if err != nil {
		t.Fatal(err)
	}
	var file struct{ Cases []torchCase }
	if err := json.Unmarshal(data, &file); err != nil {
		t.Fatal(err)
	}
	values, grads, modes := 0, 0, 0
	for _, c := range file.Cases {
		t.Run(c.Name, func(t *testing.T) {
			m, wrt := build(t, c)
			for out, want := range sorted.All(c.Outputs) {
				g, err := autodiff.Grad(m, autodiff.Options{Objectives: []autodiff.Objective{{Losses: []autodiff.Loss{{Value: out, Cotangent: "cotangent"}}, Wrt: wrt}}, Bind: map[string]int{layer.Batch: c.batch()}})
				if err != nil {
					t.Fatal(err)
				}
				shape, ok := g.Env.Type(onnx.Value(out)).Static()
				if !ok {
					t.Fatalf("%s is %v", out, g.Env.Type(onnx.Value(out)))
				}
				in := c.inputs()
				in["cotangent"] = floats(want.Cotangent, shape)
				for _, e := range testengines.All(t) {
					got, err := gradcheck.Run(t.Context(), e, g.Model, in)
					if err != nil {
						t.Fatal(err)
					}
					values += compare(t, out+" on "+e.Name(), got[out], want.Data)
					for _, o := range g.Outputs[0] {
						grads += compare(t, "gradient of "+out+" by "+o.Wrt+" on "+e.Name(), got[o.Name], want.Grads[o.Wrt])
					}
					if c.Mode != nil && out == "entropy" {
						var flat []float64
						for _, row := range c.Mode {
							for _, a := range row {
								flat = append(flat, float64(a))
							}
						}
						for i, a := range got["mode"].Int64s() {
							if modes++; float64(a) != flat[i] {
								t.Errorf("mode on %s: element %d is %d, want %v", e.Name(), i, a, flat[i])
							}
						}
					}
				}
			}
		})
	}
	if n := len(testengines.All(t)); values != n*(75+28+32+20+16+28) || grads != n*(2840+5*54) || modes != n*5*(1+1+16+3+2) {
		t.Errorf("%d values, %d gradients and %d modes were compared on %d engines", values, grads, modes, n)
	}
}

func (c torchCase) batch() int {
	for _, name := range []string{"logits", "mean"} {
		if in, ok := c.Inputs[name]; ok {
			return in.Shape[0]
		}
	}
	panic("no batch")
}

func floats(data []float64, shape []int) *tensor.Tensor {
	t := tensor.New(tensor.Float32, shape...)
	for i, v := range data {
		t.Float32s()[i] = float32(v)
	}
	return t
}

func (c torchCase) inputs() map[string]*tensor.Tensor {
	in := map[string]*tensor.Tensor{}
	for name, v := range sorted.All(c.Inputs) {
		in[name] = floats(v.Data, v.Shape)
	}
	if c.Sizes != nil {
		mask, actions := tensor.New(tensor.Bool, c.Inputs["mask"].Shape...), tensor.New(tensor.Int64, c.Inputs["actions"].Shape...)
		for i, v := range c.Inputs["mask"].Data {
			mask.Bools()[i] = v != 0
		}
		for i, v := range c.Inputs["actions"].Data {
			actions.Int64s()[i] = int64(v)
		}
		in["mask"], in["actions"] = mask, actions
	}
	return in
}

// build makes the graph of a case. It returns what the case differentiates with respect to.
func build(t *testing.T, c torchCase) (*onnx.Model, []string) {
	t.Helper()
	g := layer.New("head", rng.New(1), layer.Options{})
	in := map[string]onnx.Value{}
	for name, v := range sorted.All(c.Inputs) {
		d := tensor.Float32
		switch {
		case c.Sizes != nil && name == "mask":
			d = tensor.Bool
		case c.Sizes != nil && name == "actions":
			d = tensor.Int64
		}
		switch _, sde := c.Inputs["latent"]; {
		case len(v.Shape) == 1:
			in[name] = g.Input(name, d, onnx.Known(v.Shape[0]))
		case sde && (name == "log_std" || name == "noise"):
			in[name] = g.Input(name, d, onnx.Known(v.Shape[0]), onnx.Known(v.Shape[1]))
		default:
			in[name] = g.Batched(name, d, v.Shape[1:]...)
		}
	}
	var wrt []string
	switch {
	case c.Sizes != nil:
		p, q := head.NewCategorical(g, in["logits"], in["mask"], c.Sizes...), head.NewCategorical(g, in["other"], in["mask"], c.Sizes...)
		g.Output("log_prob", p.LogProb(in["actions"]))
		g.Output("entropy", p.Entropy())
		g.Output("kl", p.KL(q))
		g.Output("mode", p.Mode())
		wrt = []string{"logits", "other"}
	case in["mean2"] != "":
		p, q := head.NewDiagGaussian(g, in["mean"], in["log_std"]), head.NewDiagGaussian(g, in["mean2"], in["log_std2"])
		g.Output("log_prob", p.LogProb(in["actions"]))
		g.Output("entropy", p.Entropy())
		g.Output("kl", p.KL(q))
		a, l := p.Sample(in["actions"])
		g.Output("sample", a)
		g.Output("sample_log_prob", l)
		wrt = []string{"mean", "log_std", "mean2", "log_std2"}
	case in["latent"] != "":
		p := head.NewGSDE(g, in["mean"], in["latent"], in["log_std"])
		g.Output("log_prob", p.LogProb(in["actions"]))
		g.Output("entropy", p.Entropy())
		a, l := p.Sample(in["noise"])
		g.Output("sample", a)
		g.Output("sample_log_prob", l)
		g.Output("squashed_log_prob", head.Squash(p.DiagGaussian).LogProbOf(in["actions"]))
		wrt = []string{"mean", "latent", "log_std"}
	default:
		p := head.NewSquashed(g, in["mean"], in["log_std"])
		a, l := p.Sample(in["noise"])
		g.Output("sample", a)
		g.Output("sample_log_prob", l)
		g.Output("log_prob", p.LogProb(in["actions"]))
		wrt = []string{"mean", "log_std"}
	}
	m, err := g.Model()
	if err != nil {
		t.Fatal(err)
	}
	if err := onnx.Check(m); err != nil {
		t.Fatal(err)
	}
	return m, wrt
}

// compare returns the number of elements that were compared. The tolerance is relative to the
// largest one: the graphs compute in float32.
func compare(t *testing.T, what string, got *tensor.Tensor, want []float64) int {
	t.Helper()
	if got.Len() != len(want) {
		t.Errorf("%s: %d values, want %d", what, got.Len(), len(want))
		return 0
	}
	scale := 1.0
	for _, v := range want {
		scale = max(scale, math.Abs(v))
	}
	for i, v := range got.Float32s() {
		if d := math.Abs(float64(v) - want[i]); !(d <= 2e-5*scale) {
			t.Errorf("%s: element %d is %v, want %v", what, i, v, want[i])
			break
		}
	}
	return len(want)
}

// TestExtremes asks for what overflows, underflows or divides by zero in careless forms.
func TestExtremes(t *testing.T) {
	n := 0
	for _, e := range testengines.All(t) {
		finite := func(what string, g *layer.Graph, outputs, wrt []string, in map[string]*tensor.Tensor) map[string]*tensor.Tensor {
			t.Helper()
			m, err := g.Model()
			if err != nil {
				t.Fatal(err)
			}
			var losses []autodiff.Loss
			for _, o := range outputs {
				losses = append(losses, autodiff.Loss{Value: o})
			}
			grad, err := autodiff.Grad(m, autodiff.Options{Objectives: []autodiff.Objective{{Losses: losses, Wrt: wrt}}, Bind: map[string]int{layer.Batch: 2}})
			if err != nil {
				t.Fatal(err)
			}
			out, err := gradcheck.Run(t.Context(), e, grad.Model, in)
			if err != nil {
				t.Fatal(err)
			}
			for name, v := range sorted.All(out) {
				if v.DType() != tensor.Float32 {
					continue
				}
				for _, x := range v.Float32s() {
					if n++; x-x != 0 {
						t.Errorf("%s on %s: %s is %v", what, e.Name(), name, v.Float32s())
						break
					}
				}
			}
			return out
		}
		// Row 0 has no valid action at all, row 1 one, with the lowest logit.
		g := layer.New("x", rng.New(1), layer.Options{})
		c := head.NewCategorical(g, g.Observation("logits", 4), g.Batched("mask", tensor.Bool, 4), 4)
		g.Output("l", c.LogProb(g.Batched("action", tensor.Int64)))
		g.Output("h", c.Entropy())
		g.Output("a", c.Mode())
		out := finite("masks", g, []string{"l", "h"}, []string{"logits"}, map[string]*tensor.Tensor{
			"logits": tensor.Of([]float32{1, 2, 3, 4, 1e4, -1e4, 3, 4}, 2, 4), "mask": tensor.Of([]bool{false, false, false, false, false, true, false, false}, 2, 4), "action": tensor.Of([]int64{0, 1}, 2),
		})
		if h := out["h"].Float32s(); math.Abs(float64(h[0])-math.Log(4)) > 1e-6 || h[1] != 0 || out["l"].Float32s()[1] != 0 || out["a"].Int64s()[1] != 1 {
			t.Errorf("masks on %s: entropy %v, log-probability %v, mode %v", e.Name(), h, out["l"].Float32s(), out["a"].Int64s())
		}
		for i, v := range out["grad/logits"].Float32s() {
			if n++; v != 0 {
				t.Errorf("masks on %s: the gradient of logit %d is %v", e.Name(), i, v)
			}
		}
		// Where float32's tanh is exactly 1.
		g = layer.New("x", rng.New(1), layer.Options{})
		s := head.NewSquashed(g, g.Observation("mean", 2), g.Observation("log_std", 2))
		a, l := s.Sample(g.Observation("noise", 2))
		g.Output("a", a)
		g.Output("l", l)
		g.Output("r", s.LogProb(g.Observation("action", 2)))
		two := func(a, b, c, d float32) *tensor.Tensor { return tensor.Of([]float32{a, b, c, d}, 2, 2) }
		out = finite("tanh", g, []string{"a", "l", "r"}, []string{"mean", "log_std"}, map[string]*tensor.Tensor{
			"mean": two(40, -40, 0, 9), "log_std": two(0, 0, -5, 2), "noise": two(1, -1, 3, 0), "action": two(1, -1, 0, 0.999999),
		})
		// log N(1) − log(1 − tanh²) at ±41, twice: −½ − ½ log 2π − 2(log 2 − 41).
		if want := 2 * (-0.5 - 0.9189385332 - 2*(math.Ln2-41)); math.Abs(float64(out["l"].Float32s()[0])-want) > 1e-4 {
			t.Errorf("tanh on %s: %v, want %v", e.Name(), out["l"].Float32s()[0], want)
		}
	}
	if n != len(testengines.All(t))*((2+2+8)+8+(4+2+2+4+4)) {
		t.Errorf("%d values", n)
	}
}

// TestSampling draws with Gumbel noise and compares frequencies with probabilities.
func TestSampling(t *testing.T) {
	const batch = 20000
	sizes := []int{3, 2}
	g := layer.New("x", rng.New(1), layer.Options{})
	c := head.NewCategorical(g, g.Observation("logits", 5), g.Batched("mask", tensor.Bool, 5), sizes...)
	g.Output("a", c.Sample(g.Observation("noise", 5)))
	m, err := g.Model()
	if err != nil {
		t.Fatal(err)
	}
	logits, mask, noise := tensor.New(tensor.Float32, batch, 5), tensor.New(tensor.Bool, batch, 5), tensor.New(tensor.Float32, batch, 5)
	s := rng.New(4).Stream()
	for i := range batch {
		copy(logits.Float32s()[i*5:], []float32{0, 9, 1, 0.5, -0.5})
		copy(mask.Bools()[i*5:], []bool{true, false, true, true, true})
	}
	for i := range noise.Float32s() {
		noise.Float32s()[i] = float32(-math.Log(s.Exp()))
	}
	want := [][]float64{{1 / (1 + math.E), 0, math.E / (1 + math.E)}, {math.E / (1 + math.E), 1 / (1 + math.E)}}
	n := 0
	for _, e := range testengines.All(t) {
		out, err := gradcheck.Run(t.Context(), e, m, map[string]*tensor.Tensor{"logits": logits, "mask": mask, "noise": noise})
		if err != nil {
			t.Fatal(err)
		}
		counts := [][]float64{make([]float64, 3), make([]float64, 2)}
		for i, a := range out["a"].Int64s() {
			counts[i%2][a]++
		}
		for h, ps := range want {
			for a, p := range ps {
				// Five standard errors.
				if n++; math.Abs(counts[h][a]/batch-p) > 5*math.Sqrt(p*(1-p)/batch) {
					t.Errorf("%s: action %d of head %d has frequency %v, expected %v", e.Name(), a, h, counts[h][a]/batch, p)
				}
			}
		}
	}
	if n != 5*len(testengines.All(t)) {
		t.Errorf("%d frequencies", n)
	}
}

// TestErrors gives shapes that do not fit.
func TestErrors(t *testing.T) {
	n := 0
	for _, c := range []struct {
		build func(g *layer.Graph)
		want  []string
	}{
		{func(g *layer.Graph) { head.NewCategorical(g, g.Observation("l", 5), "", 3, 3) }, []string{"float32[batch,5]", "6 columns"}},
		{func(g *layer.Graph) { head.NewCategorical(g, g.Observation("l", 5), "") }, []string{"at least one action"}},
		{func(g *layer.Graph) { head.NewCategorical(g, g.Observation("l", 5), g.Observation("m", 5), 5) }, []string{"mask is float32[batch,5]", "bool[batch,5]"}},
		{func(g *layer.Graph) {
			head.NewCategorical(g, g.Observation("l", 4), "", 2, 2).LogProb(g.Batched("a", tensor.Int64))
		}, []string{"int64[batch]", "int64[batch,2]"}},
		{func(g *layer.Graph) { head.NewDiagGaussian(g, g.Observation("m", 2), g.Observation("s", 3)) }, []string{"float32[batch,2] and float32[batch,3]"}},
		{func(g *layer.Graph) {
			head.NewGSDE(g, g.Observation("m", 2), g.Observation("z", 3), head.MatrixLogStd(g, 0, 4, 2))
		}, []string{"float32[batch,2], float32[batch,3] and float32[4,2]"}},
		{func(g *layer.Graph) { head.StateLogStd(g, g.Observation("z", 2), layer.Zeros(), 1, "soft", -5, 2) }, []string{`"soft"`}},
		{func(g *layer.Graph) { head.Rescale(g, g.Observation("a", 2), []float64{0}, []float64{1}) }, []string{"float32[batch,2]", "1 lower"}},
		{func(g *layer.Graph) { head.Rescale(g, g.Observation("a", 1), []float64{0}, []float64{math.Inf(1)}) }, []string{"no finite range", "+Inf"}},
		{func(g *layer.Graph) { head.Pick(g, g.Observation("q", 3), g.Observation("a", 1)) }, []string{"float32[batch,1]", "int64[batch]"}},
	} {
		g := layer.New("x", rng.New(1), layer.Options{})
		c.build(g.In("policy"))
		for _, w := range c.want {
			if err := g.Err(); err == nil || !contains(err.Error(), w, "policy") {
				t.Errorf("%v does not mention %q", err, w)
			}
			n++
		}
	}
	if n != 16 {
		t.Errorf("%d mentions", n)
	}
}

func contains(s string, parts ...string) bool {
	return !slices.ContainsFunc(parts, func(p string) bool { return !strings.Contains(s, p) })
}
