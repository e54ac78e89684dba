package models

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/sorted"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

func floats(shape ...int) *tensor.Tensor {
	t := tensor.New(tensor.Float32, shape...)
	for i := range t.Float32s() {
		t.Float32s()[i] = float32(math.Sin(12.9898*float64(i+1)) * math.Cos(4.1414*float64(i)))
	}
	return t
}

var rows = onnx.TensorType{DType: tensor.Float32, Ranked: true, Dims: []onnx.Dim{onnx.Symbol("N"), onnx.Known(4)}}

// sample has every kind of initializer: weights with given and with made-up names, running
// statistics, settings, literals, folded constants, masks, integers, a scalar and one that nothing
// uses.
func sample(t *testing.T) *onnx.Model {
	t.Helper()
	b := onnx.NewBuilder("sample", 18)
	x := b.Input("x", rows)
	init := func(name string, v *tensor.Tensor) onnx.Value { return b.Initializer(name, v) }
	h := b.Op("Gemm", []onnx.Value{x, init("fc1.weight", floats(4, 4)), init("fc1.bias", floats(4))})
	h = b.Op("MatMul", []onnx.Value{h, init("onnx::MatMul_12", floats(4, 4))})
	h = b.Op("Add", []onnx.Value{h, init("pos", floats(1, 4))})
	h = b.Op("BatchNormalization", []onnx.Value{h, init("bn.weight", floats(4)), init("bn.bias", floats(4)), init("bn.mean", floats(4)), init("bn.var", floats(4))})
	h = b.Op("Mul", []onnx.Value{h, init("val_7", floats(1))})
	h = b.Op("Div", []onnx.Value{h, init("/net/Constant_3_output_0", floats(4))})
	h = b.Op("Add", []onnx.Value{h, init("mask", tensor.Of([]float32{0, -3.4e38, float32(math.Inf(-1)), 0}, 4))})
	for _, name := range []string{"logit_scale", "val_9", "onnx::Mul_31", "/net/Constant_4_output_0", "model/lambda/mul/y:0", "lifted_tensor_0"} {
		h = b.Op("Mul", []onnx.Value{h, init(name, tensor.Scalar(float32(2)))})
	}
	h = b.Op("Add", []onnx.Value{h, init("gate", tensor.Scalar(float32(0)))})
	h = b.Op("Div", []onnx.Value{h, b.Op("Add", []onnx.Value{b.Op("Abs", []onnx.Value{h}), init("eps", tensor.Scalar(float32(1e-5)))})})
	h = b.Op("Where", []onnx.Value{b.Op("Greater", []onnx.Value{h, init("limit", tensor.Scalar(float32(9)))}), init("fill", tensor.Scalar(float32(-1e9))), h})
	h = b.Op("Clip", []onnx.Value{h, init("low", tensor.Scalar(float32(-1))), init("high", tensor.Of([]float32{1}, 1))})
	h = b.Op("Reshape", []onnx.Value{h, init("shape", tensor.Of([]int64{-1, 4}, 2))})
	init("unused", floats(4))
	b.Output(b.Rename(h, "y"), rows)
	m, err := b.Model()
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestRolesOfInitializers(t *testing.T) {
	m := sample(t)
	text := onnx.Sprint(m, onnx.PrintOptions{})
	cases := []struct {
		o    Options
		want string
	}{
		{Options{}, "T fc1.weight, T fc1.bias, T onnx::MatMul_12, T pos, T bn.weight, T bn.bias, B bn.mean, B bn.var, T logit_scale, T gate"},
		{Options{Train: []string{"fc1.*", "pos"}}, "T fc1.weight, T fc1.bias, F onnx::MatMul_12, T pos, F bn.weight, F bn.bias, B bn.mean, B bn.var, F logit_scale, F gate"},
		{Options{Freeze: []string{"*.bias"}}, "T fc1.weight, F fc1.bias, T onnx::MatMul_12, T pos, T bn.weight, F bn.bias, B bn.mean, B bn.var, T logit_scale, T gate"},
		{Options{Train: []string{"fc1.*"}, Freeze: []string{"*.bias"}}, "T fc1.weight, F fc1.bias, F onnx::MatMul_12, F pos, F bn.weight, F bn.bias, B bn.mean, B bn.var, F logit_scale, F gate"},
		{Options{Train: []string{"val_7", "logit_scale"}}, "F fc1.weight, F fc1.bias, F onnx::MatMul_12, F pos, F bn.weight, F bn.bias, B bn.mean, B bn.var, T val_7, T logit_scale, F gate"},
	}
	for _, c := range cases {
		net, values, err := FromModel(m, c.o)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, s := range net.Specs {
			got = append(got, map[Role]string{Trainable: "T ", Frozen: "F ", Buffer: "B "}[s.Role]+s.Name)
			if values[s.Name] == nil || values[s.Name].Len() != s.Len() {
				t.Errorf("%+v: value of %s is %v", c.o, s.Name, values[s.Name])
			}
		}
		if strings.Join(got, ", ") != c.want {
			t.Errorf("%+v:\n got %s\nwant %s", c.o, strings.Join(got, ", "), c.want)
		}
		if !slices.Equal(net.Inputs, []string{"x"}) || !slices.Equal(net.Outputs, []string{"y"}) || len(values) != len(net.Specs) {
			t.Errorf("inputs %v, outputs %v, %d values", net.Inputs, net.Outputs, len(values))
		}
		for i, v := range net.Model.Graph.Input[1:] {
			if v.Name != net.Specs[i].Name || net.Model.Graph.FindInitializer(v.Name) != nil {
				t.Errorf("input %d is %s, want parameter %s", i+1, v.Name, net.Specs[i].Name)
			}
		}
	}
	net, _, err := FromModel(m, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"val_7", "/net/Constant_3_output_0", "mask", "high", "unused"}; !slices.Equal(net.Constants, want) {
		t.Errorf("constants %v, want %v", net.Constants, want)
	}
	for _, o := range []Options{{Train: []string{"conv*"}}, {Freeze: []string{"shape"}}} {
		if _, _, err := FromModel(m, o); err == nil || !strings.Contains(err.Error(), "matches no parameter; the model has fc1.weight") {
			t.Errorf("%+v: error %v", o, err)
		}
	}
	if onnx.Sprint(m, onnx.PrintOptions{}) != text {
		t.Error("the model has changed")
	}
}

// TestOldFilesListParametersAsInputs: before IR 4 every initializer was an input too.
func TestOldFilesListParametersAsInputs(t *testing.T) {
	m := sample(t)
	m.IrVersion = 3
	for _, p := range m.Graph.Initializer {
		shape := make([]int, len(p.Dims))
		for i, d := range p.Dims {
			shape[i] = int(d)
		}
		m.Graph.Input = append(m.Graph.Input, onnx.NewValueInfo(onnx.Value(p.Name), onnx.TypeOf(tensor.DType(p.DataType), shape...)))
	}
	net, _, err := FromModel(m, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(net.Inputs, []string{"x"}) || len(net.Model.Graph.Input) != 1+len(net.Specs) {
		t.Errorf("data inputs %v, %d inputs for %d parameters", net.Inputs, len(net.Model.Graph.Input), len(net.Specs))
	}
}

func TestBakeReversesFromModel(t *testing.T) {
	m := sample(t)
	net, values, err := FromModel(m, Options{})
	if err != nil {
		t.Fatal(err)
	}
	p, err := NewParams(net, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	if err := p.Load(values); err != nil {
		t.Fatal(err)
	}
	baked, err := net.Bake(p.View)
	if err != nil {
		t.Fatal(err)
	}
	again, err := Reweigh(m, p.View)
	if err != nil {
		t.Fatal(err)
	}
	for name, b := range sorted.All(map[string]*onnx.Model{"baked": baked, "reweighed": again}) {
		if len(b.Graph.Initializer) != len(m.Graph.Initializer) || len(b.Graph.Input) != 1 {
			t.Errorf("%s: %d initializers and %d inputs", name, len(b.Graph.Initializer), len(b.Graph.Input))
		}
		for _, want := range m.Graph.Initializer {
			got := b.Graph.FindInitializer(want.Name)
			if got == nil {
				t.Fatalf("%s: %s is missing", name, want.Name)
			}
			x, err := onnx.TensorOf(got)
			if err != nil {
				t.Fatal(err)
			}
			y, err := onnx.TensorOf(want)
			if err != nil {
				t.Fatal(err)
			}
			if onnx.Digest(x) != onnx.Digest(y) {
				t.Errorf("%s: %s has changed", name, want.Name)
			}
		}
	}
	if d := onnx.Diff(m, again); !d.Empty() {
		t.Errorf("reweighing changes more than content: %d differences", d.Count())
	}
	if _, err := net.Bake(func(string) *tensor.Tensor { return floats(2) }); err == nil || !strings.Contains(err.Error(), `"fc1.weight": expected float32[4 4]`) {
		t.Errorf("error %v", err)
	}
	if _, err := Reweigh(m, func(string) *tensor.Tensor { return floats(2) }); err == nil || !strings.Contains(err.Error(), `reweigh "fc1.weight"`) {
		t.Errorf("error %v", err)
	}
}

func TestWithSpecsNamesWhatIsMissing(t *testing.T) {
	if _, err := WithSpecs(sample(t), []Spec{{Name: "fc9.weight", Shape: []int{4}}}); err == nil || !strings.Contains(err.Error(), `"fc9.weight"`) {
		t.Errorf("error %v", err)
	}
}
