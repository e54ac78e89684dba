package enginetest

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/onnxrl/onnxrl/runtime/engine"
	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// passedOn is a model whose outputs are values that no node makes, or that one node makes for
// several, each of one batch of two float32, with the factor of x that the output is. Bodies pass
// on values of their own inputs, of their initializers and of the graph around them.
func passedOn(t *testing.T, batch onnx.Dim) (*onnx.Model, []float32) {
	t.Helper()
	vec := symbolic(tensor.Float32, batch, onnx.Known(2))
	b := onnx.NewBuilder("passed", opset)
	x, flag := b.Input("x", vec), b.Input("flag", onnx.TypeOf(tensor.Bool))
	x2 := b.Op("Add", []onnx.Value{x, x})
	x3 := b.Op("Add", []onnx.Value{x, x2})
	var factors []float32
	out := func(v onnx.Value, name string, factor float32) {
		if name != "" {
			v = b.Rename(v, name)
		}
		b.Output(v, vec)
		factors = append(factors, factor)
	}
	out(x, "", 1)
	out(b.Op("Identity", []onnx.Value{x}), "same", 1)
	out(b.Op("Dropout", []onnx.Value{x}), "kept", 1)
	out(b.Op("Reshape", []onnx.Value{x, b.Ints(-1, 2)}), "reshaped", 1)
	out(b.Op("Cast", []onnx.Value{x}, onnx.AttrInt("to", int(tensor.Float32))), "cast", 1)
	out(x2, "", 2)
	out(b.Op("Identity", []onnx.Value{x2}), "doubled", 2)
	out(b.Op("Identity", []onnx.Value{x2}), "again", 2)

	value := func(name string, t onnx.TensorType) *onnx.ValueInfo { return onnx.NewValueInfo(onnx.Value(name), t) }
	branch := func(name string) *onnx.Graph {
		return &onnx.Graph{Name: name, Output: []*onnx.ValueInfo{value(name, vec)}}
	}
	// then: an input of the graph around; else: a value computed there.
	out(b.Op("If", []onnx.Value{flag}, onnx.AttrGraph("then_branch", branch("x")), onnx.AttrGraph("else_branch", branch(string(x3)))), "chosen", 0)
	// A branch in a branch passes on what lies two graphs further out.
	inner := &onnx.Node{OpType: "If", Name: "inner", Input: []string{"flag"}, Output: []string{"within"},
		Attribute: []*onnx.Attribute{onnx.AttrGraph("then_branch", branch("x")), onnx.AttrGraph("else_branch", branch(string(x3)))}}
	outer := branch("within")
	outer.Node = []*onnx.Node{inner}
	out(b.Op("If", []onnx.Value{flag}, onnx.AttrGraph("then_branch", outer), onnx.AttrGraph("else_branch", branch(string(x2)))), "nested", 0)

	// The body gives back its own condition, one state as it is, a value from outside as the other,
	// and keeps both of them, in every turn.
	body := &onnx.Graph{Name: "body",
		Input:  []*onnx.ValueInfo{value("turn", onnx.TypeOf(tensor.Int64)), value("go", onnx.TypeOf(tensor.Bool)), value("a", vec), value("b", vec)},
		Output: []*onnx.ValueInfo{value("go", onnx.TypeOf(tensor.Bool)), value("b", vec), value(string(x3), vec)}}
	loop := b.OpN("Loop", "", 2, []onnx.Value{b.Const(tensor.Scalar(int64(3))), b.Const(tensor.Scalar(true)), x, x2}, onnx.AttrGraph("body", body))
	out(loop[0], "first", 3)
	out(loop[1], "second", 3)

	// A Scan over rows of x gives back its state and the row, and the row of 2x as it is.
	row := onnx.TypeOf(tensor.Float32, 2)
	step := &onnx.Graph{Name: "step",
		Input:  []*onnx.ValueInfo{value("state", row), value("row", row), value("row2", row)},
		Output: []*onnx.ValueInfo{value("state", row), value("row", row), value("row2", row)}}
	scan := b.OpN("Scan", "", 3, []onnx.Value{b.Const(tensor.Of([]float32{1, 1}, 2)), x, x2}, onnx.AttrInt("num_scan_inputs", 2), onnx.AttrGraph("body", step))
	out(scan[1], "rows", 1)
	out(scan[2], "rows2", 2)

	// A function gives back its inputs, the second one first.
	swapped := b.OpN("Swap", "local", 2, []onnx.Value{x, x2})
	out(swapped[0], "swapped", 2)
	out(swapped[1], "swapped2", 1)
	m := finish(t, b)
	m.Functions = append(m.Functions, &onnx.Function{Name: "Swap", Domain: "local", Input: []string{"a", "b"}, Output: []string{"b", "a"}, OpsetImport: m.OpsetImport})
	m.SetOpset("local", 1)
	return m, factors
}

// passedValues runs graphs whose outputs, and whose bodies' outputs, no node makes.
func (s *suite) passedValues(t *testing.T) {
	e := s.open(t)
	ran := 0
	for _, batch := range []onnx.Dim{onnx.Known(3), onnx.Symbol("batch")} {
		m, factors := passedOn(t, batch)
		for _, level := range []engine.OptLevel{engine.OptAll, engine.OptBasic, engine.OptNone} {
			session := compile(t, e, m, engine.Options{Optimize: level})
			for _, flag := range []bool{true, false} {
				x := tensor.Of([]float32{1, -2, 3, -4, 5, -6}, 3, 2)
				in := []*tensor.Tensor{x, tensor.Scalar(flag)}
				check := func(how string, out []*tensor.Tensor) {
					t.Helper()
					for i, f := range factors {
						name := session.Outputs()[i].Name
						switch {
						case f != 0:
						case flag:
							f = 1
						case name == "chosen":
							f = 3
						default:
							f = 2
						}
						var want []float32
						for _, v := range x.Float32s() {
							want = append(want, f*v)
						}
						if !slices.Equal(out[i].Float32s(), want) {
							t.Errorf("batch %v, level %v, flag %v, %s: output %q is %v, expected %v", batch, level, flag, how, name, out[i].Float32s(), want)
						}
						ran++
					}
				}
				fresh := make([]*tensor.Tensor, len(factors))
				if err := session.Run(context.Background(), fresh, in); err != nil {
					t.Fatal(err)
				}
				check("fresh outputs", fresh)
				given := make([]*tensor.Tensor, len(factors))
				for i := range given {
					given[i] = tensor.New(tensor.Float32, 3, 2)
				}
				if err := session.Run(context.Background(), given, in); err != nil {
					t.Fatal(err)
				}
				check("given outputs", given)
				for i := range given {
					given[i] = tensor.New(tensor.Float32, 3, 2)
				}
				bound, err := session.Bind(given, in)
				if err != nil {
					t.Fatal(err)
				}
				for run := range 2 {
					x.Float32s()[0] = float32(run + 7)
					if err := bound.Run(); err != nil {
						t.Fatal(err)
					}
					check(fmt.Sprintf("run %d of a binding", run), given)
				}
				if err := bound.Close(); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	if ran != 2*3*2*4*16 {
		t.Errorf("%d outputs were compared", ran)
	}
}

// passedConstants runs graphs whose outputs, and whose branches' outputs, are initializers, also
// those that are declared as inputs, which older files do, and text.
func (s *suite) passedConstants(t *testing.T) {
	e := s.open(t)
	vec, text := onnx.TypeOf(tensor.Float32, 2), onnx.TypeOf(tensor.String, 2)
	b := onnx.NewBuilder("constants", opset)
	flag := b.Input("flag", onnx.TypeOf(tensor.Bool))
	b.Initializer("w", tensor.Of([]float32{5, 6}, 2))
	b.Initializer("old", tensor.Of([]float32{7, 8}, 2))
	b.Initializer("words", tensor.OfStrings([]string{"a", "b"}, 2))
	own := &onnx.Graph{Name: "own", Initializer: []*onnx.TensorProto{onnx.ProtoOf("inside", tensor.Of([]float32{9, 10}, 2))},
		Output: []*onnx.ValueInfo{onnx.NewValueInfo("inside", vec)}}
	around := &onnx.Graph{Name: "around", Output: []*onnx.ValueInfo{onnx.NewValueInfo("w", vec)}}
	b.Output("w", vec)
	b.Output("old", vec)
	b.Output("words", text)
	b.Output(b.Rename(b.Op("Identity", []onnx.Value{"w"}), "copy"), vec)
	b.Output(b.Rename(b.Op("Add", []onnx.Value{"w", "old"}), "sum"), vec)
	b.Output(b.Rename(b.Op("If", []onnx.Value{flag}, onnx.AttrGraph("then_branch", own), onnx.AttrGraph("else_branch", around)), "chosen"), vec)
	m := finish(t, b)
	m.Graph.Input = append(m.Graph.Input, onnx.NewValueInfo("old", vec))
	session := compile(t, e, m, engine.Options{})
	for _, flag := range []bool{true, false} {
		for _, given := range []bool{false, true} {
			out := make([]*tensor.Tensor, 6)
			for i := range out {
				if given && i != 2 {
					out[i] = tensor.New(tensor.Float32, 2)
				}
			}
			if err := session.Run(context.Background(), out, []*tensor.Tensor{tensor.Scalar(flag)}); err != nil {
				t.Fatal(err)
			}
			want := [][]float32{{5, 6}, {7, 8}, nil, {5, 6}, {12, 14}, {9, 10}}
			if !flag {
				want[5] = want[0]
			}
			for i, w := range want {
				if i == 2 {
					if got := out[i].Strings(); !slices.Equal(got, []string{"a", "b"}) {
						t.Errorf("words are %q", got)
					}
				} else if !slices.Equal(out[i].Float32s(), w) {
					t.Errorf("flag %v, given %v: output %q is %v, expected %v", flag, given, session.Outputs()[i].Name, out[i].Float32s(), w)
				}
			}
		}
	}
}
