package models

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/sorted"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// joinsOf prints what FindTies joins.
func joinsOf(t *testing.T, m *onnx.Model, o TieOptions) string {
	t.Helper()
	apart, ties, err := FindTies(m, o)
	if err != nil {
		t.Fatal(err)
	}
	one, err := ties.Join(apart)
	if err != nil {
		t.Fatal(err)
	}
	var list []string
	for _, j := range ties.Joins {
		list = append(list, j.String())
		if slices.ContainsFunc(one.Graph.Initializer, func(p *onnx.TensorProto) bool { return p.Name == j.Name }) {
			t.Errorf("%s: it is an initializer still", j)
		}
	}
	return strings.Join(list, " ")
}

// TestTiesOfExports has what PyTorch's exporters, dynamo and TorchScript, make of networks whose
// weights are tied, or only equal. cmd/peers/tied_exports.py has made them.
func TestTiesOfExports(t *testing.T) {
	const fitted = "fit/testdata/torch"
	for _, c := range []struct {
		path, joins string
		// split are initializers that must be cut apart, among others.
		split string
	}{
		{fitted + "/gpt2_tied/model", "val_211=transpose(net.lm_head.weight)", "net.transformer.h.0.ln_1.weight"},
		{fitted + "/gpt2_tied_script/model", "onnx::MatMul_592=transpose(net.transformer.wte.weight)", "net.transformer.h.0.ln_1.weight"},
		{"gpt2_untied", "", "net.transformer.h.0.ln_1.weight"},
		{"gpt2_untied_script", "", "net.transformer.h.0.ln_1.weight"},
		{"bert", "val_74=transpose(net.cls.predictions.decoder.weight)", "net.bert.embeddings.LayerNorm.bias"},
		{"bert_script", "onnx::MatMul_188=transpose(net.bert.embeddings.word_embeddings.weight)", "net.bert.embeddings.LayerNorm.bias"},
		{"t5", "val_242=transpose(net.lm_head.weight)", "net.encoder.block.0.layer.0.layer_norm.weight"},
		{"t5_script", "onnx::MatMul_618=transpose(net.shared.weight)", "net.encoder.block.0.layer.0.layer_norm.weight"},
		{"vit", "", "net.vit.layers.0.layernorm_before.weight"},
		{"vit_script", "", "net.vit.layers.0.layernorm_before.weight"},
		{"rnn", "permute=transpose(embedding.weight)", ""},
		{"rnn_script", "onnx::MatMul_29=transpose(embedding.weight)", ""},
		{"clones", "", "layers.0.0.weight layers.0.2.weight layers.0.0.bias"},
		{"clones_script", "", "layers.0.0.weight onnx::MatMul_25 layers.0.0.bias"},
		{"norms", "", "before.weight before.bias"},
		{"norms_script", "", "before.weight before.bias"},
		{"tied", "t=transpose(e.weight)", ""},
	} {
		path := filepath.Join("testdata/ties", c.path+".onnx")
		if strings.HasPrefix(c.path, fitted) {
			path = c.path + ".onnx"
		}
		m, err := onnx.Load(path)
		if err != nil {
			t.Fatal(err)
		}
		before := onnx.Sprint(m, onnx.PrintOptions{})
		if got := joinsOf(t, m, TieOptions{}); got != c.joins {
			t.Errorf("%s: joined %q, want %q", c.path, got, c.joins)
		}
		if onnx.Sprint(m, onnx.PrintOptions{}) != before {
			t.Errorf("%s: the model has changed", c.path)
		}
		apart, ties, err := FindTies(m, TieOptions{})
		if err != nil {
			t.Fatal(err)
		}
		one, err := ties.Join(apart)
		if err != nil {
			t.Fatal(err)
		}
		if err := onnx.Check(one); err != nil {
			t.Errorf("%s: %v", c.path, err)
		}
		for _, name := range strings.Fields(c.split) {
			if !slices.ContainsFunc(ties.Splits, func(s Split) bool { return s.Name == name }) {
				t.Errorf("%s: %s is not cut apart", c.path, name)
			}
		}
		if name, _, tied := strings.Cut(c.joins, "="); tied {
			if got := joinsOf(t, m, TieOptions{Untie: []string{name}}); got != "" {
				t.Errorf("%s: untied, joined %q", c.path, got)
			}
		}
	}
}

// tieUse is a node "operator input-index module" over an initializer; without a module the file
// does not say which one it is.
type tieUse struct{ initializer, use string }

// tieModel has initializers and nodes that use them; their types do not matter to the rule.
func tieModel(t *testing.T, initializers map[string]*tensor.Tensor, uses ...tieUse) *onnx.Model {
	t.Helper()
	b := onnx.NewBuilder("ties", 18)
	x := b.Input("x", onnx.TypeOf(tensor.Float32, 4))
	var order []string
	for _, u := range uses {
		if !slices.Contains(order, u.initializer) {
			order = append(order, u.initializer)
			b.Initializer(u.initializer, initializers[u.initializer])
		}
	}
	for _, u := range uses {
		f := append(strings.Fields(u.use), "")
		n := &onnx.Node{OpType: f[0], Input: []string{string(x)}, Output: []string{string(b.Fresh("h"))}}
		if f[1] == "0" {
			n.Input = []string{u.initializer, string(x)}
		} else {
			n.Input = append(n.Input, u.initializer)
		}
		if f[2] != "" {
			n.MetadataProps = []*onnx.StringStringEntryProto{{Key: scopesKey, Value: "['', '" + f[2] + "', 'n']"}}
		}
		b.Append(n)
	}
	b.Output(x, onnx.TypeOf(tensor.Float32, 4))
	m, err := b.Model()
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// drawn has distinct numbers that half precision does not round.
func drawn(shape ...int) *tensor.Tensor {
	x := tensor.New(tensor.Float32, shape...)
	for i := range x.Float32s() {
		x.Float32s()[i] = float32(i*421%1021+1) / 1024
	}
	return x
}

// permuted is a transpose, made without the code under test.
func permuted(x *tensor.Tensor, perm ...int) *tensor.Tensor {
	shape, strides := make([]int, len(perm)), stridesOf(x.Shape())
	for i, p := range perm {
		shape[i] = x.Shape()[p]
	}
	out := tensor.New(tensor.Float32, shape...)
	for i := range out.Float32s() {
		at, rest := 0, i
		for k := len(perm) - 1; k >= 0; k-- {
			at += rest % shape[k] * strides[perm[k]]
			rest /= shape[k]
		}
		out.Float32s()[i] = x.Float32s()[at]
	}
	return out
}

func reshaped(x *tensor.Tensor, shape ...int) *tensor.Tensor { return x.Clone().Reshape(shape...) }

func casted(t *testing.T, x *tensor.Tensor, d tensor.DType) *tensor.Tensor {
	t.Helper()
	y, err := tensor.FromFloat32(x, d)
	if err != nil {
		t.Fatal(err)
	}
	return y
}

// columns are those from first on of a matrix.
func columns(x *tensor.Tensor, first, n int) *tensor.Tensor {
	rows, width := x.Shape()[0], x.Shape()[1]
	out := tensor.New(tensor.Float32, rows, n)
	for r := range rows {
		copy(out.Float32s()[r*n:(r+1)*n], x.Float32s()[r*width+first:])
	}
	return out
}

// TestTiesByContent has the forms in which a weight is written twice, and what stays apart.
func TestTiesByContent(t *testing.T) {
	w := drawn(16, 12)
	third := func(x float32) float32 { return x / 3 }
	rounded := drawn(16, 12)
	for i, v := range rounded.Float32s() {
		rounded.Float32s()[i] = third(v)
	}
	few := drawn(16, 12)
	for i := range few.Float32s() {
		few.Float32s()[i] = float32(i%63) + 1
	}
	enough := drawn(16, 12)
	for i := range enough.Float32s() {
		enough.Float32s()[i] = float32(i%64) + 1
	}
	nearly := permuted(w, 1, 0)
	nearly.Float32s()[100] = -0.5
	negative := drawn(16, 12)
	negative.Float32s()[7] = 0
	zero := permuted(negative, 1, 0)
	for i, v := range zero.Float32s() {
		if v == 0 {
			zero.Float32s()[i] *= -1
		}
	}
	stack := drawn(3, 10, 12)
	cube := drawn(4, 6, 5)
	long := drawn(40, 12)
	wide := drawn(16, 40)
	emb, head := tieUse{"emb.weight", "Gather 0 emb"}, tieUse{"head.weight", "MatMul 1 head"}
	two := func(a, b *tensor.Tensor) map[string]*tensor.Tensor {
		return map[string]*tensor.Tensor{"emb.weight": a, "head.weight": b}
	}
	for _, c := range []struct {
		name  string
		held  map[string]*tensor.Tensor
		uses  []tieUse
		joins string
	}{
		{"the same", two(w, w.Clone()), []tieUse{emb, head}, "head.weight=emb.weight"},
		{"a transpose", two(w, permuted(w, 1, 0)), []tieUse{emb, head}, "head.weight=transpose(emb.weight)"},
		{"a transpose of three axes", two(cube, permuted(cube, 2, 0, 1)), []tieUse{emb, head}, "head.weight=transpose(emb.weight)"},
		{"a reshape", two(w, reshaped(w, 8, 24)), []tieUse{emb, head}, "head.weight=reshape(emb.weight)"},
		{"a cast", two(rounded, casted(t, rounded, tensor.Float16)), []tieUse{emb, head}, "head.weight=cast(emb.weight)"},
		{"a cast of a transpose", two(rounded, casted(t, permuted(rounded, 1, 0), tensor.BFloat16)), []tieUse{emb, head}, "head.weight=cast(transpose(emb.weight))"},
		{"a widened weight", two(casted(t, w, tensor.Float16), w), []tieUse{emb, head}, "emb.weight=cast(head.weight)"},
		{"rows", two(long, long.Rows(7, 23).Clone()), []tieUse{emb, head}, "head.weight=slice(emb.weight)"},
		{"the first rows, under a further axis", two(long, reshaped(long.Rows(0, 9).Clone(), 1, 9, 12)), []tieUse{emb, head}, "head.weight=slice(emb.weight)"},
		{"columns", two(wide, columns(wide, 21, 10)), []tieUse{emb, head}, "head.weight=slice(emb.weight)"},
		{"a cast of rows", two(long, casted(t, long.Rows(1, 20).Clone(), tensor.Float16)), []tieUse{emb, head}, "head.weight=cast(slice(emb.weight))"},
		{"members of a stack", map[string]*tensor.Tensor{"all": stack, "val_1": reshaped(stack.Rows(1, 2), 10, 12), "val_2": reshaped(stack.Rows(2, 3), 10, 12)},
			[]tieUse{{"all", "Gather 0 top"}, {"val_1", "MatMul 1 layers.1"}, {"val_2", "MatMul 1 layers.2"}}, "val_1=slice(all) val_2=slice(all)"},
		{"three forms", map[string]*tensor.Tensor{"emb.weight": w, "head.weight": permuted(w, 1, 0), "more.weight": reshaped(w, 12, 16)},
			[]tieUse{emb, head, {"more.weight", "Gemm 1 more"}}, "head.weight=transpose(emb.weight) more.weight=reshape(emb.weight)"},
		{"two networks that were copied", map[string]*tensor.Tensor{"nets.0.emb.weight": w, "nets.1.emb.weight": w.Clone(), "val_8": permuted(w, 1, 0), "val_7": permuted(w, 1, 0)},
			[]tieUse{{"nets.0.emb.weight", "Gather 0 nets.0.emb"}, {"nets.1.emb.weight", "Gather 0 nets.1.emb"}, {"val_8", "MatMul 1 nets.1.head"}, {"val_7", "MatMul 1 nets.0.head"}},
			"val_8=transpose(nets.1.emb.weight) val_7=transpose(nets.0.emb.weight)"},
		{"64 values", two(enough, permuted(enough, 1, 0)), []tieUse{emb, head}, "head.weight=transpose(emb.weight)"},
		{"one module, called again", map[string]*tensor.Tensor{"t": w, "t_1": w.Clone()}, []tieUse{{"t", "MatMul 1 cell"}, {"t_1", "MatMul 1 cell"}}, "t_1=t"},

		{"63 values", two(few, permuted(few, 1, 0)), []tieUse{emb, head}, ""},
		{"16 values under a name that an exporter made up", map[string]*tensor.Tensor{"emb.weight": drawn(4, 4), "t": permuted(drawn(4, 4), 1, 0)}, []tieUse{emb, {"t", "MatMul 1"}}, "t=transpose(emb.weight)"},
		{"one element differs", two(w, nearly), []tieUse{emb, head}, ""},
		{"one zero is negative", two(negative, zero), []tieUse{emb, head}, ""},
		{"biases", two(drawn(192), drawn(192)), []tieUse{{"emb.weight", "Add 1 emb"}, {"head.weight", "Sub 1 head"}}, ""},
		{"biases under a further axis", two(drawn(1, 192), drawn(1, 192)), []tieUse{{"emb.weight", "Add 1 emb"}, {"head.weight", "Sub 1 head"}}, ""},
		{"norms", two(w, w.Clone()), []tieUse{{"emb.weight", "LayerNormalization 1 a"}, {"head.weight", "RMSNormalization 1 b"}}, ""},
		{"scales", two(w, w.Clone()), []tieUse{{"emb.weight", "Mul 1 a"}, {"head.weight", "Mul 1 b"}}, ""},
		{"copies of a layer", map[string]*tensor.Tensor{"layers.0.w": w, "layers.1.w": w.Clone()}, []tieUse{{"layers.0.w", "MatMul 1 layers.0"}, {"layers.1.w", "MatMul 1 layers.1"}}, ""},
		{"copies of a layer whose transposes were folded", map[string]*tensor.Tensor{"onnx::MatMul_40": w, "onnx::MatMul_41": w.Clone()},
			[]tieUse{{"onnx::MatMul_40", "MatMul 1 layers.0.fc"}, {"onnx::MatMul_41", "MatMul 1 layers.1.fc"}}, ""},
		{"copies under numbered names", map[string]*tensor.Tensor{"Dense_0/kernel": w, "Dense_1/kernel": w.Clone()}, []tieUse{{"Dense_0/kernel", "MatMul 1"}, {"Dense_1/kernel", "MatMul 1"}}, ""},
		{"a transpose in modules that the file does not name", map[string]*tensor.Tensor{"u": w, "v": permuted(w, 1, 0)}, []tieUse{{"u", "MatMul 1"}, {"v", "MatMul 1"}}, "v=transpose(u)"},
		{"uses in modules that the file does not name", map[string]*tensor.Tensor{"u": w, "v": w.Clone()}, []tieUse{{"u", "MatMul 1"}, {"v", "MatMul 1"}}, ""},
		{"an unused one", map[string]*tensor.Tensor{"emb.weight": w}, []tieUse{emb}, ""},
	} {
		m := tieModel(t, c.held, c.uses...)
		if got := joinsOf(t, m, TieOptions{}); got != c.joins {
			t.Errorf("%s: joined %q, want %q", c.name, got, c.joins)
		}
		// The filled-in values are those of the file.
		apart, ties, err := FindTies(m, TieOptions{})
		if err != nil {
			t.Fatal(err)
		}
		values := map[string]*tensor.Tensor{}
		for _, p := range apart.Graph.Initializer {
			if !slices.ContainsFunc(ties.Joins, func(j Join) bool { return j.Name == p.Name }) {
				x, err := onnx.TensorOf(p)
				if err == nil {
					values[p.Name], err = tensor.ToFloat32(x)
				}
				if err != nil {
					t.Fatal(err)
				}
			}
		}
		ties.Fill(values)
		for _, j := range ties.Joins {
			if want := c.held[j.Name]; !slices.Equal(casted(t, values[j.Name], want.DType()).Bytes(), want.Bytes()) || !slices.Equal(values[j.Name].Shape(), want.Shape()) {
				t.Errorf("%s: %s is filled with something else", c.name, j)
			}
		}
	}
}

// TestTiesByHand has the pairs and names of people.
func TestTiesByHand(t *testing.T) {
	w := drawn(3, 4)
	m := tieModel(t, map[string]*tensor.Tensor{
		"emb": w, "head": permuted(w, 1, 0), "part": w.Rows(1, 3).Clone(), "half": casted(t, reshaped(w, 6, 2), tensor.Float16), "other": drawn(5, 5),
	}, tieUse{"emb", "Gather 0 a"}, tieUse{"head", "MatMul 1 b"}, tieUse{"part", "MatMul 1 c"}, tieUse{"half", "Gemm 1 d"}, tieUse{"other", "Gemm 1 e"}, tieUse{"other", "Gemm 1 f"})
	if got := joinsOf(t, m, TieOptions{}); got != "" {
		t.Errorf("12 values are joined: %s", got)
	}
	pairs := []string{"head=transpose(emb)", "part=slice(emb)", "half=cast(reshape(emb))"}
	if got := joinsOf(t, m, TieOptions{Tie: append(pairs, "other")}); got != strings.Join(pairs, " ") {
		t.Errorf("joined %q, want %q", got, pairs)
	}
	if got := joinsOf(t, m, TieOptions{Tie: []string{"emb=transpose(head)", "part=slice(emb)"}}); got != "emb=transpose(head) part=slice(emb)" {
		t.Errorf("joined %q", got)
	}
	_, ties, err := FindTies(m, TieOptions{Tie: pairs})
	if err != nil {
		t.Fatal(err)
	}
	o := ties.Roles(m, Options{Train: []string{"hea?", "o*"}, Freeze: []string{"*art", "none"}})
	if got := strings.Join(o.Train, " ") + "; " + strings.Join(o.Freeze, " "); got != "emb o*; emb none" {
		t.Errorf("roles %s", got)
	}
	for _, c := range []struct {
		o    TieOptions
		want string
	}{
		{TieOptions{Tie: []string{"head=emb"}}, `tie "head=emb": "head" (float32[4 3]) is not bit for bit emb, where "emb" is float32[3 4]; it is transpose(emb)`},
		{TieOptions{Tie: []string{"other=transpose(emb)"}}, `is not bit for bit transpose(emb)`},
		{TieOptions{Tie: []string{"head=transpose(nothing)"}}, `the main graph has no floating-point initializer "nothing"`},
		{TieOptions{Tie: []string{"head=sum(emb)"}}, "expected A=B, A=transpose(B), A=reshape(B), A=slice(B) or A=cast(B)"},
		{TieOptions{Tie: []string{"head="}}, "expected the names of two initializers"},
		{TieOptions{Tie: []string{"head=transpose(emb)", "emb=transpose(head)"}}, `"head" is tied to "emb" itself`},
		{TieOptions{Tie: []string{"head=transpose(emb)", "head=transpose(emb)"}}, `"head" is tied to "emb" already`},
		{TieOptions{Tie: []string{"head=transpose(emb)"}, Untie: []string{"e*"}}, "untie names one of the two"},
		{TieOptions{Tie: []string{"emb"}}, `tie "emb": no initializer of that name is used more than once`},
		{TieOptions{Untie: []string{"emb"}}, `untie "emb": no initializer of that name is used more than once or tied to another`},
	} {
		if _, _, err := FindTies(m, c.o); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: error %v, want %s", c.o, err, c.want)
		}
	}
	if err := (TieOptions{Tie: []string{"a*", "head=sum(emb)"}}).Validate(); err == nil || !strings.Contains(err.Error(), "tie[1]") {
		t.Errorf("validation: %v", err)
	}
}

// TestTiesOfConstantNodes: a folded transpose that an exporter wrote as a Constant node becomes an
// initializer; other constants stay what they are.
func TestTiesOfConstantNodes(t *testing.T) {
	w, other := drawn(16, 12), drawn(9, 12)
	for i := range other.Float32s() {
		other.Float32s()[i] *= -1
	}
	m := tieModel(t, map[string]*tensor.Tensor{"emb": w}, tieUse{"emb", "Gather 0 a"})
	var nodes []*onnx.Node
	for name, value := range sorted.All(map[string]*tensor.Tensor{"c0": permuted(w, 1, 0), "c1": other, "c2": other}) {
		nodes = append(nodes, &onnx.Node{OpType: "Constant", Output: []string{name}, Attribute: []*onnx.Attribute{{Name: "value", Type: onnx.AttributeProto_TENSOR, T: onnx.ProtoOf("", value)}}},
			&onnx.Node{OpType: "MatMul", Input: []string{"x", name}, Output: []string{name + "/y"}})
	}
	m.Graph.Node = append(nodes, m.Graph.Node...)
	if got := joinsOf(t, m, TieOptions{}); got != "c0=transpose(emb)" {
		t.Errorf("joined %q", got)
	}
	if got := joinsOf(t, m, TieOptions{Untie: []string{"c0"}}); got != "" {
		t.Errorf("untied, joined %q", got)
	}
	apart, ties, err := FindTies(m, TieOptions{})
	if err != nil {
		t.Fatal(err)
	}
	one, err := ties.Join(apart)
	if err != nil {
		t.Fatal(err)
	}
	if len(apart.Graph.Initializer) != 2 || len(one.Graph.Initializer) != 1 || len(one.Graph.Node) != 7 || len(m.Graph.Node) != 7 {
		t.Errorf("%d initializers apart, %d as one, %d nodes", len(apart.Graph.Initializer), len(one.Graph.Initializer), len(one.Graph.Node))
	}
}

// TestTiesInAFileOfInputs: files of IR 3 list initializers among the inputs.
func TestTiesInAFileOfInputs(t *testing.T) {
	w := drawn(16, 12)
	m := tieModel(t, map[string]*tensor.Tensor{"emb": w, "head": permuted(w, 1, 0)}, tieUse{"emb", "Gather 0 a"}, tieUse{"head", "MatMul 1 b"})
	m.IrVersion = 3
	for _, p := range m.Graph.Initializer {
		m.Graph.Input = append(m.Graph.Input, onnx.NewValueInfo(onnx.Value(p.Name), onnx.TypeOf(tensor.Float32, int(p.Dims[0]), int(p.Dims[1]))))
	}
	if got := joinsOf(t, m, TieOptions{}); got != "head=transpose(emb)" {
		t.Errorf("joined %q", got)
	}
}
