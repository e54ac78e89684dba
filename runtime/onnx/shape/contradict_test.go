package shape_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/onnx/shape"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// chain is relu(x) → y → relu(y) → z of float32[2,3], with a declared type of one of them.
func chain(name string, t onnx.TensorType) *onnx.Model {
	of := func(v string) onnx.TensorType {
		if v == name {
			return t
		}
		return onnx.TypeOf(tensor.Float32, 2, 3)
	}
	m := &onnx.Model{IrVersion: onnx.DefaultIR, OpsetImport: []*onnx.OperatorSet{{Version: 18}}, Graph: &onnx.Graph{Name: "g",
		Input:     []*onnx.ValueInfo{onnx.NewValueInfo("x", of("x"))},
		ValueInfo: []*onnx.ValueInfo{onnx.NewValueInfo("y", of("y"))},
		Output:    []*onnx.ValueInfo{onnx.NewValueInfo("z", of("z"))},
		Node: []*onnx.Node{
			{Name: "first", OpType: "Relu", Input: []string{"x"}, Output: []string{"y"}},
			{Name: "second", OpType: "Relu", Input: []string{"y"}, Output: []string{"z"}},
		}}}
	if name == "w" {
		m.Graph.Node[0].Input[0] = "w"
		m.Graph.Initializer = []*onnx.TensorProto{onnx.ProtoOf("w", tensor.New(tensor.Float32, 2, 3))}
		m.Graph.Input = append(m.Graph.Input, onnx.NewValueInfo("w", t))
	}
	return m
}

// TestContradictions has wrong shapes, ranks, element types and kinds of an inner value left out with
// a note, and those of what callers see refused.
func TestContradictions(t *testing.T) {
	t.Parallel()
	wrong := []onnx.TensorType{onnx.TypeOf(tensor.Float32, 2, 4), onnx.TypeOf(tensor.Float32, 6), onnx.TypeOf(tensor.Int64, 2, 3)}
	for _, w := range wrong {
		m := chain("y", w)
		env, err := shape.Infer(m, nil)
		if err != nil {
			t.Fatalf("%v: %v", w, err)
		}
		notes := env.Contradictions()
		if len(notes) != 1 || !strings.Contains(notes[0].String(), `node "first" (Relu): value "y" is declared `+w.String()+", but inferred float32[2,3]: the declaration is left out") {
			t.Errorf("%v: notes %v", w, notes)
		}
		if got := env.Type("z").String(); got != "float32[2,3]" {
			t.Errorf("%v: z is %s", w, got)
		}
		if c := env.Consistent(m); len(c.Graph.ValueInfo) != 0 || len(m.Graph.ValueInfo) != 1 {
			t.Errorf("%v: %v is left of %v", w, c.Graph.ValueInfo, m.Graph.ValueInfo)
		}
		for _, name := range []string{"z", "w"} {
			if _, err := shape.Infer(chain(name, w), nil); err == nil {
				t.Errorf("%q may be declared %v", name, w)
			}
		}
	}
	if m := chain("", onnx.TensorType{}); len(mustInfer(t, m).Contradictions()) != 0 || mustInfer(t, m).Consistent(m) != m {
		t.Error("a right declaration is left out")
	}
	m := chain("", onnx.TensorType{})
	m.Graph.ValueInfo[0].Type = &onnx.TypeProto{Value: &onnx.TypeProto_SequenceType{SequenceType: &onnx.TypeProto_Sequence{ElemType: m.Graph.Input[0].Type}}}
	if notes := mustInfer(t, m).Contradictions(); len(notes) != 1 || notes[0].Declared != "a sequence" {
		t.Errorf("a tensor declared as a sequence: %v", notes)
	}
}

func mustInfer(t *testing.T, m *onnx.Model) *shape.Env {
	t.Helper()
	env, err := shape.Infer(m, nil)
	if err != nil {
		t.Fatal(err)
	}
	return env
}

// TestDeadBranch reads what PyTorch makes of scatter_reduce: outputs of an If with a constant
// condition have the shape of the branch that is never taken. That of a taken branch is refused.
func TestDeadBranch(t *testing.T) {
	t.Parallel()
	m, err := onnx.Load(filepath.Join("testdata", "scatter_reduce_dead_if.onnx"))
	if err != nil {
		t.Fatal(err)
	}
	if err := onnx.Check(m); err != nil {
		t.Fatal(err)
	}
	env := mustInfer(t, m)
	if n := len(env.Contradictions()); n != 6 {
		t.Errorf("%d notes: %v", n, env.Contradictions())
	}
	for _, o := range env.Consistent(m).Graph.Output {
		if typ, _ := o.TensorType(); typ.String() != "float32[3,6]" {
			t.Errorf("output %s is %v", o.Name, typ)
		}
	}
	m.Graph.Output[0] = onnx.NewValueInfo("34", onnx.TypeOf(tensor.Float32, 17))
	if _, err := shape.Infer(m, nil); err == nil || !strings.Contains(err.Error(), "declared float32[17]") {
		t.Errorf("an output that no branch has: %v", err)
	}
}
