package enginetest

import (
	"context"
	"testing"

	"github.com/onnxrl/onnxrl/runtime/engine"
	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// wiring runs what a decoder easily loses: absent inputs and outputs, one value as several inputs,
// outputs that are inputs or weights.
func (s *suite) wiring(t *testing.T) {
	e := s.open(t)
	vec := onnx.TypeOf(tensor.Float32, 3)
	b := onnx.NewBuilder("wiring", opset)
	x := b.Input("x", vec)
	w := b.Initializer("w", tensor.Of([]float32{5, 6, 7}, 3))
	b.Output(b.Rename(b.Op("Clip", []onnx.Value{x, "", b.Float(2)}), "clipped"), vec)
	b.Output(b.Rename(b.Op("Concat", []onnx.Value{x, x}, onnx.AttrInt("axis", 0)), "twice"), onnx.TypeOf(tensor.Float32, 6))
	// Unique's second output is optional and absent, its third is the position of each element
	// among the distinct ones.
	distinct := b.OpN("Unique", "", 3, []onnx.Value{b.Op("Neg", []onnx.Value{x})})
	b.Graph().Node[len(b.Graph().Node)-1].Output[1] = ""
	b.Output(b.Rename(b.Op("Cast", distinct[2:], onnx.AttrInt("to", int(tensor.Float32))), "ranks"), symbolic(tensor.Float32, onnx.Symbol("n")))
	b.Output(b.Rename(b.Op("Mul", []onnx.Value{x, x}), "square"), vec)
	b.Output(w, vec)
	session := compile(t, e, finish(t, b), engine.Options{})
	out := make([]*tensor.Tensor, 5)
	if err := session.Run(context.Background(), out, []*tensor.Tensor{tensor.Of([]float32{1, 2, 3}, 3)}); err != nil {
		t.Fatal(err)
	}
	want := [][]float32{{1, 2, 2}, {1, 2, 3, 1, 2, 3}, {2, 1, 0}, {1, 4, 9}, {5, 6, 7}}
	for i, w := range want {
		close32(t, session.Outputs()[i].Name, out[i].Float32s(), w)
	}
}

// subgraphs runs branches and a loop whose bodies read values from outside, with fixed buffers and
// changing inputs.
func (s *suite) subgraphs(t *testing.T) {
	e := s.open(t)
	vec := onnx.TypeOf(tensor.Float32, 2)
	branch := func(op string) *onnx.Graph {
		return &onnx.Graph{Name: op, Node: []*onnx.Node{{OpType: op, Input: []string{"x"}, Output: []string{"out_" + op}}},
			Output: []*onnx.ValueInfo{onnx.NewValueInfo(onnx.Value("out_"+op), vec)}}
	}
	// state ← state + x per turn, and every state is kept.
	body := &onnx.Graph{Name: "body",
		Input: []*onnx.ValueInfo{onnx.NewValueInfo("turn", onnx.TypeOf(tensor.Int64)), onnx.NewValueInfo("go", onnx.TypeOf(tensor.Bool)), onnx.NewValueInfo("state", vec)},
		Node: []*onnx.Node{{OpType: "Identity", Input: []string{"go"}, Output: []string{"go_on"}}, {OpType: "Add", Input: []string{"state", "x"}, Output: []string{"next"}},
			{OpType: "Identity", Input: []string{"next"}, Output: []string{"kept"}}},
		Output: []*onnx.ValueInfo{onnx.NewValueInfo("go_on", onnx.TypeOf(tensor.Bool)), onnx.NewValueInfo("next", vec), onnx.NewValueInfo("kept", vec)}}
	b := onnx.NewBuilder("subgraphs", opset)
	x, flag, turns := b.Input("x", vec), b.Input("flag", onnx.TypeOf(tensor.Bool)), b.Input("turns", onnx.TypeOf(tensor.Int64))
	b.Output(b.Rename(b.Op("If", []onnx.Value{flag}, onnx.AttrGraph("then_branch", branch("Neg")), onnx.AttrGraph("else_branch", branch("Abs"))), "y"), vec)
	v := b.OpN("Loop", "", 2, []onnx.Value{turns, b.Const(tensor.Scalar(true)), x}, onnx.AttrGraph("body", body))
	b.Output(b.Rename(v[0], "last"), vec)
	b.Output(b.Rename(v[1], "all"), symbolic(tensor.Float32, onnx.Symbol("turns"), onnx.Known(2)))
	session := compile(t, e, finish(t, b), engine.Options{})
	in := []*tensor.Tensor{tensor.Of([]float32{1, -2}, 2), tensor.Scalar(true), tensor.Scalar(int64(3))}
	out := []*tensor.Tensor{tensor.New(tensor.Float32, 2), tensor.New(tensor.Float32, 2), tensor.New(tensor.Float32, 3, 2)}
	bound, err := session.Bind(out, in)
	if err != nil {
		t.Fatal(err)
	}
	for run, flag := range []bool{true, false, true} {
		in[1].Bools()[0] = flag
		a := float32(run + 1)
		copy(in[0].Float32s(), []float32{a, -2 * a})
		if err := bound.Run(); err != nil {
			t.Fatal(err)
		}
		y := []float32{-a, 2 * a}
		if !flag {
			y = []float32{a, 2 * a}
		}
		close32(t, "y", out[0].Float32s(), y)
		close32(t, "last", out[1].Float32s(), []float32{4 * a, -8 * a})
		close32(t, "all", out[2].Float32s(), []float32{2 * a, -4 * a, 3 * a, -6 * a, 4 * a, -8 * a})
	}
	if err := bound.Close(); err != nil {
		t.Fatal(err)
	}
	// Another number of turns is another shape, which a fresh output takes.
	fresh := make([]*tensor.Tensor, 3)
	if err := session.Run(context.Background(), fresh, []*tensor.Tensor{in[0], in[1], tensor.Scalar(int64(1))}); err != nil {
		t.Fatal(err)
	}
	if fresh[2].Shape()[0] != 1 {
		t.Errorf("one turn gives %v", fresh[2])
	}
}
