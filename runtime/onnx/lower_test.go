package onnx

import "testing"

func TestLowered(t *testing.T) {
	sub := func(op string) *Node {
		return node("If", "c", "y", AttrGraph("then_branch", subgraph("", "t", node(op, "x", "t"))), AttrGraph("else_branch", subgraph("", "e", node("Neg", "x", "e"))))
	}
	for _, c := range []struct {
		from, to, want int
		m              *Model
	}{
		{27, 26, 26, model("x", "", "y", node("Relu", "x", "y"))},
		{24, 26, 24, model("x", "", "y", node("Relu", "x", "y"))},
		{27, 18, 27, model("x", "", "y", node("Gelu", "x", "y"))},
		{27, 20, 20, model("x", "", "y", node("Gelu", "x", "y"))},
		{27, 18, 27, model("c,x", "", "y", sub("Swish"))},
		{27, 24, 24, model("c,x", "", "y", sub("Mish"))},
		{27, 22, 27, model("x,w", "", "y", node("Reshape", "x,w", "y"), node("Cast", "y", "z", AttrInt("to", 1), AttrStr("round_mode", "up")))},
		{27, 22, 22, model("x,w", "", "y", node("Reshape", "x,w", "y"), node("Cast", "y", "z", AttrInt("to", 1)))},
		{27, 26, 27, model("x", "", "y", node("Unheard", "x", "y"))},
	} {
		at(c.from, c.m)
		got := Lowered(c.m, c.to)
		if got.Opset("") != c.want || c.m.Opset("") != c.from {
			t.Errorf("%s from %d to %d: opset %d, want %d", brief(c.m.Graph), c.from, c.to, got.Opset(""), c.want)
		}
	}
}
