package memory

import (
	"slices"
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/sorted"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// model has a state x -> y of two elements.
func model(t *testing.T) *onnx.Model {
	t.Helper()
	form := onnx.TensorType{DType: tensor.Float32, Ranked: true, Dims: []onnx.Dim{onnx.Symbol("n"), onnx.Known(2)}}
	b := onnx.NewBuilder("m", 13)
	b.Output(b.Rename(b.Op("Neg", []onnx.Value{b.Input("x", form)}), "y"), form)
	m, err := b.Model()
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestStates(t *testing.T) {
	m := model(t)
	want := State{Input: "x", Output: "y", Shape: []int{2}, Initial: []float32{1, -2}}
	if list, err := Of(m); list != nil || err != nil {
		t.Errorf("a model that remembers nothing: %v, %v", list, err)
	}
	if err := Set(m, []State{want}); err != nil {
		t.Fatal(err)
	}
	list, err := Of(m)
	if err != nil || len(list) != 1 || list[0].Input != "x" || list[0].Output != "y" || !slices.Equal(list[0].Shape, want.Shape) || !slices.Equal(list[0].Initial, want.Initial) || list[0].Len() != 2 {
		t.Errorf("%+v, %v", list, err)
	}
	if got := list[0].Tensor(2); !slices.Equal(got.Shape(), []int{2, 2}) || !slices.Equal(got.Float32s(), []float32{1, -2, 1, -2}) {
		t.Errorf("initial values %v", got.Float32s())
	}
	one := State{Shape: []int{2}, Initial: []float32{3}}
	if got := one.Tensor(1).Float32s(); !slices.Equal(got, []float32{3, 3}) {
		t.Errorf("one initial value became %v", got)
	}
	named, err := Named(model(t), "x", "y")
	if err != nil || len(named) != 1 || named[0].Output != "y" || !slices.Equal(named[0].Initial, []float32{0}) {
		t.Errorf("%+v, %v", named, err)
	}
}

func TestTextsThatAreNoStates(t *testing.T) {
	cases := 0
	for text, want := range sorted.All(map[string]string{
		`{`: "metadata onnxrl.state",
		`[{"input":"x","output":"","shape":[2],"initial":[0]}]`:                                                       "expected names",
		`[{"input":"x","output":"y","shape":[2],"initial":[0]},{"input":"x","output":"z","shape":[2],"initial":[0]}]`: "listed twice",
		`[{"input":"x","output":"y","shape":[2],"initial":[0,1,2]}]`:                                                  "has 3 initial values",
		`[{"input":"x","output":"y","shape":[-2],"initial":[0]}]`:                                                     "of shape [-2]",
		`[{"input":"x","output":"y","form":[2],"initial":[0]}]`:                                                       "unknown field",
		`[] []`: "something behind",
		`[]}`:   "something behind",
	}) {
		if _, err := Parse(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
		cases++
	}
	if cases != 8 {
		t.Errorf("%d cases", cases)
	}
	m := model(t)
	m.SetMeta(Key, `[{"input":"x","output":"y","shape":[3],"initial":[0]}]`)
	if _, err := Of(m); err == nil || !strings.Contains(err.Error(), "expected float32[batch [3]]") {
		t.Errorf("another shape: %v", err)
	}
}
