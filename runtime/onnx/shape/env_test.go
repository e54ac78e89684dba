package shape

import (
	"errors"
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/sorted"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// exporterChain is how exporters flatten and split heads: extents are taken from shapes, combined
// and used again.
func exporterChain(tb testing.TB) *onnx.Model {
	i64 := func(name string, shape []int, v ...int64) *onnx.TensorProto {
		return onnx.ProtoOf(name, tensor.Of(v, shape...))
	}
	return model(17, &onnx.Graph{
		Input: infos(tb, "x float32[batch,seq,64]"),
		Initializer: []*onnx.TensorProto{i64("zero", nil, 0), i64("one", nil, 1), i64("heads", []int{1}, 8), i64("minus", []int{1}, -1), i64("axis", []int{1}, 0),
			i64("four", []int{1}, 4), i64("mask", []int{3}, -1, -1, 64)},
		Node: []*onnx.Node{
			node("Shape(x) -> shape"),
			node("Gather(shape, zero) -> b0"), node("Unsqueeze(b0, axis) -> b"),
			node("Gather(shape, one) -> s0"), node("Unsqueeze(s0, axis) -> s"),
			node("Concat(b, s, heads, minus) -> split", onnx.AttrInt("axis", 0)),
			node("Reshape(x, split) -> y"),
			node("Transpose(y) -> t", onnx.AttrInts("perm", 0, 2, 1, 3)),
			node("Mul(b, s) -> bs"), node("Concat(bs, minus) -> flat", onnx.AttrInt("axis", 0)),
			node("Reshape(x, flat) -> z"),
			node("Mul(b, four) -> b4"), node("Concat(b4, minus) -> quarter", onnx.AttrInt("axis", 0)),
			node("Reshape(x, quarter) -> q"),
			// torch's expand: extents of -1 keep what the tensor has.
			node("Equal(mask, minus) -> is"), node("Where(is, shape, mask) -> target"), node("Expand(x, target) -> e"),
			node("Range(zero, s0, one) -> positions"),
		},
		Output: infos(tb, "t", "z float32[batch*seq,64]"),
	})
}

func TestExporterChainsResolveSymbols(t *testing.T) {
	m := exporterChain(t)
	e, err := Infer(m, nil)
	if err != nil {
		t.Fatal(err)
	}
	wantTypes(t, e, "shape int64[3]=batch,seq,64", "split int64[4]=batch,seq,8,-1", "y float32[batch,seq,8,8]", "t float32[batch,8,seq,8]", "bs int64[1]=batch*seq",
		"z float32[batch*seq,64]", "q float32[batch*4,seq*16]", "is bool[3]=1,1,0", "target int64[3]=batch,seq,64", "e float32[batch,seq,64]", "positions int64[seq]")
	f, _ := e.Fact("split")
	if len(f.Ints) != 4 || f.Ints[0] != onnx.Symbol("batch") || f.Ints[2] != onnx.Known(8) || f.Ints[3] != onnx.Symbol("") {
		t.Errorf("split has Ints %v", f.Ints)
	}
	e, err = Infer(m, map[string]int{"batch": 3, "seq": 5})
	if err != nil {
		t.Fatal(err)
	}
	wantTypes(t, e, "t float32[3,8,5,8]", "z float32[15,64]", "q float32[12,80]", "split int64[4]=3,5,8,-1")
	for _, n := range m.Graph.Node {
		if _, ok := e.Type(n.Out(0)).Static(); !ok {
			t.Errorf("%s is %v after binding", n.Describe(), e.Type(n.Out(0)))
		}
	}
}

func TestDeclaredTypesAreMerged(t *testing.T) {
	g := &onnx.Graph{
		Input:     infos(t, "x float32[n,4]", "i int64[2]"),
		Node:      []*onnx.Node{node("Reshape(x, i) -> y"), node("Relu(y) -> z"), node("Relu(x) -> w")},
		ValueInfo: infos(t, "y float32[rows,8]"),
		Output:    infos(t, "z float32[?,8]", "w float32[other,4]"),
	}
	e, err := Infer(model(13, g), nil)
	if err != nil {
		t.Fatal(err)
	}
	// An inferred extent wins over another name for it; one that is not inferred is taken
	// from the declaration.
	wantTypes(t, e, "y float32[rows,8]", "z float32[rows,8]", "w float32[n,4]")
	for _, bad := range []string{"w float32[n,5]", "w float64[n,4]", "w float32[n,4,1]"} {
		g.Output = infos(t, bad)
		_, err := Infer(model(13, g), nil)
		var at *Error
		if !errors.As(err, &at) || at.Node != `node Relu -> "w"` || !strings.Contains(err.Error(), "it is declared "+bad[2:]+", but inferred float32[n,4]") {
			t.Errorf("declared %s: %v", bad, err)
		}
	}
	g.Output = infos(t, "x float32[n,5]")
	if _, err := Infer(model(13, g), nil); err == nil || !strings.Contains(err.Error(), `graph output "x"`) {
		t.Errorf("an input that is a wrongly declared output: %v", err)
	}
	g.Output = infos(t, "nothing")
	if _, err := Infer(model(13, g), nil); err == nil || !strings.Contains(err.Error(), "is not computed by any node") {
		t.Errorf("an output that nothing computes: %v", err)
	}
}

func TestInitializersAndInputs(t *testing.T) {
	shape := onnx.ProtoOf("s", tensor.Of([]int64{2, -1}, 2))
	g := &onnx.Graph{Input: infos(t, "x float32[4,3]", "s int64[2]"), Initializer: []*onnx.TensorProto{shape}, Node: []*onnx.Node{node("Reshape(x, s) -> y")}}
	m := model(13, g)
	// Since IR 4 an initializer that is also an input may be overridden, so its content says
	// nothing.
	e, err := Infer(m, nil)
	if err != nil {
		t.Fatal(err)
	}
	wantTypes(t, e, "y float32[?,?]")
	m.IrVersion = 3
	if e, err = Infer(m, nil); err != nil {
		t.Fatal(err)
	}
	wantTypes(t, e, "y float32[2,6]")
	g.Input = infos(t, "x float32[4,3]", "s int64[3]")
	if _, err := Infer(m, nil); err == nil || !strings.Contains(err.Error(), `initializer "s"`) {
		t.Errorf("an input declared unlike its initializer: %v", err)
	}
	shape.Dims = []int64{-2}
	if _, err := Infer(m, nil); err == nil || !strings.Contains(err.Error(), "negative") {
		t.Errorf("a negative extent: %v", err)
	}
	if _, err := NewEnv(&onnx.Model{}, nil); err == nil {
		t.Error("a model without a graph gave no error")
	}
	if _, err := Infer(&onnx.Model{IrVersion: 8, Graph: &onnx.Graph{Input: infos(t, "x float32[2]"), Node: []*onnx.Node{node("Relu(x) -> y")}}}, nil); err == nil ||
		!strings.Contains(err.Error(), "imports no version") {
		t.Errorf("a model without opset: %v", err)
	}
}

func TestLargeConstantsAreNotRead(t *testing.T) {
	// The declared extents are far larger than the bytes behind them: whoever read the content
	// would fail.
	big := &onnx.TensorProto{Name: "w", DataType: 1, Dims: []int64{1 << 20, 1 << 10}, RawData: []byte{1}}
	g := &onnx.Graph{Input: infos(t, "x float32[b,1048576]"), Initializer: []*onnx.TensorProto{big}, Node: []*onnx.Node{node("MatMul(x, w) -> y")}}
	e, err := Infer(model(13, g), nil)
	if err != nil {
		t.Fatal(err)
	}
	wantTypes(t, e, "y float32[b,1024]")
	if f, _ := e.Fact("w"); f.Const != nil {
		t.Error("the content of a large constant is known")
	}
}

func TestEnvFollowsABuilder(t *testing.T) {
	for name, follow := range sorted.All(map[string]func(*Env, *onnx.Builder){
		"tracked": (*Env).Track,
		// Constants and inputs that the builder adds are found when they are used, too.
		"nodes only": func(e *Env, b *onnx.Builder) { b.OnNode(e.Apply) },
	}) {
		t.Run(name, func(t *testing.T) { followBuilder(t, follow) })
	}
}

func followBuilder(t *testing.T, follow func(*Env, *onnx.Builder)) {
	b := onnx.NewBuilder("grow", 18)
	x := b.Input("x", onnx.TensorType{DType: tensor.Float32, Ranked: true, Dims: []onnx.Dim{onnx.Symbol("batch"), onnx.Known(6)}})
	m, err := b.Model()
	if err != nil {
		t.Fatal(err)
	}
	e, err := NewEnv(m, nil)
	if err != nil {
		t.Fatal(err)
	}
	follow(e, b)
	y := b.Op("Reshape", []onnx.Value{x, b.Ints(-1, 3)})
	z := b.Op("Add", []onnx.Value{y, b.Input("bias", onnx.TypeOf(tensor.Float32, 3))})
	if err := b.Err(); err != nil {
		t.Fatal(err)
	}
	wantTypes(t, e, string(y)+" float32[batch*2,3]", string(z)+" float32[batch*2,3]")
	if f, _ := e.Fact("no such value"); f.Const != nil {
		t.Error("a value that nobody made has content")
	}
	if c := b.Ints(-1, 3); e.Type(c).String() != "int64[2]" {
		t.Errorf("a constant is %v", e.Type(c))
	} else if f, _ := e.Fact(c); f.Const == nil {
		t.Error("the content of a constant got lost")
	}
	b.Op("Concat", []onnx.Value{z, x}, onnx.AttrInt("axis", 0))
	var at *Error
	if err := b.Err(); !errors.As(err, &at) || !strings.Contains(at.Node, "Concat") {
		t.Errorf("the builder's error is %v", err)
	}
}
