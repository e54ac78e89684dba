package models

import (
	"fmt"
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

var modeRows = onnx.TensorType{DType: tensor.Float32, Ranked: true, Dims: []onnx.Dim{onnx.Symbol("N"), onnx.Known(3)}}

// modeNetwork has one BatchNormalization and two Dropouts, in training or in evaluation form.
func modeNetwork(t *testing.T, training bool) *onnx.Model {
	t.Helper()
	b := onnx.NewBuilder("net", 15)
	vec := func(name string) onnx.Value { return b.Initializer(name, tensor.New(tensor.Float32, 3)) }
	in := []onnx.Value{b.Input("x", modeRows), vec("scale"), vec("shift"), vec("mean"), vec("var")}
	mode := b.Initializer("mode", tensor.Scalar(training))
	ratio := b.Initializer("ratio", tensor.Scalar(float32(0.25)))
	var h onnx.Value
	if training {
		h = b.OpN("BatchNormalization", "", 3, in, onnx.AttrInt("training_mode", 1))[0]
		h = b.OpN("Dropout", "", 2, []onnx.Value{h, ratio, mode})[0]
	} else {
		h = b.Op("BatchNormalization", in)
		h = b.Op("Dropout", []onnx.Value{h, ratio})
	}
	h = b.Op("Dropout", []onnx.Value{h, "", mode})
	b.Output(b.Rename(h, "y"), modeRows)
	m, err := b.Model()
	if err != nil {
		t.Fatal(err)
	}
	for i, n := range m.Graph.Node {
		n.Name = fmt.Sprintf("n%d", i)
	}
	return m
}

func TestFindTellsTheForm(t *testing.T) {
	for _, training := range []bool{false, true} {
		want := fmt.Sprintf("[{n0 BatchNormalization %v} {n1 Dropout %v} {n2 Dropout %v}]", training, training, training)
		if got := fmt.Sprint(ModeLayers(modeNetwork(t, training))); got != want {
			t.Errorf("found %s, want %s", got, want)
		}
	}
	// A mode that is not known may be true.
	m := modeNetwork(t, true)
	m.Graph.Initializer = m.Graph.Initializer[:0]
	if l := ModeLayers(m); !l[1].Training {
		t.Errorf("found %v", l)
	}
	// Before opset 14 the outputs told.
	m = modeNetwork(t, true)
	m.SetOpset("", 13)
	m.Graph.Node[0].DelAttr("training_mode")
	if l := ModeLayers(m); !l[0].Training {
		t.Errorf("found %v", l)
	}
}

func TestEvaluationUndoesTraining(t *testing.T) {
	m := modeNetwork(t, true)
	text := onnx.Sprint(m, onnx.PrintOptions{})
	out, changed, err := EvaluationForm(m)
	if err != nil {
		t.Fatal(err)
	}
	if len(changed) != 3 {
		t.Errorf("changed %v", changed)
	}
	for _, l := range ModeLayers(out) {
		if l.Training {
			t.Errorf("%v is still in training form", l)
		}
	}
	if err := onnx.Check(out); err != nil {
		t.Error(err)
	}
	if onnx.Sprint(m, onnx.PrintOptions{}) != text {
		t.Error("the model has changed")
	}
	plain := modeNetwork(t, false)
	if same, changed, err := EvaluationForm(plain); err != nil || same != plain || changed != nil {
		t.Errorf("a model in evaluation form was changed: %v, %v", changed, err)
	}
	m.Graph.Output = append(m.Graph.Output, onnx.NewValueInfo(m.Graph.Node[0].Out(1), onnx.TypeOf(tensor.Float32, 3)))
	if _, _, err := EvaluationForm(m); err == nil || !strings.Contains(err.Error(), "exists in training only and is used") {
		t.Errorf("error %v", err)
	}
}

func TestApplyMakesMasksAndUpdates(t *testing.T) {
	m := modeNetwork(t, false)
	text := onnx.Sprint(m, onnx.PrintOptions{})
	out, r, err := TrainingForm(m, ModeLayers(m))
	if err != nil {
		t.Fatal(err)
	}
	if onnx.Sprint(m, onnx.PrintOptions{}) != text {
		t.Error("the model has changed")
	}
	if err := onnx.Check(out); err != nil {
		t.Error(err)
	}
	if len(r.Layers) != 3 || fmt.Sprint(r.Masks) != "[{dropout/n1 0.25} {dropout/n2 0.5}]" {
		t.Errorf("layers %v, masks %v", r.Layers, r.Masks)
	}
	for _, mask := range r.Masks {
		found := false
		for _, v := range out.Graph.Input {
			if tt, _ := v.TensorType(); v.Name == mask.Input && tt.String() == "float32[N,3]" {
				found = true
			}
		}
		if !found {
			t.Errorf("%s is no input of the activations' type", mask.Input)
		}
	}
	for _, name := range []string{"mean", "var"} {
		found := false
		for _, v := range out.Graph.Output {
			found = found || v.Name == r.Updates[name]
		}
		if !found {
			t.Errorf("the new value of %q, %q, is no output", name, r.Updates[name])
		}
	}
	if len(r.Updates) != 2 {
		t.Errorf("updates %v", r.Updates)
	}
}

func TestApplyNamesWhatItCannotDo(t *testing.T) {
	cases := []struct {
		edit func(m *onnx.Model)
		want string
	}{
		{func(m *onnx.Model) { m.SetOpset("", 13) }, "opset 13, expected 14 or later"},
		{func(m *onnx.Model) { m.Graph.Node[0].Input[4] = "mean" }, `the running statistics "mean" belong to another BatchNormalization too`},
		{func(m *onnx.Model) {
			m.Graph.Input = append(m.Graph.Input, onnx.NewValueInfo("r", onnx.TypeOf(tensor.Float32)))
			m.Graph.Node[1].Input[1] = "r"
		}, "its ratio is not a constant number"},
		{func(m *onnx.Model) {
			for i, p := range m.Graph.Initializer {
				if p.Name == "ratio" {
					m.Graph.Initializer[i] = onnx.ProtoOf("ratio", tensor.Scalar(float32(1)))
				}
			}
		}, "its ratio 1 is not in [0, 1)"},
		{func(m *onnx.Model) {
			m.Graph.Node[1].Output = append(m.Graph.Node[1].Output, "mask")
			m.Graph.Output = append(m.Graph.Output, onnx.NewValueInfo("mask", onnx.TypeOf(tensor.Bool, 1, 3)))
		}, "its mask output is used"},
	}
	for _, c := range cases {
		m := modeNetwork(t, false)
		c.edit(m)
		if _, _, err := TrainingForm(m, ModeLayers(m)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("error %v, want %q", err, c.want)
		}
	}
}
