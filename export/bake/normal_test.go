package bake

import (
	"math"
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/runtime/engine"
	"github.com/onnxrl/onnxrl/runtime/engine/testengines"
	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/rng"
	"github.com/onnxrl/onnxrl/runtime/sorted"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// outputs runs a model once.
func outputs(t *testing.T, c engine.Compiler, m *onnx.Model, given map[string]*tensor.Tensor) (map[string]*tensor.Tensor, error) {
	t.Helper()
	s, err := c.Compile(m, engine.Options{})
	if err != nil {
		return nil, err
	}
	defer s.Close()
	list, err := runOn(t.Context(), s, given)
	if err != nil {
		return nil, err
	}
	out := map[string]*tensor.Tensor{}
	for i, p := range s.Outputs() {
		out[p.Name] = list[i]
	}
	return out, nil
}

// TestNormalizationIsInside proves a policy that was trained on normalised frames, behind a stack
// too.
func TestNormalizationIsInside(t *testing.T) {
	const rows = 200
	s := rng.New(6).Stream()
	proved := 0
	for _, c := range testengines.All(t) {
		for _, frames := range []bool{false, true} {
			for _, clip := range []float64{0, 1.5} {
				n := &Normal{Input: "x", Mean: []float64{0, 1e6, -3, 0.1}, Std: []float64{1, 0.5, 100, 1e-3}, Clip: clip}
				net, params, states := recurrent(t, frames)
				raw, begins := tensor.New(tensor.Float32, rows, seen), make([]bool, rows)
				for i := range raw.Float32s() {
					k := i % seen
					raw.Float32s()[i] = float32(n.Mean[k] + n.Std[k]*2*s.Normal())
				}
				for row := 0; row < rows; row += 20 {
					begins[row] = true
				}
				z, err := n.Apply(raw)
				if err != nil {
					t.Fatal(err)
				}
				beyond := 0
				for _, v := range z.Float32s() {
					if math.Abs(float64(v)) > 1.5 {
						beyond++
					}
				}
				if (beyond == 0) != (clip > 0) {
					t.Errorf("clip %g: %d values beyond", clip, beyond)
				}
				wrappers, samples := []Wrapper{n}, []*tensor.Tensor{z}
				if frames {
					// The network is given frames that are normalised before they are stacked;
					// those before an episode are 0.
					wrappers = []Wrapper{Frames{Input: "x"}, n}
					stacks := tensor.New(tensor.Float32, rows, depth, seen)
					for row := range rows {
						for k := range depth {
							if from := row - (depth - 1 - k); from >= row/20*20 {
								copy(stacks.Float32s()[(row*depth+k)*seen:], z.Float32s()[from*seen:(from+1)*seen])
							}
						}
					}
					samples = []*tensor.Tensor{stacks}
				}
				m, err := Agent(net, params.View, states, wrappers...)
				if err != nil {
					t.Fatal(err)
				}
				if _, ok := m.Meta(MetaScales); ok {
					t.Error("environments show what a Normal takes")
				}
				v, err := NewProver(c, Pair{Network: net, Params: params, Memory: states, Baked: m})
				if err != nil {
					t.Fatal(err)
				}
				if err := v.Add(t.Context(), samples, []*tensor.Tensor{raw}, begins); err != nil {
					t.Errorf("%s, frames %v, clip %g: %v", c.Name(), frames, clip, err)
				}
				if err := v.Close(); err != nil {
					t.Error(err)
				}
				proved++
			}
		}
	}
	if proved != 4*len(testengines.All(t)) {
		t.Errorf("%d proofs", proved)
	}
}

func TestNormalizationsThatDoNotFit(t *testing.T) {
	net, params, states := recurrent(t, false)
	for want, n := range sorted.All(map[string]*Normal{
		"no such input":            {Input: "y", Mean: []float64{0}, Std: []float64{1}},
		"statistics are of 1":      {Input: "x", Mean: []float64{0}, Std: []float64{1}},
		"0 means and 0 deviations": {Input: "x"},
		"mean NaN, deviation 1":    {Input: "x", Mean: []float64{0, 0, math.NaN(), 0}, Std: []float64{1, 1, 1, 1}},
		"mean 0, deviation 0":      {Input: "x", Mean: []float64{0, 0, 0, 0}, Std: []float64{1, 1, 0, 1}},
		"limit -1":                 {Input: "x", Mean: []float64{0, 0, 0, 0}, Std: []float64{1, 1, 1, 1}, Clip: -1},
	}) {
		if _, err := Agent(net, params.View, states, n); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v", n, err)
		}
	}
	n := &Normal{Input: "x", Mean: []float64{0, 0}, Std: []float64{1, 1}}
	if _, err := n.Apply(tensor.New(tensor.Float32, 2, 3)); err == nil {
		t.Error("three elements for two statistics")
	}
}

// TestActionsReachTheirBounds proves a policy that was trained to act in [−1, 1], or without
// bounds, and draws actions within them.
func TestActionsReachTheirBounds(t *testing.T) {
	x, begins, _ := episodes(100)
	proved := 0
	for _, c := range testengines.All(t) {
		for _, rescale := range []bool{false, true} {
			for _, low := range [][]float64{{-0.1}, {-2, 0.01}} {
				l := &Bounds{Output: "action", Low: low, High: []float64{0.2, 5}[:len(low)], Rescale: rescale}
				net, params, states := recurrent(t, false)
				m, err := Agent(net, params.View, states, l)
				if err != nil {
					t.Fatal(err)
				}
				v, err := NewProver(c, Pair{Network: net, Params: params, Memory: states, Baked: m, Actions: map[string]func(*tensor.Tensor) *tensor.Tensor{"action": l.Apply}})
				if err != nil {
					t.Fatal(err)
				}
				if err := v.Add(t.Context(), []*tensor.Tensor{x}, nil, begins); err != nil {
					t.Errorf("%s, rescale %v: %v", c.Name(), rescale, err)
				}
				if err := v.Close(); err != nil {
					t.Error(err)
				}
				sampled, err := SampleGaussian(m, Gaussian{"action", "action_mean", "action_log_std"})
				if err != nil {
					t.Fatal(err)
				}
				noise := tensor.New(tensor.Float32, 100, 2)
				for i := range noise.Float32s() {
					noise.Float32s()[i] = float32(i%7 - 3)
				}
				out, err := outputs(t, c, sampled, map[string]*tensor.Tensor{"x": x, "state/h": states[0].Tensor(100), NoiseInput: noise})
				if err != nil {
					t.Fatal(err)
				}
				mean, std := out["action_mean"].Float32s(), out["action_log_std"].Float32s()
				raw := tensor.New(tensor.Float32, 100, 2)
				for i := range raw.Float32s() {
					raw.Float32s()[i] = max(-0.5, min(0.5, mean[i]+float32(math.Exp(float64(std[i])))*noise.Float32s()[i]))
				}
				for i, want := range l.Apply(raw).Float32s() {
					if got := out[SampleOutput].Float32s()[i]; math.Abs(float64(got-want)) > 1e-5*(1+math.Abs(float64(want))) {
						t.Fatalf("%s, rescale %v: sample %d is %g, expected %g", c.Name(), rescale, i, got, want)
					}
				}
				proved++
			}
		}
	}
	if proved != 4*len(testengines.All(t)) {
		t.Errorf("%d proofs", proved)
	}
	net, params, states := recurrent(t, false)
	for want, l := range sorted.All(map[string]*Bounds{
		"1 lower and 0 upper":      {Output: "action", Low: []float64{1}},
		"1 to 1":                   {Output: "action", Low: []float64{1}, High: []float64{1}},
		"-Inf to 1":                {Output: "action", Low: []float64{math.Inf(-1)}, High: []float64{1}},
		"bounds are of 3 elements": {Output: "action", Low: []float64{0, 0, 0}, High: []float64{1, 1, 1}},
	}) {
		if _, err := Agent(net, params.View, states, l); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v", l, err)
		}
	}
}

// TestActionsBecomeWeights proves a policy whose scores become weights by softmax or projection,
// and the projections at the corners, at ties and on an edge.
func TestActionsBecomeWeights(t *testing.T) {
	x, begins, _ := episodes(100)
	softmax := func(weights []float64, row []float32) {
		sum := 0.0
		for i, v := range row {
			weights[i] = math.Exp(float64(v))
			sum += weights[i]
		}
		for i := range weights {
			weights[i] /= sum
		}
	}
	// Of two numbers with the difference d the first has (1 + d)/2, within [0, 1].
	project := func(weights []float64, row []float32) {
		weights[0] = max(0, min(1, (1+float64(row[0])-float64(row[1]))/2))
		weights[1] = 1 - weights[0]
	}
	proved := 0
	for _, c := range testengines.All(t) {
		for _, s := range []*Simplex{{Output: "action", Of: softmax}, {Output: "action", Of: project, Project: true}} {
			net, params, states := recurrent(t, false)
			m, err := Agent(net, params.View, states, s)
			if err != nil {
				t.Fatal(err)
			}
			v, err := NewProver(c, Pair{Network: net, Params: params, Memory: states, Baked: m, Actions: map[string]func(*tensor.Tensor) *tensor.Tensor{"action": s.Apply}})
			if err != nil {
				t.Fatal(err)
			}
			if err := v.Add(t.Context(), []*tensor.Tensor{x}, nil, begins); err != nil {
				t.Errorf("%s, projection %v: %v", c.Name(), s.Project, err)
			}
			if err := v.Close(); err != nil {
				t.Error(err)
			}
			proved++
		}
		b := onnx.NewBuilder("scores", 13)
		in := onnx.TensorType{DType: tensor.Float32, Ranked: true, Dims: []onnx.Dim{onnx.Symbol("n"), onnx.Known(3)}}
		b.Output(b.Rename(b.Op("Neg", []onnx.Value{b.Input("x", in)}), "action"), in)
		m, err := b.Model()
		if err != nil {
			t.Fatal(err)
		}
		if m, err = (&Simplex{Output: "action", Project: true}).wrap(m); err != nil {
			t.Fatal(err)
		}
		rows := []float32{-1, 1, 1, 0, 0, 0, -0.75, -0.5, 1, -0.5, -0.5, 0, -1, -1, -0.5}
		out, err := outputs(t, c, m, map[string]*tensor.Tensor{"x": tensor.Of(rows, 5, 3)})
		if err != nil {
			t.Fatal(err)
		}
		third := 1.0 / 3
		for i, want := range []float64{1, 0, 0, third, third, third, 0.625, 0.375, 0, 0.5, 0.5, 0, 0.5, 0.5, 0} {
			if got := float64(out["action"].Float32s()[i]); math.Abs(got-want) > 1e-7 {
				t.Errorf("%s: weight %d is %g, expected %g", c.Name(), i, got, want)
			}
		}
	}
	if proved != 2*len(testengines.All(t)) {
		t.Errorf("%d proofs", proved)
	}
	net, params, states := recurrent(t, false)
	if _, err := Agent(net, params.View, states, &Simplex{Output: "action_log_stds"}); err == nil || !strings.Contains(err.Error(), "expected float32 [batch n]") {
		t.Errorf("no output: %v", err)
	}
}

// TestFlatFrames puts a stack inside a model that takes the frames as one vector, oldest first.
func TestFlatFrames(t *testing.T) {
	const rows = 30
	b := onnx.NewBuilder("flat", 13)
	in := onnx.TensorType{DType: tensor.Float32, Ranked: true, Dims: []onnx.Dim{onnx.Symbol("n"), onnx.Known(6)}}
	b.Output(b.Rename(b.Op("Neg", []onnx.Value{b.Input("x", in)}), "y"), in)
	m, err := b.Model()
	if err != nil {
		t.Fatal(err)
	}
	stack, err := Stack(m, Frames{Input: "x", Shape: []int{2}, Repeat: true})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range testengines.All(t) {
		given := map[string]*tensor.Tensor{"x": tensor.New(tensor.Float32, 1, 2), "x_state_in": tensor.New(tensor.Float32, 1, 2, 2), "x_seen_in": tensor.New(tensor.Float32, 1, 1)}
		for step := range rows {
			given["x"].Float32s()[0], given["x"].Float32s()[1] = float32(step), float32(-step)
			out, err := outputs(t, c, stack, given)
			if err != nil {
				t.Fatal(err)
			}
			for k := range 3 {
				want := -float32(max(0, step-2+k))
				if got := out["y"].Float32s()[2*k]; got != want {
					t.Fatalf("%s, step %d, frame %d: %g, expected %g", c.Name(), step, k, got, want)
				}
			}
			given["x_state_in"], given["x_seen_in"] = out["x_state_out"], out["x_seen_out"]
		}
	}
	if _, err := Stack(m, Frames{Input: "x", Shape: []int{4}}); err == nil || !strings.Contains(err.Error(), "whole frames of [4]") {
		t.Errorf("error %v", err)
	}
}
