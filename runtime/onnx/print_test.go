package onnx

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"flag"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/runtime/sorted"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// golden compares text with a file under testdata, or rewrites it.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if string(want) != got {
		t.Errorf("%s differs (go test -run %s -update rewrites it):\n%s", path, t.Name(), got)
	}
}

// everything is a model with every construct that the printer knows.
func everything() *Model {
	m := nested()
	g := m.Graph
	g.Name = `odd "name"`
	m.ProducerName, m.ProducerVersion, m.Domain, m.ModelVersion, m.DocString = "test", "1.0", "example.org", 3, "about\nthis"
	m.SetMeta("z", "last")
	m.SetMeta("a b", "first")
	m.SetOpset(DomainMS, 1)
	g.Input = append(g.Input, &ValueInfo{Name: "seq in", Type: &TypeProto{Value: &TypeProto_SequenceType{SequenceType: &TypeProto_Sequence{ElemType: g.Input[0].Type}}}},
		&ValueInfo{Name: "opt", Type: &TypeProto{Value: &TypeProto_OptionalType{OptionalType: &TypeProto_Optional{ElemType: g.Input[0].Type}}}},
		&ValueInfo{Name: "map", Type: &TypeProto{Value: &TypeProto_MapType{MapType: &TypeProto_Map{KeyType: 7, ValueType: g.Input[0].Type}}}},
		&ValueInfo{Name: "sparse", Type: &TypeProto{Value: &TypeProto_SparseTensorType{SparseTensorType: &TypeProto_SparseTensor{ElemType: 1}}}},
		&ValueInfo{Name: "untyped"}, NewValueInfo("dyn", TensorType{DType: tensor.Float16, Ranked: true, Dims: []Dim{Symbol("n"), Symbol(""), Known(2)}}))
	big := tensor.New(tensor.Float32, 3, 4)
	g.Initializer = append(g.Initializer, ProtoOf("big", big), ProtoOf("half", tensor.New(tensor.Float16, 2)), ProtoOf("i", tensor.Scalar(int64(-3))), ProtoOf("bools", tensor.Of([]bool{true, false}, 2)),
		ProtoOf("strs", tensor.OfStrings([]string{"a", "b c"}, 2)), ProtoOf("none", tensor.New(tensor.Int32, 0)), ProtoOf("four", tensor.New(tensor.Int4, 3)),
		&TensorProto{Name: "short", DataType: 1, Dims: []int64{5}, RawData: []byte{1}},
		&TensorProto{Name: "out", DataType: 1, Dims: []int64{5}, DataLocation: TensorProto_EXTERNAL, ExternalData: []*MetadataProp{{Key: "location", Value: "w.bin"}, {Key: "offset", Value: "4096"}}})
	g.SparseInitializer = []*SparseTensorProto{{Dims: []int64{9}, Values: ProtoOf("sp", tensor.Of([]float32{1}, 1)), Indices: ProtoOf("", tensor.Of([]int64{4}, 1))}}
	g.ValueInfo = []*ValueInfo{NewValueInfo("h", TypeOf(tensor.Float32, 2))}
	n := node("Fancy", "x,-,w", "f,-,k", AttrInts("z", 1, 2), AttrFloat("a", 0.1), AttrStr("s", `q"`), AttrStrs("ss", "u", "v"), AttrFloats("fs", 1, 2.5), AttrTensor("t", big), AttrInt("i", 7))
	n.Domain, n.Overload, n.DocString = DomainMS, "v2", "note"
	n.Attribute = append(n.Attribute, &Attribute{Name: "typ", Type: AttributeProto_TYPE_PROTO, Tp: g.Input[0].Type})
	g.Node = append(g.Node, n)
	f := function("F", "a,b", "c", node("LeakyRelu", "a", "c", &Attribute{Name: "alpha", Type: AttributeProto_FLOAT, RefAttrName: "s"}))
	f.Attribute, f.AttributeProto = []string{"r"}, []*Attribute{AttrFloat("s", 0.5)}
	m.Functions = []*Function{f}
	m.TrainingInfo = []*TrainingInfoProto{{Algorithm: subgraph("p", "q", node("Neg", "p", "q"))}}
	return m
}

func TestPrintGolden(t *testing.T) {
	golden(t, "everything.txt", Sprint(everything(), PrintOptions{}))
	golden(t, "everything_verbose.txt", Sprint(everything(), PrintOptions{Names: true, Docs: true, MaxElements: -1, Types: func(v Value) (TensorType, bool) {
		return TypeOf(tensor.Float32, len(v)), true
	}}))
	models := torchModels(t)
	for _, name := range []string{"mlp_tanh", "lstm"} {
		golden(t, name+".txt", Sprint(models[name], PrintOptions{}))
	}
	for name, m := range sorted.All(models) {
		text := Sprint(m, PrintOptions{})
		if again := Sprint(m.Clone(), PrintOptions{}); again != text {
			t.Errorf("%s: two prints differ", name)
		}
		b, err := Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		back, err := Unmarshal(b)
		if err != nil || Sprint(back, PrintOptions{}) != text {
			t.Errorf("%s: decoding the encoding prints otherwise (%v)", name, err)
		}
	}
}

type failingWriter struct{}

var errDisk = errors.New("disk full")

func (failingWriter) Write([]byte) (int, error) { return 0, errDisk }

func TestWritersReportErrors(t *testing.T) {
	m := everything()
	for name, err := range sorted.All(map[string]error{"print": Fprint(failingWriter{}, m, PrintOptions{}), "dot": Dot(failingWriter{}, m, nil), "svg": SVG(failingWriter{}, m, nil),
		"diff": Diff(m, nested()).Fprint(failingWriter{})}) {
		if !errors.Is(err, errDisk) {
			t.Errorf("%s: error %v", name, err)
		}
	}
}

func TestDiff(t *testing.T) {
	a := everything()
	if d := Diff(a, a.Clone()); !d.Empty() || d.Count() != 0 {
		t.Errorf("a model differs from its copy: %+v", d)
	}
	b := a.Clone()
	b.IrVersion = 9
	b.SetMeta("z", "changed")
	b.Graph.Input = b.Graph.Input[1:]
	b.Graph.Output[0].Type = NewValueInfo("", TypeOf(tensor.Float64)).Type
	b.Graph.Initializer[0].RawData[0]++
	b.Graph.Initializer = append(b.Graph.Initializer, ProtoOf("new", tensor.Scalar(float32(1))))
	b.Graph.Node[0].SetAttr(AttrInt("extra", 1))
	b.Graph.Node[1].Subgraphs()[1].Node[0].OpType = "Div"
	b.Graph.Node[2].Output[0] = "z2" // renamed
	b.Graph.Node[3] = node("Abs", "unused", "fresh")
	b.Functions[0].Node[0].OpType = "Elu"
	d := Diff(a, b)
	var s strings.Builder
	if err := d.Fprint(&s); err != nil {
		t.Fatal(err)
	}
	golden(t, "diff.txt", s.String())
	kinds := map[ChangeKind]int{}
	for _, sec := range d.sections() {
		for _, c := range sec.changes {
			kinds[c.Kind]++
		}
	}
	if kinds[Added] != 2 || kinds[Removed] != 2 || kinds[Changed] != 8 || d.Count() != 12 {
		t.Errorf("changes are %v", kinds)
	}
	js, err := json.Marshal(d)
	if err != nil {
		t.Fatal(err)
	}
	var back ModelDiff
	if err := json.Unmarshal(js, &back); err != nil || back.Count() != d.Count() {
		t.Errorf("through JSON: %v, %v", back, err)
	}
}

func TestStatsAndFLOPs(t *testing.T) {
	ty := map[Value][]int{"x3": {2, 5, 4}, "w43": {4, 3}, "y3": {2, 5, 3}, "a": {6, 4}, "b": {3, 4}, "c": {3}, "g": {6, 3}, "img": {2, 4, 8, 8}, "k": {6, 2, 3, 3}, "conv": {2, 6, 8, 8},
		"kt": {4, 6, 2, 2}, "ct": {2, 6, 16, 16}, "seq": {7, 2, 4}, "lw": {1, 20, 4}, "lr": {1, 20, 5}, "ly": {7, 1, 2, 5}, "q": {2, 3, 5, 8}, "s": {}}
	types := func(v Value) (TensorType, bool) {
		s, ok := ty[v]
		return TypeOf(tensor.Float32, s...), ok
	}
	cases := []struct {
		n    *Node
		want int64 // -1: not known
	}{
		{node("MatMul", "x3,w43", "y3"), 2 * 2 * 5 * 4 * 3}, {node("Gemm", "a,b,c", "g", AttrInt("transB", 1)), 2*6*3*4 + 18}, {node("Gemm", "b,a", "g", AttrInt("transA", 1)), 2 * 18 * 3},
		{node("Conv", "img,k", "conv", AttrInt("group", 2)), 2 * (2 * 6 * 64) * (2 * 9)}, {node("Conv", "img,k,c", "conv"), 2*768*18 + 768},
		{node("ConvTranspose", "img,kt", "ct"), 2 * (2 * 4 * 64) * (6 * 4)}, {node("LSTM", "seq,lw,lr", "ly"), 14 * (2*80 + 2*100 + 4*20)},
		{node("Einsum", "x3,w43", "y3", AttrStr("equation", "bij, jk -> bik")), 2 * 2 * 5 * 4 * 3}, {node("Einsum", "x3,w43", "y3", AttrStr("equation", "...j,jk->...k")), -1},
		{node("MaxPool", "img", "conv", AttrInts("kernel_shape", 2, 2)), 768 * 4}, {node("Attention", "q,q,q", "q"), 2 * 3 * 5 * 5 * (16 + 5 + 16)},
		{node("Add", "a,a", "a"), 24}, {node("Reshape", "a,s", "a"), 0}, {node("ReduceSum", "img", "s"), 512}, {node("Softmax", "a", "a"), 120}, {node("Add", "a,a", "unknown"), -1},
		{node("If", "s", "a"), -1}, {&Node{OpType: "FusedMatMul", Domain: DomainMS}, -1}, {node("MatMul", "s,s", "s"), -1},
	}
	for _, c := range cases {
		got, ok := FLOPs(c.n, types)
		if ok != (c.want >= 0) || ok && got != c.want {
			t.Errorf("%s costs %d, %v; want %d", c.n.Describe(), got, ok, c.want)
		}
	}
	if len(cases) != 19 {
		t.Errorf("%d cases", len(cases))
	}
	m, err := BindDims(linear(t), map[string]int{"batch": 10})
	if err != nil {
		t.Fatal(err)
	}
	m.Graph.ValueInfo = []*ValueInfo{NewValueInfo("MatMul", TypeOf(tensor.Float32, 10, 3)), NewValueInfo("Add", TypeOf(tensor.Float32, 10, 3))}
	m.Graph.Initializer = append(m.Graph.Initializer, ProtoOf("steps", tensor.Of([]int64{1, 2}, 2)))
	s := NewStats(m, nil)
	// x (160 bytes) and the product are alive together; then the product and the sum, the sum and
	// its renamed copy.
	if s.Nodes != 3 || s.Ops["MatMul"] != 1 || s.Parameters != 15 || s.ParameterBytes != 76 || s.FLOPs != 240+30 || s.PeakActivationBytes != 280 || !strings.Contains(s.PeakAt, "MatMul") {
		t.Errorf("stats are %+v", s)
	}
	if len(s.UnknownFLOPs)+len(s.UnknownBytes) != 0 || s.PerNode[0].ParameterBytes != 48 || s.PerNode[1].Output != "float32[10,3]" {
		t.Errorf("stats are %+v", s)
	}
	if got := s.OpCounts(); !slices.Equal(got, []OpCount{{"Add", 1}, {"Identity", 1}, {"MatMul", 1}}) {
		t.Errorf("operators are %v", got)
	}
	s = NewStats(nested(), nil)
	if s.Nodes != 8 || !slices.Contains(s.UnknownBytes, "h") || len(s.UnknownFLOPs) == 0 {
		t.Errorf("unknown figures: %+v", s)
	}
}

func TestDot(t *testing.T) {
	var b bytes.Buffer
	if err := Dot(&b, nested(), nil); err != nil {
		t.Fatal(err)
	}
	golden(t, "nested.dot", b.String())
	b.Reset()
	if err := Dot(&b, everything(), nil); err != nil || !strings.Contains(b.String(), `digraph "odd \"name\""`) {
		t.Errorf("odd names: %v\n%s", err, b.String())
	}
}

func TestSVG(t *testing.T) {
	models := torchModels(t)
	models["everything"] = everything()
	cyclic := model("x", "", "y", node("Add", "x,c", "a"), node("Neg", "a", "b"), node("Neg", "b", "c"), node("Neg", "b", "y"))
	models["cyclic"] = cyclic
	models["empty"] = model("", "", "")
	boxes := regexp.MustCompile(`<rect[^>]* x="`)
	for name, m := range sorted.All(models) {
		var b bytes.Buffer
		if err := SVG(&b, m, nil); err != nil {
			t.Fatal(err)
		}
		x := xml.NewDecoder(bytes.NewReader(b.Bytes()))
		for {
			if _, err := x.Token(); err == io.EOF {
				break
			} else if err != nil {
				t.Fatalf("%s: the picture is not XML: %v", name, err)
			}
		}
		d := newDrawing(m, nil)
		if got := len(boxes.FindAll(b.Bytes(), -1)); got != len(d.boxes) {
			t.Errorf("%s: %d boxes drawn, want %d", name, got, len(d.boxes))
		}
		if got := strings.Count(b.String(), `class="edge"`); got != len(d.edges) {
			t.Errorf("%s: %d edges drawn, want %d", name, got, len(d.edges))
		}
		var again bytes.Buffer
		if err := SVG(&again, m, nil); err != nil || !bytes.Equal(b.Bytes(), again.Bytes()) {
			t.Errorf("%s: two drawings differ (%v)", name, err)
		}
	}
}

func TestLayoutDoesNotOverlap(t *testing.T) {
	n := 0
	for name, m := range sorted.All(torchModels(t)) {
		d := newDrawing(m, nil)
		l := arrange(d, func(i int) (float64, float64) { return 60 + 5*float64(len(d.boxes[i].lines[0])), 40 })
		for _, layer := range l.layers {
			for k := 1; k < len(layer); k++ {
				a, b := l.spots[layer[k-1]], l.spots[layer[k]]
				if a.x+a.w/2+gapX > b.x-b.w/2+1e-6 {
					t.Fatalf("%s: neighbours on layer %d overlap: %+v, %+v", name, a.layer, a, b)
				}
				n++
			}
		}
		for i, e := range d.edges {
			for k := 1; k < len(l.paths[i]); k++ {
				if l.spots[l.paths[i][k-1]].layer+1 != l.spots[l.paths[i][k]].layer {
					t.Fatalf("%s: edge %+v skips a layer", name, e)
				}
			}
		}
	}
	if n < 100 {
		t.Errorf("only %d neighbours compared", n)
	}
}
