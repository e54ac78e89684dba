package models

import (
	"slices"
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// mergedUse is one node over an initializer: its operator, its name or, with dots instead of
// slashes, the modules it lies in, and the operand's name.
type mergedUse struct{ op, where, operand string }

func equalTo(v float32, shape ...int) *tensor.Tensor {
	t := tensor.New(tensor.Float32, shape...)
	for i := range t.Float32s() {
		t.Float32s()[i] = v
	}
	return t
}

// TestMergedParametersAreCutApart has the forms in which exporters leave what they merged, and what
// must stay tied.
func TestMergedParametersAreCutApart(t *testing.T) {
	ones, noise, half := equalTo(1, 4), floats(4), equalTo(0.5)
	cases := []struct {
		name    string
		content *tensor.Tensor
		// aliases are the results of Identity nodes over the initializer, whose name comes first.
		aliases []string
		uses    []mergedUse
		want    string // the operands after the split
	}{
		{"names left by TorchScript", ones, []string{"a.weight", "b.weight", "c.bias"},
			[]mergedUse{{"Mul", "/a/Mul", "a.weight"}, {"Mul", "/b/Mul", "b.weight"}, {"Add", "/c/Add", "c.bias"}}, "a.weight b.weight c.bias"},
		{"a module that is called twice", ones, []string{"a.weight", "b.weight"},
			[]mergedUse{{"Mul", "/a/Mul", "a.weight"}, {"Mul", "/b/Mul", "b.weight"}, {"Mul", "/a_1/Mul", "a.weight"}, {"Mul", "/b_1/Mul", "b.weight"}}, "a.weight b.weight a.weight b.weight"},
		{"modules of a node's metadata", ones, []string{"layers.0.norm.weight"},
			[]mergedUse{{"Mul", "layers.0,layers.0.norm", "layers.0.norm.weight"}, {"Mul", "layers.1,layers.1.norm", "layers.0.norm.weight"}}, "layers.0.norm.weight layers.1.norm.weight"},
		{"paths of a node's name", ones, []string{"layers.0.0.weight"},
			[]mergedUse{{"Mul", "/layers.0/layers.0.0/Mul", "layers.0.0.weight"}, {"Mul", "/layers.1/layers.1.0/Mul", "layers.0.0.weight"}}, "layers.0.0.weight layers.1.0.weight"},
		{"a module called twice without Identity nodes", ones, []string{"a.weight"},
			[]mergedUse{{"Mul", "/a/Mul", "a.weight"}, {"Mul", "/a_1/Mul", "a.weight"}, {"Mul", "/ab/Mul", "a.weight"}}, "a.weight a.weight ab.weight"},
		{"a parameter handed down", half, []string{"enc.scale"},
			[]mergedUse{{"Mul", "enc,enc.0", "enc.scale"}, {"Mul", "enc,enc.1", "enc.scale"}, {"Mul", "dec,dec.0", "enc.scale"}}, "enc.scale enc.scale dec.0.scale"},
		{"a layer and its copies", noise, []string{"layers.0.fc.bias", "layers.1.fc.bias"},
			[]mergedUse{{"Add", "/layers.0/fc/Add", "layers.0.fc.bias"}, {"Add", "/layers.1/fc/Add", "layers.1.fc.bias"}}, "layers.0.fc.bias layers.1.fc.bias"},
		{"copies under a made-up name", noise, []string{"onnx::Add_7"},
			[]mergedUse{{"MatMul", "/layers.0/fc/MatMul", "onnx::Add_7"}, {"MatMul", "/layers.1/fc/MatMul", "onnx::Add_7"}}, "onnx::Add_7 onnx::Add_7.2"},
		{"weights tied on purpose", noise, []string{"encoder.emb.weight", "decoder.emb.weight"},
			[]mergedUse{{"Mul", "/encoder/emb/Mul", "encoder.emb.weight"}, {"Mul", "/decoder/emb/Mul", "decoder.emb.weight"}}, "encoder.emb.weight decoder.emb.weight"},
		{"an embedding that is the projection", noise, []string{"layers.0.emb.weight"},
			[]mergedUse{{"Mul", "layers.0,layers.0.emb", "layers.0.emb.weight"}, {"Add", "layers.1,layers.1.emb", "layers.0.emb.weight"}}, "layers.0.emb.weight layers.0.emb.weight"},
		{"a literal that equals a gate", half, []string{"gate"},
			[]mergedUse{{"Mul", "act:val_3", "gate"}, {"Mul", "block", "gate"}, {"Mul", "block2", "gate"}}, "const/gate gate gate"},
		{"a list of parameters", half, []string{"gates.0"},
			[]mergedUse{{"Mul", "block", "gates.0"}, {"Mul", "block", "gates.0"}}, "gates.0 gates.1"},
		{"a fill and an epsilon", equalTo(1e-5), []string{"eps"}, []mergedUse{{"Add", "a", "eps"}, {"Add", "b", "eps"}}, "eps eps"},
	}
	for _, c := range cases {
		b := onnx.NewBuilder("merged", 18)
		h := b.Input("x", onnx.TypeOf(tensor.Float32, 4))
		b.Initializer(c.aliases[0], c.content)
		for _, alias := range c.aliases[1:] {
			b.Append(&onnx.Node{OpType: "Identity", Input: c.aliases[:1], Output: []string{alias}})
		}
		for i, u := range c.uses {
			where, out, _ := strings.Cut(u.where, ":")
			if out == "" {
				out = "h" + string(rune('0'+i))
			}
			n := &onnx.Node{OpType: u.op, Name: where, Input: []string{string(h), u.operand}, Output: []string{out}}
			if where[0] != '/' {
				n.Name = out
				scopes := "['', '" + strings.ReplaceAll(where, ",", "', '") + "', '" + out + "']"
				n.MetadataProps = []*onnx.StringStringEntryProto{{Key: scopesKey, Value: scopes}}
			}
			b.Append(n)
			h = onnx.Value(out)
		}
		b.Output(h, onnx.TypeOf(tensor.Float32))
		m, err := b.Model()
		if err != nil {
			t.Fatal(err)
		}
		before := onnx.Sprint(m, onnx.PrintOptions{})
		out, splits, err := SplitMerged(m, nil)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		operands := func(m *onnx.Model) string {
			var got []string
			for _, n := range m.Graph.Node {
				if n.OpType != "Identity" {
					got = append(got, n.Input[1])
				}
			}
			return strings.Join(got, " ")
		}
		if got := operands(out); got != c.want {
			t.Errorf("%s: operands %s, want %s (%v)", c.name, got, c.want, splits)
		}
		if onnx.Sprint(m, onnx.PrintOptions{}) != before {
			t.Errorf("%s: the model has changed", c.name)
		}
		kept, splits, err := SplitMerged(m, []string{c.aliases[0]})
		if err != nil || len(splits) != 0 || operands(kept) != operands(m) {
			t.Errorf("%s: kept tied, operands %s, splits %v, error %v", c.name, operands(kept), splits, err)
		}
	}
	if len(cases) != 13 {
		t.Errorf("%d cases", len(cases))
	}
}

// TestMergedWithoutModules: where a file does not say which modules its nodes lie in, the nearest
// weights tell layers apart, and a layer that is used twice has the same ones.
func TestMergedWithoutModules(t *testing.T) {
	for _, d := range []tensor.DType{tensor.Float32, tensor.Float64, tensor.Float16, tensor.BFloat16} {
		typed := func(x *tensor.Tensor) *tensor.Tensor {
			y, err := tensor.FromFloat32(x, d)
			if err != nil {
				t.Fatal(err)
			}
			return y
		}
		b := onnx.NewBuilder("merged", 18)
		rows := onnx.TensorType{DType: d, Ranked: true, Dims: rows.Dims}
		h := b.Input("x", rows)
		zeros := b.Initializer("bias", typed(equalTo(0, 4)))
		u, v := b.Initializer("u", typed(floats(4, 4))), b.Initializer("v", typed(floats(4, 4)))
		for _, w := range []onnx.Value{u, v, u} {
			h = b.Op("Add", []onnx.Value{b.Op("MatMul", []onnx.Value{h, w}), zeros})
		}
		b.Output(b.Rename(h, "y"), rows)
		m, err := b.Model()
		if err != nil {
			t.Fatal(err)
		}
		m, splits, err := SplitMerged(m, nil)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, n := range m.Graph.Node {
			if n.OpType == "Add" {
				got = append(got, n.Input[1])
			}
		}
		if want := []string{"bias", "bias.2", "bias"}; !slices.Equal(got, want) || len(splits) != 1 || splits[0].Name != "bias" || !slices.Equal(splits[0].Into, []string{"bias.2"}) {
			t.Errorf("%v: biases %v, splits %v", d, got, splits)
		}
		if err := onnx.Check(m); err != nil {
			t.Error(err)
		}
	}
	b := onnx.NewBuilder("single", 18)
	b.Output(b.Rename(b.Op("MatMul", []onnx.Value{b.Input("x", rows), b.Initializer("w", floats(4, 4))}), "y"), rows)
	m, err := b.Model()
	if err != nil {
		t.Fatal(err)
	}
	if same, splits, err := SplitMerged(m, nil); err != nil || same != m || splits != nil {
		t.Errorf("a model without shared parameters: %v, %v", splits, err)
	}
	for _, pattern := range []string{"w", "z"} {
		if _, _, err := SplitMerged(m, []string{pattern}); err == nil || !strings.Contains(err.Error(), "no initializer of that name is used more than once") {
			t.Errorf("%s: error %v", pattern, err)
		}
	}
}
