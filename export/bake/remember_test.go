package bake

import (
	"errors"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/models"
	"github.com/onnxrl/onnxrl/models/layer"
	"github.com/onnxrl/onnxrl/runtime/engine/testengines"
	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/rng"
	"github.com/onnxrl/onnxrl/runtime/sorted"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

const (
	seen  = 4 // elements of an observation
	cells = 6
	depth = 3 // frames of a stack
)

// recurrent is a policy of two continuous actions that remembers: h' = tanh(x·W + h·U), or one of
// the last frames.
func recurrent(t *testing.T, frames bool) (*models.Network, *models.Params, []models.State) {
	t.Helper()
	g := layer.New("recurrent", rng.New(3), layer.Options{})
	var h onnx.Value
	if frames {
		h = g.Op("Tanh", []onnx.Value{g.Linear("w", g.Reshape(g.Observation("x", depth, seen), -1, depth*seen), cells, layer.Orthogonal(1))})
	} else {
		x, past := g.Observation("x", seen), g.Observation("state/h", cells)
		h = g.Op("Tanh", []onnx.Value{g.Add(g.Linear("w", x, cells, layer.Orthogonal(1)), g.Linear("u", past, cells, layer.Orthogonal(1)))})
	}
	mean := g.Linear("mean", h, 2, layer.Orthogonal(1))
	g.Output("action", g.Op("Clip", []onnx.Value{mean, g.Float(-0.5), g.Float(0.5)}))
	g.Output("action_mean", mean)
	g.Output("action_log_std", g.Linear("std", h, 2, layer.Orthogonal(0.1)))
	if !frames {
		g.Output("next_state/h", h)
	}
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
	states, err := models.NamedStates(net.Model.Graph)
	if err != nil {
		t.Fatal(err)
	}
	return net, params, states
}

// episodes are random observations and where they begin: lengths of 1 to 40.
func episodes(rows int) (x *tensor.Tensor, begins []bool, count int) {
	s := rng.New(8).Stream()
	x, begins = tensor.New(tensor.Float32, rows, seen), make([]bool, rows)
	for i := range x.Float32s() {
		x.Float32s()[i] = float32(s.Normal())
	}
	for row := 0; row < rows; row += 1 + s.IntN(40) {
		begins[row] = true
		count++
	}
	return x, begins, count
}

// TestMemoryIsProvedOverWholeEpisodes proves a network with a state, and one that is given the
// frames that the baked model keeps itself.
func TestMemoryIsProvedOverWholeEpisodes(t *testing.T) {
	const rows = 300
	x, begins, count := episodes(rows)
	stacks := tensor.New(tensor.Float32, rows, depth, seen)
	for row := range rows {
		for k := range depth {
			from := row
			for i := k; i < depth-1 && !begins[from]; i++ {
				from--
			}
			copy(stacks.Float32s()[(row*depth+k)*seen:], x.Float32s()[from*seen:(from+1)*seen])
		}
	}
	proved := 0
	for _, c := range testengines.All(t) {
		for _, frames := range []bool{false, true} {
			net, params, states := recurrent(t, frames)
			pair := Pair{Network: net, Params: params, Memory: states}
			samples, raw := []*tensor.Tensor{x}, []*tensor.Tensor(nil)
			var wrappers []Wrapper
			if frames {
				wrappers, samples, raw = []Wrapper{Frames{Input: "x", Repeat: true}}, []*tensor.Tensor{stacks}, samples
			}
			var err error
			if pair.Baked, err = Agent(net, params.View, states, wrappers...); err != nil {
				t.Fatal(err)
			}
			v, err := NewProver(c, pair)
			if err != nil {
				t.Fatal(err)
			}
			if err := v.Add(t.Context(), samples, raw, begins); err != nil {
				t.Fatalf("%s, frames %v: %v", c.Name(), frames, err)
			}
			first := slices.Index(begins[1:], true) + 1
			outputs := 2 * 3
			if !frames {
				outputs += cells
			}
			r, err := v.Report()
			if n := 2*rows + first; err != nil || r.Rows != n || r.Episodes != count || r.Values != n*outputs || r.MaxError > Tolerance {
				t.Errorf("%s, frames %v: %+v, %v; expected %d rows, %d episodes", c.Name(), frames, r, err, n, count)
			}
			if err := v.Close(); err != nil {
				t.Error(err)
			}
			// A memory that outlasts the beginning of an episode is found.
			other, marks := pair, slices.Clone(begins)
			marks[first] = false
			if v, err = NewProver(c, other); err != nil {
				t.Fatal(err)
			}
			err = v.Add(t.Context(), samples, raw, marks)
			var differs *ParityError
			if frames && (!errors.As(err, &differs) || differs.Row < first || differs.Row > first+depth) {
				t.Errorf("%s: a stack that is not begun again: %v", c.Name(), err)
			} else if !frames && err != nil {
				t.Errorf("%s: both forms may be led through longer episodes: %v", c.Name(), err)
			}
			if err := v.Close(); err != nil {
				t.Error(err)
			}
			proved++
		}
	}
	if proved != 2*len(testengines.All(t)) {
		t.Errorf("%d proofs", proved)
	}
}

// TestAMemoryThatDiffersIsFound bakes a network with one state whose feedback differs in the second
// step of an episode only.
func TestAMemoryThatDiffersIsFound(t *testing.T) {
	x, begins, _ := episodes(60)
	net, params, states := recurrent(t, false)
	value := func(name string) *tensor.Tensor {
		v := params.View(name)
		if strings.HasPrefix(name, "u.") && v.Rank() == 2 {
			v = v.Clone()
			v.Float32s()[0] += 0.01
		}
		return v
	}
	baked, err := Agent(net, value, states)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range testengines.All(t) {
		v, err := NewProver(c, Pair{Network: net, Params: params, Memory: states, Baked: baked})
		if err != nil {
			t.Fatal(err)
		}
		// Every first row agrees, because its state is 0.
		if err := v.Add(t.Context(), []*tensor.Tensor{x}, nil, nil); err != nil {
			t.Errorf("%s: first rows: %v", c.Name(), err)
		}
		var differs *ParityError
		if err := v.Add(t.Context(), []*tensor.Tensor{x}, nil, begins); !errors.As(err, &differs) || begins[differs.Row] {
			t.Errorf("%s: %v", c.Name(), err)
		}
		if err := v.Add(t.Context(), []*tensor.Tensor{x}, nil, begins[1:]); err == nil || !strings.Contains(err.Error(), "59 marks for 60 rows") {
			t.Errorf("%s: %v", c.Name(), err)
		}
		if err := v.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestStatesOfAgentsAreListed reads the metadata of a written file, and refuses networks whose
// states do not come back.
func TestStatesOfAgentsAreListed(t *testing.T) {
	net, params, states := recurrent(t, false)
	m, err := Agent(net, params.View, states)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "m.onnx")
	if err := onnx.Save(path, m, onnx.SaveOptions{}); err != nil {
		t.Fatal(err)
	}
	if m, err = onnx.Load(path); err != nil {
		t.Fatal(err)
	}
	list, err := models.States(m)
	if err != nil || len(list) != 1 || list[0].Input != "state/h" || list[0].Output != "next_state/h" || !slices.Equal(list[0].Shape, []int{cells}) || !slices.Equal(list[0].Initial, []float32{0}) || list[0].Len() != cells {
		t.Errorf("%+v, %v", list, err)
	}
	if _, err := Agent(net, params.View, []models.State{{Input: "state/h", Output: "none", Shape: []int{cells}, Initial: []float32{0}}}); err == nil || !strings.Contains(err.Error(), `has no "none"`) {
		t.Errorf("error %v", err)
	}
}

// TestSquashScale: the factor behind tanh is found, if it is that alone.
func TestSquashScale(t *testing.T) {
	in := onnx.TensorType{DType: tensor.Float32, Ranked: true, Dims: []onnx.Dim{onnx.Symbol("n"), onnx.Known(2)}}
	tests := map[string]struct {
		squash, scale string
		wrap          func(b *onnx.Builder, x onnx.Value) onnx.Value
	}{
		"none": {"", "", func(b *onnx.Builder, x onnx.Value) onnx.Value { return b.Op("Neg", []onnx.Value{x}) }},
		"tanh": {"tanh", "1", func(b *onnx.Builder, x onnx.Value) onnx.Value { return b.Op("Tanh", []onnx.Value{x}) }},
		"bounds": {"tanh", "2,0.5", func(b *onnx.Builder, x onnx.Value) onnx.Value {
			half, middle := b.Const(tensor.Of([]float32{-4, 1}, 2)), b.Const(tensor.Of([]float32{1, 2}, 2))
			x = b.Op("Add", []onnx.Value{middle, b.Op("Mul", []onnx.Value{half, b.Op("Tanh", []onnx.Value{x})})})
			x = b.Op("Min", []onnx.Value{x, middle})
			return b.Op("Div", []onnx.Value{x, b.Const(tensor.Of([]float32{2}, 1))})
		}},
		"more": {"tanh", "", func(b *onnx.Builder, x onnx.Value) onnx.Value {
			return b.Op("Exp", []onnx.Value{b.Op("Tanh", []onnx.Value{x})})
		}},
	}
	for name, x := range sorted.All(tests) {
		b := onnx.NewBuilder("policy", 17)
		mean := b.Rename(b.Op("Neg", []onnx.Value{b.Input("x", in)}), "action_mean")
		b.Output(mean, in)
		b.Output(b.Rename(b.Op("Abs", []onnx.Value{"x"}), "action_log_std"), in)
		b.Output(b.Rename(x.wrap(b, mean), "action"), in)
		m, err := b.Model()
		if err == nil {
			m, err = SampleGaussian(m, Gaussian{Output: "action", Mean: "action_mean", LogStd: "action_log_std"})
		}
		if err != nil {
			t.Fatal(name, err)
		}
		squash, _ := m.Meta(MetaSquash)
		if scale, _ := m.Meta(MetaSquashScale); squash != x.squash || scale != x.scale {
			t.Errorf("%s: %q by %q, expected %q by %q", name, squash, scale, x.squash, x.scale)
		}
	}
}

// TestGaussianSamples draws actions: without noise they are the best, with it they have the mean
// and the deviation that the outputs tell, clipped as the action is.
func TestGaussianSamples(t *testing.T) {
	const rows = 20_000
	net, params, states := recurrent(t, false)
	m, err := Agent(net, params.View, states)
	if err != nil {
		t.Fatal(err)
	}
	g := Gaussian{Output: "action", Mean: "action_mean", LogStd: "action_log_std"}
	sampled, err := SampleGaussian(m, g)
	if err != nil {
		t.Fatal(err)
	}
	x := tensor.New(tensor.Float32, rows, seen)
	for i := range x.Float32s() {
		x.Float32s()[i] = []float32{0.3, -0.2, 0.1, 0.4}[i%seen]
	}
	noise := tensor.New(tensor.Float32, rows, 2)
	given := map[string]*tensor.Tensor{"x": x, "state/h": states[0].Tensor(rows), NoiseInput: noise}
	for _, c := range testengines.All(t) {
		clear(noise.Float32s())
		out, err := outputs(t, c, sampled, given)
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(out["action"].Float32s(), out[SampleOutput].Float32s()) {
			t.Errorf("%s: without noise the samples are not the actions", c.Name())
		}
		s := rng.New(4).Stream()
		for i := range noise.Float32s() {
			noise.Float32s()[i] = float32(s.Normal())
		}
		if out, err = outputs(t, c, sampled, given); err != nil {
			t.Fatal(err)
		}
		mean, std, drawn := out["action_mean"].Float32s(), out["action_log_std"].Float32s(), out[SampleOutput].Float32s()
		clipped := 0
		for i, a := range drawn {
			want := float64(mean[i]) + math.Exp(float64(std[i]))*float64(noise.Float32s()[i])
			if want < -0.5 || want > 0.5 {
				clipped++
			}
			if want = max(-0.5, min(0.5, want)); math.Abs(float64(a)-want) > 1e-5 {
				t.Fatalf("%s: sample %d is %g, expected %g", c.Name(), i, a, want)
			}
		}
		if clipped == 0 || clipped == len(drawn) {
			t.Errorf("%s: %d of %d samples are clipped", c.Name(), clipped, len(drawn))
		}
	}
	for want, bad := range sorted.All(map[string]Gaussian{
		"expected float32":             {Output: "action", Mean: "action_mean", LogStd: "next_state/h"},
		"does not depend on the mean":  {Output: "next_state/h", Mean: "action_mean", LogStd: "action_log_std"},
		"expected float32, the latter": {Output: "none", Mean: "action_mean", LogStd: "action_log_std"},
	}) {
		if _, err := SampleGaussian(m, bad); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v", bad, err)
		}
	}
	if _, err := SampleGaussian(sampled, g); err == nil || !strings.Contains(err.Error(), `has a "noise" already`) {
		t.Errorf("twice: %v", err)
	}
}
