package onnx

import (
	"errors"
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/runtime/sorted"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

func TestBuilderNamesAndConstants(t *testing.T) {
	b := NewBuilder("g", 18)
	x := b.Input("x", TypeOf(tensor.Float32, 2))
	two := b.Float(2)
	if again := b.Const(tensor.Scalar(float32(2))); again != two {
		t.Errorf("equal constants are %q and %q", two, again)
	}
	// Equal bytes of another type or shape are another constant.
	for _, c := range []*tensor.Tensor{tensor.Of([]float32{2}, 1), tensor.Of([]int32{0x40000000}), tensor.Of([]float32{2}, 1, 1)} {
		if v := b.Const(c); v == two {
			t.Errorf("%v shares the constant %q", c, v)
		}
	}
	big := tensor.New(tensor.Float32, 1000)
	first := b.Const(big)
	big2 := big.Clone()
	if b.Const(big2) != first {
		t.Error("equal large constants are two")
	}
	big2.Float32s()[999] = 1
	if b.Const(big2) == first {
		t.Error("different large constants are one")
	}
	if b.Const(tensor.OfStrings([]string{"a", "b"}, 2)) == b.Const(tensor.OfStrings([]string{"ab", ""}, 2)) {
		t.Error("different string constants are one")
	}
	if a, c := b.Ints(1, -1), b.Ints(1, -1); a != c || a != "const/i64[1,-1]" || b.Int(3) != "const/i64(3)" {
		t.Errorf("integer constants are called %q, %q", a, c)
	}
	old := b.SetScope("layer/")
	h := b.Op("Mul", []Value{x, two})
	h2 := b.Op("Mul", []Value{h, two})
	if old != "" || h != "layer/Mul" || h2 != "layer/Mul_1" || b.SetScope("") != "layer/" {
		t.Errorf("values are called %q and %q", h, h2)
	}
	out := b.OpN("Split", "", 2, []Value{h2, "", ""}, AttrInt("num_outputs", 2))
	y := b.Rename(out[0], "y")
	b.Output(y, TypeOf(tensor.Float32, 1))
	m, err := b.Model()
	if err != nil {
		t.Fatal(err)
	}
	if got := brief(m.Graph); got != "Mul(x,const/2)->layer/Mul; Mul(layer/Mul,const/2)->layer/Mul_1; Split(layer/Mul_1)->Split,Split_1; Identity(Split)->y" {
		t.Errorf("built %s", got)
	}
	if err := Check(m); err != nil {
		t.Error(err)
	}
}

func TestExtendAvoidsTakenNames(t *testing.T) {
	m := nested()
	b := Extend(m)
	for _, taken := range []string{"x", "h", "t", "e", "w", "s"} {
		if v := b.Fresh(taken); string(v) == taken {
			t.Errorf("%q was handed out although the model uses it", taken)
		}
	}
	if b.Fresh("new") != "new" || b.Fresh("new") != "new_1" || b.Fresh("") == "" {
		t.Error("fresh names are wrong")
	}
	b.OpN("Gelu", DomainMS, 1, []Value{"x"})
	if m.Opset(DomainMS) != 1 || b.Graph() != m.Graph {
		t.Error("the domain of a new operator is not imported")
	}
}

func TestBuilderErrorsAreSticky(t *testing.T) {
	for name, f := range sorted.All(map[string]func(b *Builder){
		"input":       func(b *Builder) { b.Input("x", TypeOf(tensor.Float32)) },
		"initializer": func(b *Builder) { b.Initializer("x", tensor.Scalar(float32(1))) },
		"rename":      func(b *Builder) { b.Rename("x", "x") },
	}) {
		b := NewBuilder("g", 18)
		b.Input("x", TypeOf(tensor.Float32))
		f(b)
		if _, err := b.Model(); err == nil || !strings.Contains(err.Error(), `"x" is declared twice`) {
			t.Errorf("%s: %v", name, err)
		}
	}
	b := NewBuilder("g", 18)
	first := errors.New("first")
	calls := 0
	b.OnNode(func(n *Node) error {
		calls++
		return first
	})
	b.Op("Neg", []Value{"x"})
	b.Fail(errors.New("second"))
	b.Op("Neg", []Value{"x"})
	b.Append(node("Neg", "x", "y"))
	if !errors.Is(b.Err(), first) || calls != 1 || len(b.Graph().Node) != 1 {
		t.Errorf("error %v after %d calls, %d nodes", b.Err(), calls, len(b.Graph().Node))
	}
}

func TestAttributes(t *testing.T) {
	n := node("X", "", "y", AttrInt("i", 3), AttrFloat("f", 0.5), AttrStr("s", "v"), AttrInts("is", 1, 2), AttrFloats("fs", 1), AttrStrs("ss", "a"), AttrGraph("g", &Graph{Name: "sub"}))
	if n.Int("i", 0) != 3 || n.Int("no", 7) != 7 || n.Float("f", 0) != 0.5 || n.Float("no", 2) != 2 || n.Str("s", "") != "v" || n.Str("no", "d") != "d" {
		t.Error("scalar attributes are wrong")
	}
	if len(n.Ints("is")) != 2 || n.Ints("no") != nil || n.Floats("fs")[0] != 1 || n.Floats("no") != nil || n.Strs("ss")[0] != "a" || n.Strs("no") != nil || n.Body("g").Name != "sub" || n.Body("no") != nil {
		t.Error("list attributes are wrong")
	}
	c := n.ShallowClone()
	c.SetAttr(AttrInt("i", 4))
	c.SetAttr(AttrInt("new", 1))
	c.DelAttr("f")
	c.Body("g").Name = "changed"
	if n.Int("i", 0) != 3 || n.Has("new") || !n.Has("f") || n.Body("g").Name != "sub" || c.Int("i", 0) != 4 || !c.Has("new") || c.Has("f") {
		t.Error("a shallow clone shares its attribute list")
	}
}

func TestTensorProtoForms(t *testing.T) {
	cases := []struct {
		p    *TensorProto
		want string // elements, or the error
	}{
		{&TensorProto{DataType: 1, Dims: []int64{2}, FloatData: []float32{1, 2}}, "[1, 2]"},
		{&TensorProto{DataType: 11, Dims: []int64{1}, DoubleData: []float64{1.5}}, "[1.5]"},
		{&TensorProto{DataType: 7, Int64Data: []int64{-1}, Dims: []int64{1}}, "[-1]"},
		{&TensorProto{DataType: 6, Dims: []int64{2}, Int32Data: []int32{-1, 5}}, "[-1, 5]"},
		{&TensorProto{DataType: 3, Dims: []int64{2}, Int32Data: []int32{-1, 5}}, "[-1, 5]"},
		{&TensorProto{DataType: 2, Dims: []int64{1}, Int32Data: []int32{200}}, "[200]"},
		{&TensorProto{DataType: 5, Dims: []int64{1}, Int32Data: []int32{-300}}, "[-300]"},
		{&TensorProto{DataType: 9, Dims: []int64{3}, Int32Data: []int32{0, 1, 2}}, "[false, true, true]"},
		{&TensorProto{DataType: 10, Dims: []int64{1}, Int32Data: []int32{0x3c00}}, "[1]"},
		{&TensorProto{DataType: 12, Dims: []int64{1}, Uint64Data: []uint64{1<<32 - 1}}, "[4294967295]"},
		{&TensorProto{DataType: 13, Dims: []int64{1}, Uint64Data: []uint64{1<<64 - 1}}, "[18446744073709551615]"},
		{&TensorProto{DataType: 8, Dims: []int64{1}, StringData: [][]byte{[]byte("s")}}, `["s"]`},
		{&TensorProto{DataType: 1, Dims: []int64{0}}, "[]"},
		{&TensorProto{DataType: 1, FloatData: []float32{3}}, "3"},
		// One byte off, so the data must be copied to an aligned place.
		{&TensorProto{DataType: 7, Dims: []int64{1}, RawData: []byte{0, 5, 0, 0, 0, 0, 0, 0, 0}[1:]}, "[5]"},
		{&TensorProto{DataType: 1, Dims: []int64{2}, FloatData: []float32{1}}, "needs 2 numbers, the data field holds 1"},
		{&TensorProto{DataType: 14, Dims: []int64{1}, FloatData: []float32{1}}, "needs 2 numbers"},
		{&TensorProto{DataType: 22, Dims: []int64{3}, Int32Data: []int32{1}}, "needs 2 packed bytes"},
		{&TensorProto{DataType: 8, Dims: []int64{2}}, "needs 2 strings"},
		{&TensorProto{DataType: 0, Dims: []int64{2}}, "element type 0 is not known"},
		{&TensorProto{DataType: 1, Dims: []int64{1}, Segment: &TensorProto_Segment{}}, "segmented"},
		{&TensorProto{DataType: 1, Dims: []int64{1 << 40, 1 << 40}}, "too many"},
	}
	for i, c := range cases {
		x, err := TensorOf(c.p)
		if err != nil {
			if !strings.Contains(err.Error(), c.want) {
				t.Errorf("case %d: error %v, want one about %q", i, err, c.want)
			}
			continue
		}
		if got, _ := elementsText(x); got != c.want {
			t.Errorf("case %d: %s, want %s", i, got, c.want)
		}
	}
	if len(cases) != 22 {
		t.Errorf("%d cases", len(cases))
	}
}
