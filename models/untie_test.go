package models

import (
	"slices"
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/runtime/onnx"
)

func TestUntieGivesEveryUseItsOwn(t *testing.T) {
	b := onnx.NewBuilder("tied", 18)
	x := b.Input("x", rows)
	w, v := b.Initializer("w", floats(4, 4)), b.Initializer("v", floats(4, 4))
	h := b.Op("MatMul", []onnx.Value{b.Op("MatMul", []onnx.Value{b.Op("MatMul", []onnx.Value{x, w}), w}), v})
	// A look at the type is no use of v.
	h = b.Op("CastLike", []onnx.Value{h, v})
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

// TestUntieStatistics has the three forms of sharing: an Identity that an exporter left, an
// initializer of two layers, and one that is a scale too.
func TestUntieStatistics(t *testing.T) {
	b := onnx.NewBuilder("merged", 18)
	x := b.Input("x", rows)
	ones, zeros := b.Initializer("1.weight", floats(4)), b.Initializer("1.bias", floats(4))
	mean, variance := b.Rename(zeros, "1.running_mean"), b.Rename(ones, "1.running_var")
	h := b.Op("BatchNormalization", []onnx.Value{x, ones, zeros, mean, variance})
	h = b.Op("BatchNormalization", []onnx.Value{h, ones, zeros, mean, ones})
	b.Output(b.Rename(h, "y"), rows)
	m, err := b.Model()
	if err != nil {
		t.Fatal(err)
	}
	u, err := UntieStatistics(m)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, n := range u.Graph.Node {
		got = append(got, n.OpType+" "+strings.Join(n.Input, " "))
	}
	want := []string{
		"BatchNormalization x 1.weight 1.bias 1.running_mean 1.running_var",
		"BatchNormalization " + m.Graph.Node[2].Output[0] + " 1.weight 1.bias 1.running_mean.running 1.weight.running",
		"Identity " + m.Graph.Node[3].Output[0],
	}
	if !slices.Equal(got, want) {
		t.Errorf("nodes\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if err := onnx.Check(u); err != nil {
		t.Error(err)
	}
	net, _, err := FromModel(u, Options{})
	if err != nil {
		t.Fatal(err)
	}
	roles := map[Role]int{}
	for _, s := range net.Specs {
		roles[s.Role]++
	}
	if roles[Trainable] != 2 || roles[Buffer] != 4 {
		t.Errorf("roles %v, want 2 trainable and 4 buffers", roles)
	}
	if len(m.Graph.Node) != 5 || len(m.Graph.Initializer) != 2 {
		t.Error("the model has changed")
	}
	again, err := UntieStatistics(u)
	if err != nil || len(again.Graph.Initializer) != 6 || len(again.Graph.Node) != 3 {
		t.Errorf("statistics of their own stay as they are: %v", err)
	}
}
