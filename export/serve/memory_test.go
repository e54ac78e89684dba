package serve

import (
	"slices"
	"testing"

	"github.com/onnxrl/onnxrl/models"
	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// TestStatesAreReadAsTheyAreWritten lists states in a model's metadata as exports do and reads them
// as the server does.
func TestStatesAreReadAsTheyAreWritten(t *testing.T) {
	list := []models.State{
		{Input: "state/h", Output: "next_state/h", Shape: []int{3}, Initial: []float32{0}},
		{Input: "x_state_in", Output: "x_state_out", Shape: []int{2, 2}, Initial: []float32{0.5, -1e-7, 3, 16777216}},
		{Input: "x_seen_in", Output: "x_seen_out", Shape: []int{1}, Initial: []float32{-2.5}},
		{Input: "scalar_in", Output: "scalar_out", Shape: []int{}, Initial: []float32{1}},
	}
	b := onnx.NewBuilder("states", 13)
	for _, s := range list {
		form := onnx.TensorType{DType: tensor.Float32, Ranked: true, Dims: []onnx.Dim{onnx.Symbol("batch")}}
		for _, n := range s.Shape {
			form.Dims = append(form.Dims, onnx.Known(n))
		}
		b.Output(b.Rename(b.Op("Neg", []onnx.Value{b.Input(s.Input, form)}), s.Output), form)
	}
	m, err := b.Model()
	if err != nil {
		t.Fatal(err)
	}
	if err := models.AddStates(m, list); err != nil {
		t.Fatal(err)
	}
	again, err := models.States(m)
	if err != nil || len(again) != len(list) {
		t.Fatal(again, err)
	}
	text, ok := m.Meta(StateKey)
	if !ok {
		t.Fatalf("the server reads %q, exports write %q", StateKey, models.StateKey)
	}
	ports, err := parseState(text)
	if err != nil || len(ports) != len(list) {
		t.Fatal(ports, err)
	}
	for i, s := range list {
		p := ports[i]
		if p.Input != s.Input || p.Output != s.Output || len(p.Initial) != len(s.Initial) {
			t.Errorf("%+v became %+v", s, p)
			continue
		}
		for k, x := range s.Initial {
			if float32(p.Initial[k]) != x {
				t.Errorf("%s: initial value %v became %v", s.Input, x, p.Initial[k])
			}
		}
		if !slices.Equal(again[i].Shape, s.Shape) || !slices.Equal(again[i].Initial, s.Initial) {
			t.Errorf("%+v became %+v", s, again[i])
		}
	}
}
