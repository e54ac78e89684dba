package models

import (
	"slices"
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/sorted"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// model has a state x -> y of two elements.
func model(t *testing.T) *onnx.Model { return pair(t, "x", "y", onnx.Known(2)) }

// pair has one input [n, width] and one output like it.
func pair(t *testing.T, in, out string, width onnx.Dim) *onnx.Model {
	t.Helper()
	form := onnx.TensorType{DType: tensor.Float32, Ranked: true, Dims: []onnx.Dim{onnx.Symbol("n"), width}}
	b := onnx.NewBuilder("m", 13)
	b.Output(b.Rename(b.Op("Neg", []onnx.Value{b.Input(in, form)}), out), form)
	m, err := b.Model()
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestStates(t *testing.T) {
	m := model(t)
	want := State{Input: "x", Output: "y", Shape: []int{2}, Initial: []float32{1, -2}}
	if list, err := States(m); list != nil || err != nil {
		t.Errorf("a model that remembers nothing: %v, %v", list, err)
	}
	if err := AddStates(m, []State{want}); err != nil {
		t.Fatal(err)
	}
	list, err := States(m)
	if err != nil || len(list) != 1 || list[0].Input != "x" || list[0].Output != "y" || !slices.Equal(list[0].Shape, want.Shape) || !slices.Equal(list[0].Initial, want.Initial) || list[0].Len() != 2 {
		t.Errorf("%+v, %v", list, err)
	}
	if got := list[0].Tensor(2); !slices.Equal(got.Shape(), []int{2, 2}) || !slices.Equal(got.Float32s(), []float32{1, -2, 1, -2}) {
		t.Errorf("initial values %v", got.Float32s())
	}
	one := State{Shape: []int{2}, Initial: []float32{3}}
	if got := one.Tensor(1).Float32s(); !slices.Equal(got, []float32{3, 3}) {
		t.Errorf("one initial value became %v", got)
	}
}

// TestNamed finds the states of a policy by the names of inputs and outputs.
func TestNamed(t *testing.T) {
	named := func(in, out string) *onnx.Graph { return pair(t, in, out, onnx.Known(2)).Graph }
	open := named("state/h", "next_state/h")
	open.Output[0].Type = nil
	for _, c := range []struct {
		what string
		g    *onnx.Graph
		want int
		err  string
	}{
		{"none", named("x", "y"), 0, ""},
		{"one", named("state/h", "next_state/h"), 1, ""},
		{"an output without a type", open, 1, ""},
		{"no output", named("state/h", "y"), 0, `state "state/h": the network has no output "next_state/h"`},
		{"no input", named("x", "next_state/h"), 0, `no input "state/h"`},
		{"an unknown extent", pair(t, "state/h", "next_state/h", onnx.Symbol("k")).Graph, 0, "known extents"},
	} {
		list, err := NamedStates(c.g)
		if len(list) != c.want || (c.err == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("%s: %+v, %v, expected %d and %q", c.what, list, err, c.want, c.err)
		}
		for _, s := range list {
			if want := ZeroState("h", 2); s.Name() != "h" || s.Input != want.Input || s.Output != want.Output || !slices.Equal(s.Shape, want.Shape) || !slices.Equal(s.Initial, []float32{0}) {
				t.Errorf("%s: %+v, expected %+v", c.what, s, want)
			}
		}
	}
}

func TestTextsThatAreNoStates(t *testing.T) {
	cases := 0
	for text, want := range sorted.All(map[string]string{
		`{`: "metadata onnxrl.state",
		`[{"input":"x","output":"","shape":[2],"initial":[0]}]`:                                                       "expected names",
		`[{"input":"x","output":"y","shape":[2],"initial":[0]},{"input":"x","output":"z","shape":[2],"initial":[0]}]`: "listed twice",
		`[{"input":"x","output":"y","shape":[2],"initial":[0,1,2]}]`:                                                  "has 3 initial values",
		`[{"input":"x","output":"y","shape":[-2],"initial":[0]}]`:                                                     "of shape [-2]",
		`[{"input":"x","output":"y","form":[2],"initial":[0]}]`:                                                       "unknown field",
		`[] []`: "something behind",
		`[]}`:   "something behind",
	}) {
		if _, err := ParseStates(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
		cases++
	}
	if cases != 8 {
		t.Errorf("%d cases", cases)
	}
	m := model(t)
	m.SetMeta(StateKey, `[{"input":"x","output":"y","shape":[3],"initial":[0]}]`)
	if _, err := States(m); err == nil || !strings.Contains(err.Error(), "expected float32[batch [3]]") {
		t.Errorf("another shape: %v", err)
	}
}
