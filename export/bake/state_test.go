package bake

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/models"
	"github.com/onnxrl/onnxrl/runtime/engine"
	"github.com/onnxrl/onnxrl/runtime/engine/testengines"
	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/rng"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// stacked is a model of the last k observations of 2·3 features: their sum and, to tell them apart,
// their product with weights.
func stacked(t *testing.T, k int) *onnx.Model {
	t.Helper()
	b := onnx.NewBuilder("stacked", 13)
	in := onnx.TensorType{DType: tensor.Float32, Ranked: true, Dims: []onnx.Dim{onnx.Symbol("batch"), onnx.Known(k), onnx.Known(2), onnx.Known(3)}}
	x := b.Input("window", in)
	w := tensor.New(tensor.Float32, k*6, 4)
	s := rng.New(2).Stream()
	for i := range w.Float32s() {
		w.Float32s()[i] = float32(s.Normal())
	}
	flat := b.Op("Reshape", []onnx.Value{x, b.Ints(-1, k*6)})
	y := b.Rename(b.Op("MatMul", []onnx.Value{flat, b.Initializer("w", w)}), "y")
	b.Output(y, onnx.TensorType{DType: tensor.Float32, Ranked: true, Dims: []onnx.Dim{onnx.Symbol("batch"), onnx.Known(4)}})
	m, err := b.Model()
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// TestStackEqualsWindowsOverWholeEpisodes plays episodes of different lengths side by side, so that
// rows of one batch begin at different times, and compares each step with the model of whole
// windows.
func TestStackEqualsWindowsOverWholeEpisodes(t *testing.T) {
	const rows, steps, features = 5, 40, 6
	compared := 0
	for _, c := range testengines.All(t) {
		for _, k := range []int{1, 2, 4} {
			for _, f := range []Frames{{Input: "window"}, {Input: "window", Initial: -2.5}, {Input: "window", Repeat: true}} {
				full := stacked(t, k)
				m, err := Stack(full, f)
				if err != nil {
					t.Fatal(err)
				}
				states, err := models.States(m)
				if want := map[bool]int{true: 0, false: 1}[k == 1]; err != nil || len(states) != want && !(f.Repeat && k > 1 && len(states) == 2) {
					t.Fatalf("k = %d: states %+v, %v", k, states, err)
				}
				a, err := c.Compile(full, engine.Options{})
				if err != nil {
					t.Fatal(err)
				}
				b, err := c.Compile(m, engine.Options{})
				if err != nil {
					t.Fatal(err)
				}
				// As the server does: the outputs of one step are the inputs of the next, and
				// rows that begin get what is initial.
				given := map[string]*tensor.Tensor{}
				for _, s := range states {
					given[s.Input] = s.Tensor(rows)
				}
				draws := rng.New(7).Stream()
				window := tensor.New(tensor.Float32, rows, k, 2, 3)
				for step := range steps {
					x := tensor.New(tensor.Float32, rows, 2, 3)
					for i := range x.Float32s() {
						x.Float32s()[i] = float32(draws.Normal())
					}
					for row := range rows {
						frame := x.Float32s()[row*features : (row+1)*features]
						past := window.Float32s()[row*k*features : (row+1)*k*features]
						if step%(3+row) == 0 {
							for _, s := range states {
								s.Fill(given[s.Input].Rows(row, row+1).Float32s())
							}
							for i := range past {
								if past[i] = f.Initial; f.Repeat {
									past[i] = frame[i%features]
								}
							}
						}
						copy(past, past[features:])
						copy(past[(k-1)*features:], frame)
					}
					given["window"] = x
					want, err := runOn(t.Context(), a, map[string]*tensor.Tensor{"window": window})
					if err != nil {
						t.Fatal(err)
					}
					got, err := runOn(t.Context(), b, given)
					if err != nil {
						t.Fatal(err)
					}
					for i, w := range want[0].Float32s() {
						if g := got[0].Float32s()[i]; g != w {
							t.Fatalf("%s, k = %d, %+v, step %d: %g, want %g", c.Name(), k, f, step, g, w)
						}
						compared++
					}
					for _, s := range states {
						i := slices.IndexFunc(b.Outputs(), func(p engine.Port) bool { return p.Name == s.Output })
						given[s.Input] = got[i]
					}
				}
				if a.Close() != nil || b.Close() != nil {
					t.Error("a session did not close")
				}
			}
		}
	}
	if compared < 9*steps*rows*4 {
		t.Errorf("%d values were compared", compared)
	}
}

func TestStackRefuses(t *testing.T) {
	for _, k := range []struct {
		f    Frames
		want string
	}{
		{Frames{Input: "x"}, `input "x": the model has no such input`},
		{Frames{Input: "window", Initial: float32(math.NaN())}, "expected a finite number"},
		{Frames{Input: "window", Initial: float32(math.Inf(1))}, "expected a finite number"},
	} {
		if _, err := Stack(stacked(t, 3), k.f); err == nil || !strings.Contains(err.Error(), k.want) {
			t.Errorf("%+v: error %v, want %q", k.f, err, k.want)
		}
	}
	m := stacked(t, 3)
	m.Graph.Input[0] = onnx.NewValueInfo("window", onnx.TypeOf(tensor.Float32, 1, 3, 2, 3))
	if _, err := Stack(m, Frames{Input: "window"}); err == nil || !strings.Contains(err.Error(), "expected float32[batch frames …]") {
		t.Errorf("a fixed batch: error %v", err)
	}
}

func TestStatesAreChecked(t *testing.T) {
	m, err := Stack(stacked(t, 3), Frames{Input: "window"})
	if err != nil {
		t.Fatal(err)
	}
	text, _ := m.Meta(models.StateKey)
	if want := `[{"input":"window_state_in","output":"window_state_out","shape":[2,2,3],"initial":[0]}]`; text != want {
		t.Errorf("metadata %s, want %s", text, want)
	}
	for _, k := range []struct{ old, new, want string }{
		{"window_state_in", "other", `the model has no "other"`},
		{"window_state_out", "y", `"y" is float32[batch,4]`},
		{"[2,2,3]", "[2,3,2]", "expected float32[batch [2 3 2]]"},
		{"[2,2,3]", "[2,-2,3]", "initial values"},
		{`"initial":[0]`, `"initial":[0,1]`, "has 2 initial values"},
		{`"initial":[0]`, `"initial":[]`, "has 0 initial values"},
		{`"initial":[0]`, `"initial":["a"]`, "cannot unmarshal"},
		{`"shape"`, `"form"`, "unknown field"},
		{"[{", "[", "metadata onnxrl.state"},
		{"}]", "}," + text[1:], "is listed twice"},
	} {
		bad := m.ShallowClone()
		bad.SetMeta(models.StateKey, strings.Replace(text, k.old, k.new, 1))
		if _, err := models.States(bad); err == nil || !strings.Contains(err.Error(), k.want) {
			t.Errorf("%s for %s: error %v, want %q", k.new, k.old, err, k.want)
		}
	}
	if list, err := models.States(stacked(t, 3)); err != nil || list != nil {
		t.Errorf("a model that remembers nothing: %v, %v", list, err)
	}
	row := make([]float32, 3)
	models.State{Initial: []float32{1, 2, 3}}.Fill(row)
	if !slices.Equal(row, []float32{1, 2, 3}) {
		t.Errorf("row %v", row)
	}
}
