package portable_test

import (
	"math"
	"slices"
	"testing"

	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/portable"
	"github.com/onnxrl/onnxrl/runtime/sorted"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// TestSequences runs lists of tensors through graphs whose inputs and outputs are tensors.
func TestSequences(t *testing.T) {
	x := func() *tensor.Tensor { return tensor.Of([]float32{1, -2}, 2) }
	ints := func(name string, v ...int64) *onnx.TensorProto {
		if len(v) == 1 {
			return weight(name, tensor.Scalar(v[0]))
		}
		return weight(name, tensor.Of(v, len(v)))
	}
	loopBody := &onnx.Graph{Name: "body",
		Input: []*onnx.ValueInfo{info("i", onnx.TypeOf(tensor.Int64)), info("c", onnx.TypeOf(tensor.Bool)), {Name: "list"}},
		// Each turn's tensor must stay what it was when it was put into the list.
		Node: []*onnx.Node{node("Identity", "c", "co"), node("Cast", "i", "fi", onnx.AttrInt("to", 1)), node("Mul", "x fi", "v"),
			node("SequenceInsert", "list v", "longer")},
		Output: []*onnx.ValueInfo{info("co", onnx.TypeOf(tensor.Bool)), {Name: "longer"}}}
	cases := []struct {
		name string
		m    *onnx.Model
		want []float32
	}{
		{"construct, insert, at", model(&onnx.Graph{Initializer: []*onnx.TensorProto{ints("one", 1), ints("last", -1)}, Node: []*onnx.Node{
			node("Neg", "x", "n"), node("Abs", "x", "a"), node("SequenceConstruct", "x n", "s"), node("SequenceInsert", "s a one", "t"),
			node("SequenceAt", "t one", "p"), node("SequenceAt", "t last", "q"), node("Sub", "p q", "y")}, Output: outputs("y")}), []float32{2, 0}},
		{"erase and length", model(&onnx.Graph{Node: []*onnx.Node{node("SequenceConstruct", "x x x", "s"), node("SequenceErase", "s", "t"),
			node("SequenceLength", "t", "l"), node("Cast", "l", "y", onnx.AttrInt("to", 1))}, Output: outputs("y")}), []float32{2}},
		{"split and concat", model(&onnx.Graph{Initializer: []*onnx.TensorProto{ints("sizes", 1, 1)}, Node: []*onnx.Node{node("SplitToSequence", "x sizes", "s"),
			node("ConcatFromSequence", "s", "y", onnx.AttrInt("axis", 0))}, Output: outputs("y")}), []float32{1, -2}},
		{"split and stack", model(&onnx.Graph{Node: []*onnx.Node{node("SplitToSequence", "x", "s", onnx.AttrInt("keepdims", 0)),
			node("ConcatFromSequence", "s", "y", onnx.AttrInt("axis", 0), onnx.AttrInt("new_axis", 1))}, Output: outputs("y")}), []float32{1, -2}},
		{"through an identity and a branch", model(&onnx.Graph{Initializer: []*onnx.TensorProto{weight("yes", tensor.Scalar(true)), ints("zero", 0)}, Node: []*onnx.Node{
			node("SequenceConstruct", "x x", "s"), node("Identity", "s", "same"), node("If", "yes", "out",
				onnx.AttrGraph("then_branch", &onnx.Graph{Node: []*onnx.Node{node("SequenceErase", "same", "e")}, Output: []*onnx.ValueInfo{{Name: "e"}}}),
				onnx.AttrGraph("else_branch", &onnx.Graph{Output: []*onnx.ValueInfo{{Name: "same"}}})), node("SequenceAt", "out zero", "y")}, Output: outputs("y")}), []float32{1, -2}},
		{"as the state of a loop", model(&onnx.Graph{Initializer: []*onnx.TensorProto{ints("three", 3), weight("on", tensor.Scalar(true))}, Node: []*onnx.Node{
			node("SequenceEmpty", "", "empty"), node("Loop", "three on empty", "all", onnx.AttrGraph("body", loopBody)),
			node("ConcatFromSequence", "all", "y", onnx.AttrInt("axis", 0))}, Output: outputs("y")}), []float32{0, 0, 1, -2, 2, -4}},
		{"optionals", model(&onnx.Graph{Node: []*onnx.Node{node("Optional", "x", "o"), node("Optional", "", "none"), node("OptionalHasElement", "o", "h"),
			node("OptionalHasElement", "none", "g"), node("Xor", "h g", "b"), node("Cast", "b", "f", onnx.AttrInt("to", 1)), node("OptionalGetElement", "o", "v"),
			node("Mul", "v f", "y")}, Output: outputs("y")}), []float32{1, -2}},
	}
	for _, c := range cases {
		for range 2 {
			if got := run(t, c.m, x())[0].Float32s(); !slices.Equal(got, c.want) {
				t.Errorf("%s: got %v, expected %v", c.name, got, c.want)
			}
		}
	}
	for name, m := range sorted.All(map[string]*onnx.Model{
		"position past the end": model(&onnx.Graph{Initializer: []*onnx.TensorProto{ints("i", 3)}, Node: []*onnx.Node{node("SequenceConstruct", "x", "s"), node("SequenceAt", "s i", "y")}, Output: outputs("y")}),
		"empty optional":        model(&onnx.Graph{Node: []*onnx.Node{node("Optional", "", "o"), node("OptionalGetElement", "o", "y")}, Output: outputs("y")}),
		"tensor for a sequence": model(&onnx.Graph{Initializer: []*onnx.TensorProto{ints("i", 0)}, Node: []*onnx.Node{node("SequenceAt", "x i", "y")}, Output: outputs("y")}),
		"sequence for a tensor": model(&onnx.Graph{Node: []*onnx.Node{node("SequenceConstruct", "x", "s"), node("Neg", "s", "y")}, Output: outputs("y")}),
		"sequence as an output": model(&onnx.Graph{Node: []*onnx.Node{node("SequenceConstruct", "x", "y")}, Output: outputs("y")}),
	}) {
		s := compileModel(t, m)
		if err := s.Run(t.Context(), make([]*tensor.Tensor, 1), []*tensor.Tensor{x()}); err == nil {
			t.Errorf("%s: it ran", name)
		}
	}
}

// TestRandomOperators checks moments, and that a seed fixes the stream.
func TestRandomOperators(t *testing.T) {
	shape := onnx.AttrInts("shape", 20000)
	moments := func(n *onnx.Node, in ...*tensor.Tensor) (mean, std float64, first []float32) {
		t.Helper()
		out, err := portable.Eval(n, 22, in)
		if err != nil {
			t.Fatal(err)
		}
		v := out[0].Float32s()
		for _, x := range v {
			mean += float64(x) / float64(len(v))
		}
		for _, x := range v {
			std += (float64(x) - mean) * (float64(x) - mean) / float64(len(v))
		}
		return mean, math.Sqrt(std), v[:4]
	}
	p := tensor.New(tensor.Float32, 20000)
	for i := range p.Float32s() {
		p.Float32s()[i] = 0.3
	}
	drop := node("Dropout", "x r t", "y", onnx.AttrInt("seed", 3))
	checked := 0
	for _, c := range []struct {
		name      string
		n         *onnx.Node
		in        []*tensor.Tensor
		mean, std float64
	}{
		{"normal", node("RandomNormal", "", "y", shape, onnx.AttrFloat("mean", 2), onnx.AttrFloat("scale", 0.5), onnx.AttrFloat("seed", 7)), nil, 2, 0.5},
		{"uniform", node("RandomUniform", "", "y", shape, onnx.AttrFloat("low", -1), onnx.AttrFloat("high", 3)), nil, 1, 4 / math.Sqrt(12)},
		{"normal like", node("RandomNormalLike", "x", "y"), []*tensor.Tensor{p}, 0, 1},
		{"bernoulli", node("Bernoulli", "x", "y"), []*tensor.Tensor{p}, 0.3, math.Sqrt(0.21)},
		{"dropout", drop, []*tensor.Tensor{p, tensor.Scalar(float32(0.4)), tensor.Scalar(true)}, 0.3, 0.5 * math.Sqrt(0.24)},
	} {
		mean, std, first := moments(c.n, c.in...)
		if math.Abs(mean-c.mean) > 0.05 || math.Abs(std-c.std) > 0.03 {
			t.Errorf("%s: mean %v, deviation %v, expected %v and %v", c.name, mean, std, c.mean, c.std)
		}
		if _, _, again := moments(c.n, c.in...); !slices.Equal(first, again) {
			t.Errorf("%s: the same node gives %v and %v", c.name, first, again)
		}
		checked++
	}
	if checked != 5 {
		t.Errorf("%d generators checked, expected 5", checked)
	}
	out, err := portable.Eval(node("Multinomial", "x", "y", onnx.AttrInt("sample_size", 3000)), 22, []*tensor.Tensor{tensor.Of([]float32{0, float32(math.Log(3))}, 1, 2)})
	if err != nil {
		t.Fatal(err)
	}
	ones := 0
	for _, v := range out[0].Int32s() {
		ones += int(v)
	}
	if ones < 2100 || ones > 2400 {
		t.Errorf("class 1 of odds 1:3 was drawn %d times of 3000", ones)
	}
}
