package encoder_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/models"
	"github.com/onnxrl/onnxrl/models/encoder"
	"github.com/onnxrl/onnxrl/models/encoder/encodertest"
	"github.com/onnxrl/onnxrl/models/layer"
	"github.com/onnxrl/onnxrl/runtime/engine/testengines"
	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/rng"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// freshExport is a float16 network as an exporter writes it: two linear layers with one zero bias, and a
// scalar gate.
func freshExport(t *testing.T) *onnx.Model {
	s := rng.New(3).Stream()
	half := func(x *tensor.Tensor) *tensor.Tensor {
		y, err := tensor.FromFloat32(x, tensor.Float16)
		if err != nil {
			t.Fatal(err)
		}
		return y
	}
	random := func(shape ...int) *tensor.Tensor {
		x := tensor.New(tensor.Float32, shape...)
		s.FillNormal32(x.Float32s(), 0, 0.5)
		return half(x)
	}
	b := onnx.NewBuilder("fresh", 18)
	rows := onnx.TensorType{DType: tensor.Float16, Ranked: true, Dims: []onnx.Dim{onnx.Symbol("N"), onnx.Known(4)}}
	h := b.Input("x", rows)
	bias, gate := b.Initializer("fc.0.bias", half(tensor.New(tensor.Float32, 4))), b.Initializer("gate", half(tensor.Scalar(float32(0.5))))
	for i, name := range []string{"fc.0", "fc.1"} {
		out := name + "/h"
		b.Append(&onnx.Node{OpType: "Gemm", Name: "/" + name + "/Gemm", Input: []string{string(h), string(b.Initializer(name+".weight", random(4, 4))), string(bias)}, Output: []string{out}})
		if h = onnx.Value(out); i == 0 {
			h = b.Op("Tanh", []onnx.Value{h})
		}
	}
	b.Output(b.Rename(b.Op("Mul", []onnx.Value{h, gate}), "y"), rows)
	m, err := b.Model()
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// TestFreshExports: scalars are parameters, merged biases are apart unless tie says otherwise, and
// half precision becomes float32.
func TestFreshExports(t *testing.T) {
	path := writeModel(t, freshExport(t))
	for _, c := range []struct {
		tie  []string
		want []string
	}{
		{nil, []string{"encoder.fc.0.bias", "encoder.fc.0.weight", "encoder.fc.1.bias", "encoder.fc.1.weight", "encoder.gate"}},
		{[]string{"fc.*.bias"}, []string{"encoder.fc.0.bias", "encoder.fc.0.weight", "encoder.fc.1.weight", "encoder.gate"}},
	} {
		config := encoder.FileDefaults()
		config.Path, config.Tie = path, c.tie
		e, err := encoder.NewFile(config)
		if err != nil {
			t.Fatal(err)
		}
		g := layer.New("policy", rng.New(1), layer.Options{})
		z, err := e.Build(g.In("encoder"), g.Observation("x", 4))
		if err != nil {
			t.Fatal(err)
		}
		g.Output("z", z)
		net, _, err := g.Network(models.Options{})
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, s := range net.Specs {
			if names = append(names, s.Name); s.Role != models.Trainable {
				t.Errorf("%s is %v", s.Name, s.Role)
			}
		}
		if notes := strings.Join(net.Notes, "\n"); strings.Contains(notes, "fc.0.bias is also fc.1.bias") != (c.tie == nil) || !strings.Contains(notes, "my.onnx: it is taken, trained and written in float32") {
			t.Errorf("tie %v: notes %q", c.tie, net.Notes)
		}
		slices.Sort(names)
		if !slices.Equal(names, c.want) {
			t.Errorf("tie %v: parameters %v, want %v", c.tie, names, c.want)
		}
	}
	config := encoder.FileDefaults()
	config.Path = path
	e, err := encoder.NewFile(config)
	if err != nil {
		t.Fatal(err)
	}
	encodertest.Run(t, encodertest.Suite{Encoder: e, Engines: testengines.All(t), Shapes: [][]int{{4}}})
}

// TestTiedWeights: an initializer that is the transpose of another is that one in the network, by
// either name, and apart where untie says so.
func TestTiedWeights(t *testing.T) {
	w, s := tensor.New(tensor.Float32, 4, 16), rng.New(2).Stream()
	s.FillNormal32(w.Float32s(), 0, 0.5)
	folded := tensor.New(tensor.Float32, 16, 4)
	for i, v := range w.Float32s() {
		folded.Float32s()[i%16*4+i/16] = v
	}
	b := onnx.NewBuilder("tied", 18)
	rows := onnx.TensorType{DType: tensor.Float32, Ranked: true, Dims: []onnx.Dim{onnx.Symbol("N"), onnx.Known(4)}}
	h := b.Op("Tanh", []onnx.Value{b.Op("MatMul", []onnx.Value{b.Input("x", rows), b.Initializer("up.weight", w)})})
	b.Output(b.Rename(b.Op("MatMul", []onnx.Value{h, b.Initializer("val_3", folded)}), "y"), rows)
	m, err := b.Model()
	if err != nil {
		t.Fatal(err)
	}
	path := writeModel(t, m)
	for _, c := range []struct {
		freeze, untie []string
		note, want    string
	}{
		{nil, nil, "val_3=transpose(up.weight)", "encoder.up.weight trainable"},
		{[]string{"val_3"}, nil, "val_3=transpose(up.weight)", "encoder.up.weight frozen"},
		{[]string{"val_3"}, []string{"up.*"}, "", "encoder.up.weight trainable encoder.val_3 frozen"},
	} {
		config := encoder.FileDefaults()
		config.Path, config.Freeze, config.Untie = path, c.freeze, c.untie
		e, err := encoder.NewFile(config)
		if err != nil {
			t.Fatal(err)
		}
		if got := e.Config().(encoder.FileConfig); !slices.Equal(got.Freeze, c.freeze) {
			t.Errorf("the configuration has become %+v", got)
		}
		g := layer.New("policy", rng.New(1), layer.Options{})
		z, err := e.Build(g.In("encoder"), g.Observation("x", 4))
		if err != nil {
			t.Fatal(err)
		}
		g.Output("z", z)
		net, _, err := g.Network(models.Options{})
		if err != nil {
			t.Fatal(err)
		}
		var specs []string
		for _, s := range net.Specs {
			specs = append(specs, s.Name+" "+s.Role.String())
		}
		if got := strings.Join(specs, " "); got != c.want || strings.Contains(strings.Join(net.Notes, " "), "val_3=transpose(up.weight)") != (c.note != "") {
			t.Errorf("%+v: %s, notes %q", c, got, net.Notes)
		}
		encodertest.Run(t, encodertest.Suite{Encoder: e, Engines: testengines.All(t), Shapes: [][]int{{4}}})
	}
}
