package portable_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/runtime/engine"
	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/onnx/schema"
	"github.com/onnxrl/onnxrl/runtime/portable"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

var vec2 = onnx.TypeOf(tensor.Float32, 2)

func info(name string, t onnx.TensorType) *onnx.ValueInfo {
	return onnx.NewValueInfo(onnx.Value(name), t)
}

// model makes a model of one float32[2] input x.
func model(g *onnx.Graph) *onnx.Model {
	g.Name = "test"
	if g.Input == nil {
		g.Input = []*onnx.ValueInfo{info("x", vec2)}
	}
	return &onnx.Model{IrVersion: onnx.DefaultIR, Graph: g, OpsetImport: []*onnx.OperatorSet{{Version: 18}, {Domain: "com.microsoft", Version: 1}, {Domain: "local", Version: 1}}}
}

func outputs(names ...string) []*onnx.ValueInfo {
	var out []*onnx.ValueInfo
	for _, n := range names {
		out = append(out, info(n, onnx.TensorType{DType: tensor.Float32}))
	}
	return out
}

func node(op string, in, out string, attrs ...*onnx.Attribute) *onnx.Node {
	split := func(s string) []string {
		if s == "" {
			return nil
		}
		return strings.Split(s, " ")
	}
	n := &onnx.Node{OpType: op, Input: split(in), Output: split(out), Attribute: attrs}
	for i, s := range n.Input {
		n.Input[i] = strings.TrimPrefix(s, "_")
	}
	for i, s := range n.Output {
		n.Output[i] = strings.TrimPrefix(s, "_")
	}
	return n
}

func floats(v ...float32) *onnx.TensorProto { return onnx.ProtoOf("", tensor.Of(v, len(v))) }

func weight(name string, t *tensor.Tensor) *onnx.TensorProto { return onnx.ProtoOf(name, t) }

// TestDecoderLosesNothing runs the forms of models that onnx-go drops, merges or refuses.
func TestDecoderLosesNothing(t *testing.T) {
	scalarType := func(d tensor.DType) onnx.TensorType { return onnx.TypeOf(d) }
	branch := func(op, in string) *onnx.Graph {
		return &onnx.Graph{Name: op, Node: []*onnx.Node{node(op, in, "out_"+op)}, Output: outputs("out_" + op)}
	}
	f16 := tensor.New(tensor.Float16, 2)
	copy(tensor.Data[uint16](f16), []uint16{0x3c00, 0xc000})
	cases := []struct {
		name string
		m    *onnx.Model
		want [][]float32 // for x = [1, -2]
	}{
		{"one value twice", model(&onnx.Graph{Node: []*onnx.Node{node("Mul", "x x", "y")}, Output: outputs("y")}), [][]float32{{1, 4}}},
		{"one value three times", model(&onnx.Graph{Node: []*onnx.Node{node("Concat", "x x x", "y", onnx.AttrInt("axis", 0))}, Output: outputs("y")}),
			[][]float32{{1, -2, 1, -2, 1, -2}}},
		{"absent input in the middle", model(&onnx.Graph{Initializer: []*onnx.TensorProto{weight("hi", tensor.Scalar(float32(0)))},
			Node: []*onnx.Node{node("Clip", "x _ hi", "y")}, Output: outputs("y")}), [][]float32{{0, -2}}},
		{"absent inputs at the end", model(&onnx.Graph{Node: []*onnx.Node{node("Clip", "x _ _", "y")}, Output: outputs("y")}), [][]float32{{1, -2}}},
		{"absent outputs", model(&onnx.Graph{Initializer: []*onnx.TensorProto{weight("n", tensor.Of([]int64{1, 0, 1}, 3))},
			Node: []*onnx.Node{node("Split", "x n", "_ _ y")}, Output: outputs("y")}), [][]float32{{-2}}},
		{"no inputs", model(&onnx.Graph{Input: []*onnx.ValueInfo{}, Node: []*onnx.Node{node("Constant", "", "y", &onnx.Attribute{Name: "value",
			Type: onnx.AttributeProto_TENSOR, T: floats(3, 4)})}, Output: outputs("y")}), [][]float32{{3, 4}}},
		{"no nodes", model(&onnx.Graph{Output: outputs("x")}), [][]float32{{1, -2}}},
		{"an output twice", model(&onnx.Graph{Node: []*onnx.Node{node("Neg", "x", "y")}, Output: outputs("y", "x", "y")}), [][]float32{{-1, 2}, {1, -2}, {-1, 2}}},
		{"a weight as output", model(&onnx.Graph{Initializer: []*onnx.TensorProto{weight("w", tensor.Of([]float32{7, 8}, 2))}, Output: outputs("w", "x")}),
			[][]float32{{7, 8}, {1, -2}}},
		{"weights of types the decoder refuses", model(&onnx.Graph{Initializer: []*onnx.TensorProto{weight("b", tensor.Of([]bool{true, false}, 2)), weight("h", f16),
			weight("u", tensor.Of([]uint8{5, 6}, 2)), weight("s", tensor.Of([]int16{-5, 6}, 2))},
			Node: []*onnx.Node{node("Cast", "h", "hf", onnx.AttrInt("to", 1)), node("Where", "b x hf", "y"), node("Cast", "u", "uf", onnx.AttrInt("to", 1)),
				node("Cast", "s", "sf", onnx.AttrInt("to", 1)), node("Add", "uf sf", "z")}, Output: outputs("y", "z")}), [][]float32{{1, -2}, {0, 12}}},
		{"a value named as the decoder would name one", model(&onnx.Graph{Node: []*onnx.Node{node("Neg", "x", "c/input"),
			{Name: "c", OpType: "Constant", Output: []string{"k"}, Attribute: []*onnx.Attribute{onnx.AttrFloat("value_float", 2)}}, node("Mul", "k c/input", "y")},
			Output: outputs("y")}), [][]float32{{-2, 4}}},
		{"another domain", model(&onnx.Graph{Node: []*onnx.Node{{OpType: "Gelu", Domain: "com.microsoft", Input: []string{"x"}, Output: []string{"g"}},
			node("Mul", "g g", "gg"), node("Sub", "gg gg", "y")}, Output: outputs("y")}), [][]float32{{0, 0}}},
		{"branches taking values from outside", model(&onnx.Graph{Initializer: []*onnx.TensorProto{weight("zero", tensor.Scalar(float32(0)))},
			Node: []*onnx.Node{node("ReduceSum", "x", "sum", onnx.AttrInt("keepdims", 0)), node("Less", "sum zero", "neg"), node("Abs", "x", "a"),
				node("If", "neg", "y", onnx.AttrGraph("then_branch", branch("Neg", "a")), onnx.AttrGraph("else_branch", branch("Exp", "a")))},
			Output: outputs("y")}), [][]float32{{-1, -2}}},
		{"a branch without nodes inside a branch", model(&onnx.Graph{Initializer: []*onnx.TensorProto{weight("yes", tensor.Scalar(true))},
			Node: []*onnx.Node{node("Neg", "x", "n"), node("If", "yes", "y", onnx.AttrGraph("else_branch", branch("Exp", "n")),
				onnx.AttrGraph("then_branch", &onnx.Graph{Name: "outer", Node: []*onnx.Node{node("If", "yes", "inner",
					onnx.AttrGraph("then_branch", &onnx.Graph{Name: "empty", Output: outputs("n")}), onnx.AttrGraph("else_branch", branch("Abs", "x")))},
					Output: outputs("inner")}))}, Output: outputs("y")}), [][]float32{{-1, 2}}},
		{"a loop whose state rotates", model(&onnx.Graph{Initializer: []*onnx.TensorProto{weight("n", tensor.Scalar(int64(3))), weight("on", tensor.Scalar(true))},
			Node: []*onnx.Node{node("Neg", "x", "nx"), node("Loop", "n on x nx", "p q all", onnx.AttrGraph("body", &onnx.Graph{Name: "body",
				Input: []*onnx.ValueInfo{info("i", scalarType(tensor.Int64)), info("c", scalarType(tensor.Bool)), info("a", vec2), info("b", vec2)},
				// The new a is the old b, the new b their sum: memory of one turn must survive the
				// next.
				Node:   []*onnx.Node{node("Identity", "c", "co"), node("Add", "a b", "sum"), node("Mul", "sum x", "scan"), node("Identity", "b", "an")},
				Output: []*onnx.ValueInfo{info("co", scalarType(tensor.Bool)), info("an", vec2), info("sum", vec2), info("scan", vec2)}}))},
			Output: outputs("p", "q", "all")}), [][]float32{{-1, 2}, {-1, 2}, {0, 0, -1, -4, -1, -4}}},
		{"a function with an attribute", func() *onnx.Model {
			m := model(&onnx.Graph{Node: []*onnx.Node{{OpType: "Leaky", Domain: "local", Input: []string{"x"}, Output: []string{"y"},
				Attribute: []*onnx.Attribute{onnx.AttrFloat("slope", 0.5)}}}, Output: outputs("y")})
			m.Functions = []*onnx.Function{{Name: "Leaky", Domain: "local", Input: []string{"a"}, Output: []string{"b"}, Attribute: []string{"slope"},
				OpsetImport: []*onnx.OperatorSet{{Version: 18}},
				Node: []*onnx.Node{{OpType: "LeakyRelu", Input: []string{"a"}, Output: []string{"b"},
					Attribute: []*onnx.Attribute{{Name: "alpha", RefAttrName: "slope", Type: onnx.AttributeProto_FLOAT}}}}}}
			return m
		}(), [][]float32{{1, -1}}},
		{"an operator by the standard's definition", model(&onnx.Graph{Node: []*onnx.Node{node("MeanVarianceNormalization", "x", "y", onnx.AttrInts("axes", 0))},
			Output: outputs("y")}), [][]float32{{1, -1}}},
		{"an old opset", func() *onnx.Model {
			m := model(&onnx.Graph{Node: []*onnx.Node{node("Unsqueeze", "x", "u", onnx.AttrInts("axes", 0)), node("Clip", "u", "y", onnx.AttrFloat("max", 0))}, Output: outputs("y")})
			m.OpsetImport = []*onnx.OperatorSet{{Domain: "ai.onnx", Version: 9}}
			return m
		}(), [][]float32{{0, -2}}},
		{"an input with a default", model(&onnx.Graph{Input: []*onnx.ValueInfo{info("x", vec2), info("w", vec2)},
			Initializer: []*onnx.TensorProto{weight("w", tensor.Of([]float32{10, 20}, 2))}, Node: []*onnx.Node{node("Add", "x w", "y")}, Output: outputs("y")}),
			[][]float32{{11, 18}}},
	}
	for _, c := range cases {
		var in []*tensor.Tensor
		for range c.m.Graph.Inputs() {
			in = append(in, tensor.Of([]float32{1, -2}, 2))
		}
		s, err := portable.New().Compile(c.m, engine.Options{})
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		for range 2 {
			out := make([]*tensor.Tensor, len(s.Outputs()))
			if err := s.Run(t.Context(), out, in); err != nil {
				t.Errorf("%s: %v", c.name, err)
				continue
			}
			for i, w := range c.want {
				for k, v := range out[i].Float32s() {
					if len(w) != out[i].Len() || v-w[k] > 1e-4 || w[k]-v > 1e-4 {
						t.Errorf("%s: output %d is %v, expected %v", c.name, i, out[i].Float32s(), w)
						break
					}
				}
			}
		}
		s.Close()
	}
	if len(cases) != 19 {
		t.Errorf("%d cases, expected 19", len(cases))
	}
}

// TestRefusedModels compiles models that are wrong. The message must say where.
func TestRefusedModels(t *testing.T) {
	y := outputs("y")
	cases := []struct {
		name, says string
		m          *onnx.Model
	}{
		{"undefined value", `"ghost"`, model(&onnx.Graph{Node: []*onnx.Node{node("Neg", "ghost", "y")}, Output: y})},
		{"use before definition", `"later"`, model(&onnx.Graph{Node: []*onnx.Node{node("Neg", "later", "y"), node("Neg", "x", "later")}, Output: y})},
		{"cycle", `"b"`, model(&onnx.Graph{Node: []*onnx.Node{node("Neg", "b", "a"), node("Neg", "a", "b"), node("Neg", "b", "y")}, Output: y})},
		{"value defined twice", "defined twice", model(&onnx.Graph{Node: []*onnx.Node{node("Neg", "x", "y"), node("Abs", "x", "y")}, Output: y})},
		{"input redefined", "defined twice", model(&onnx.Graph{Node: []*onnx.Node{node("Neg", "x", "x"), node("Abs", "x", "y")}, Output: y})},
		{"too few inputs", "1 inputs, expected 2", model(&onnx.Graph{Node: []*onnx.Node{node("Add", "x", "y")}, Output: y})},
		{"too many inputs", "3 inputs, expected 2", model(&onnx.Graph{Node: []*onnx.Node{node("Add", "x x x", "y")}, Output: y})},
		{"required input absent", "input 1 is required", model(&onnx.Graph{Node: []*onnx.Node{node("Gemm", "x _ x", "y")}, Output: y})},
		{"attribute given twice", `"alpha" is given twice`, model(&onnx.Graph{Node: []*onnx.Node{node("Elu", "x", "y", onnx.AttrFloat("alpha", 1), onnx.AttrFloat("alpha", 2))}, Output: y})},
		{"reserved attribute", "reserved", model(&onnx.Graph{Node: []*onnx.Node{node("Neg", "x", "y", onnx.AttrInt("onnxrl.opset", 3))}, Output: y})},
		{"no outputs", "no outputs", model(&onnx.Graph{Node: []*onnx.Node{node("Neg", "x", "y")}})},
		{"node without outputs", "no outputs", model(&onnx.Graph{Node: []*onnx.Node{node("Neg", "x", "_")}, Output: outputs("x")})},
		{"missing output", `"y"`, model(&onnx.Graph{Node: []*onnx.Node{node("Neg", "x", "z")}, Output: y})},
		{"bad initializer", `"w"`, model(&onnx.Graph{Initializer: []*onnx.TensorProto{{Name: "w", DataType: 1, Dims: []int64{3}, RawData: []byte{1}}},
			Node: []*onnx.Node{node("Add", "x w", "y")}, Output: y})},
		{"domain not imported", "imports no opset", model(&onnx.Graph{Node: []*onnx.Node{{OpType: "Neg", Domain: "elsewhere", Input: []string{"x"}, Output: []string{"y"}}}, Output: y})},
		{"opset before the operator", "opset 18", model(&onnx.Graph{Node: []*onnx.Node{node("Gelu", "x", "y")}, Output: y})},
		{"bad attribute", "kernel_shape", model(&onnx.Graph{Node: []*onnx.Node{node("MaxPool", "x", "y", onnx.AttrInts("kernel_shape", 0))}, Output: y})},
		{"missing body", "then_branch", model(&onnx.Graph{Initializer: []*onnx.TensorProto{weight("c", tensor.Scalar(true))},
			Node: []*onnx.Node{node("If", "c", "y", onnx.AttrGraph("else_branch", &onnx.Graph{Output: outputs("x")}))}, Output: y})},
		{"body with an unknown operator", "Nonsense", model(&onnx.Graph{Initializer: []*onnx.TensorProto{weight("c", tensor.Scalar(true))},
			Node: []*onnx.Node{node("If", "c", "y", onnx.AttrGraph("then_branch", &onnx.Graph{Output: outputs("x")}),
				onnx.AttrGraph("else_branch", &onnx.Graph{Node: []*onnx.Node{node("Nonsense", "x", "q")}, Output: outputs("q")}))}, Output: y})},
	}
	for _, c := range cases {
		s, err := portable.New().Compile(c.m, engine.Options{})
		if err == nil {
			s.Close()
			t.Errorf("%s: it compiled", c.name)
		} else if !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %q does not say %q", c.name, err, c.says)
		}
	}
	if len(cases) != 19 {
		t.Errorf("%d cases, expected 19", len(cases))
	}
}

// TestOperatorTable keeps the table readable: one line never hides another.
func TestOperatorTable(t *testing.T) {
	type key struct{ domain, name string }
	lines := map[key][]portable.Operator{}
	for _, o := range portable.Operators() {
		k := key{o.Domain, o.Name}
		for _, p := range lines[k] {
			if slices.ContainsFunc(p.Versions, func(v int) bool { return slices.Contains(o.Versions, v) }) {
				t.Errorf("%s: lines for versions %v and %v overlap", o.Name, p.Versions, o.Versions)
			}
		}
		known := schema.Versions(o.Domain, o.Name)
		if len(o.Versions) == 0 || slices.ContainsFunc(o.Versions, func(v int) bool { return schema.Version(o.Domain, o.Name, v) != v || len(known) == 0 && v != 1 }) {
			t.Errorf("%s: versions %v, the standard has %v", o.Name, o.Versions, known)
		}
		lines[k] = append(lines[k], o)
	}
	if len(lines) < 190 {
		t.Errorf("%d operators, expected at least 190", len(lines))
	}
}
