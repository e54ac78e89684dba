package models

import (
	"slices"
	"strings"
	"testing"

	"onnxrl/runtime/onnx"
)

func TestUntieGivesEveryUseItsOwn(t *testing.T) {
	b := onnx.NewBuilder("tied", 18)
	x := b.Input("x", rows)
	w, v := b.Initializer("w", floats(4, 4)), b.Initializer("v", floats(4, 4))
	h := b.Op("MatMul", []onnx.Value{b.Op("MatMul", []onnx.Value{b.Op("MatMul", []onnx.Value{x, w}), w}), v})
	b.Output(b.Rename(b.Op("MatMul", []onnx.Value{h, w}), "y"), rows)
	m, err := b.Model()
	if err != nil {
		t.Fatal(err)
	}
	net, _, err := FromModel(m, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if got := Shared(net.Model, net.Specs); !slices.Equal(got, []string{"w"}) {
		t.Errorf("shared %v, want w", got)
	}
	u, err := Untie(m, []string{"w"})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, n := range u.Graph.Node {
		if n.OpType == "MatMul" {
			names = append(names, n.Input[1])
		}
	}
	if want := []string{"w", "w.2", "v", "w.3"}; !slices.Equal(names, want) {
		t.Errorf("weights %v, want %v", names, want)
	}
	if m.Graph.Node[1].Input[1] != "w" || len(m.Graph.Initializer) != 2 {
		t.Error("the model has changed")
	}
	if err := onnx.Check(u); err != nil {
		t.Error(err)
	}
	for _, pattern := range []string{"v", "z"} {
		if _, err := Untie(m, []string{pattern}); err == nil || !strings.Contains(err.Error(), "no initializer of that name is used more than once") {
			t.Errorf("%s: error %v", pattern, err)
		}
	}
	if same, err := Untie(m, nil); err != nil || same != m {
		t.Errorf("without patterns nothing is done: %v", err)
	}
}
