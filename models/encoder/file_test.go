package encoder_test

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/models"
	"github.com/onnxrl/onnxrl/models/encoder"
	"github.com/onnxrl/onnxrl/models/encoder/encodertest"
	"github.com/onnxrl/onnxrl/models/layer"
	"github.com/onnxrl/onnxrl/runtime/engine/testengines"
	"github.com/onnxrl/onnxrl/runtime/gradcheck"
	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/rng"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// userModel is a network as somebody might write it: a convolution over [batch, features, time], a batch
// normalisation, pooling and a linear layer.
func userModel(opset int, batch onnx.Dim) *onnx.Model {
	s := rng.New(3).Stream()
	random := func(shape ...int) *tensor.Tensor {
		t := tensor.New(tensor.Float32, shape...)
		s.FillNormal32(t.Float32s(), 0.1, 0.5)
		return t
	}
	positive := random(4)
	for i, v := range positive.Float32s() {
		positive.Float32s()[i] = 1 + v*v
	}
	b := onnx.NewBuilder("user", opset)
	x := b.Input("series", onnx.TensorType{DType: tensor.Float32, Ranked: true, Dims: []onnx.Dim{batch, onnx.Known(3), onnx.Symbol("time")}})
	y := b.Op("Conv", []onnx.Value{x, b.Initializer("conv.weight", random(4, 3, 2)), b.Initializer("conv.bias", random(4))})
	y = b.Op("BatchNormalization", []onnx.Value{y, b.Initializer("norm.weight", random(4)), b.Initializer("norm.bias", random(4)), b.Initializer("norm.mean", random(4)), b.Initializer("norm.var", positive)})
	y = b.Op("Tanh", []onnx.Value{y})
	y = b.Op("Squeeze", []onnx.Value{b.Op("GlobalAveragePool", []onnx.Value{y}), b.Ints(2)})
	z := b.Rename(b.Op("Gemm", []onnx.Value{y, b.Initializer("fc.weight", random(4, 5)), b.Initializer("fc.bias", random(5))}), "embedding")
	b.Output(z, onnx.TensorType{DType: tensor.Float32, Ranked: true, Dims: []onnx.Dim{batch, onnx.Known(5)}})
	m, err := b.Model()
	if err != nil {
		panic(err)
	}
	return m
}

func writeModel(t *testing.T, m *onnx.Model) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "my.onnx")
	if err := onnx.Save(path, m, onnx.SaveOptions{}); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestFile(t *testing.T) {
	n := 0
	// An older opset is upgraded, a newer one upgrades the network.
	for _, opset := range []int{13, 18, 21} {
		c := encoder.FileDefaults()
		c.Path, c.Layout = writeModel(t, userModel(opset, onnx.Symbol("N"))), "channels_first"
		e, err := encoder.NewFile(c)
		if err != nil {
			t.Fatal(err)
		}
		r := encodertest.Run(t, encodertest.Suite{Encoder: e, Engines: testengines.All(t), Shapes: [][]int{{6, 3}, {6, 2, 3}}})
		if r.Assets == 0 || r.Moments != 0 {
			t.Errorf("opset %d: %+v", opset, r)
		}
		n++
	}
	if n != 3 {
		t.Errorf("%d opsets", n)
	}
}

// TestEqualsTheFile compares the spliced encoder with the file itself.
func TestEqualsTheFile(t *testing.T) {
	m := userModel(18, onnx.Symbol("N"))
	c := encoder.FileDefaults()
	c.Path, c.Layout = writeModel(t, m), "channels_first"
	c.Freeze = []string{"conv.*"}
	e, err := encoder.NewFile(c)
	if err != nil {
		t.Fatal(err)
	}
	g := layer.New("policy", rng.New(1), layer.Options{})
	x := g.Observation("x", 6, 3)
	z, err := e.Build(g.In("encoder"), x)
	if err != nil {
		t.Fatal(err)
	}
	g.Output("z", g.Linear("head", z, 2, layer.Orthogonal(1)))
	g.Output("embedding", z)
	net, values, err := g.Network(models.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var roles []string
	for _, s := range net.Specs {
		roles = append(roles, s.Name+" "+s.Role.String())
	}
	want := []string{"encoder.conv.weight frozen", "encoder.conv.bias frozen", "encoder.norm.weight trainable", "encoder.norm.bias trainable", "encoder.norm.mean buffer", "encoder.norm.var buffer",
		"encoder.fc.weight trainable", "encoder.fc.bias trainable", "head.weight trainable", "head.bias trainable"}
	if !slices.Equal(roles, want) {
		t.Errorf("parameters %q, want %q", roles, want)
	}
	baked, err := net.Bake(func(name string) *tensor.Tensor { return values[name] })
	if err != nil {
		t.Fatal(err)
	}
	// An encoder that is exported and read again finds the same parameters.
	again, _, err := models.FromModel(baked, models.Options{})
	if err != nil || len(again.Specs) != len(net.Specs) {
		t.Errorf("%d parameters after export, %d before: %v", len(again.Specs), len(net.Specs), err)
	}
	obs := tensor.New(tensor.Float32, 4, 6, 3)
	rng.New(9).Stream().FillNormal32(obs.Float32s(), 0, 1)
	turned := tensor.New(tensor.Float32, 4, 3, 6)
	for b := range 4 {
		for i := range 6 {
			for f := range 3 {
				turned.Float32s()[(b*3+f)*6+i] = obs.Float32s()[(b*6+i)*3+f]
			}
		}
	}
	n := 0
	for _, c := range testengines.All(t) {
		got, err := gradcheck.Run(t.Context(), c, baked, map[string]*tensor.Tensor{"x": obs})
		if err != nil {
			t.Fatal(err)
		}
		want, err := gradcheck.Run(t.Context(), c, m, map[string]*tensor.Tensor{"series": turned})
		if err != nil {
			t.Fatal(err)
		}
		for i, v := range got["embedding"].Float32s() {
			if d := v - want["embedding"].Float32s()[i]; d > 1e-5 || d < -1e-5 {
				t.Errorf("%s: element %d is %v, the file gives %v", c.Name(), i, v, want["embedding"].Float32s()[i])
			}
			n++
		}
	}
	if n != 20*len(testengines.All(t)) {
		t.Errorf("%d comparisons", n)
	}
}

// TestFileTwice splices one file twice, and once more with the same weights.
func TestFileTwice(t *testing.T) {
	c := encoder.FileDefaults()
	c.Path, c.Layout = writeModel(t, userModel(18, onnx.Symbol("N"))), "channels_first"
	e, err := encoder.NewFile(c)
	if err != nil {
		t.Fatal(err)
	}
	g := layer.New("twins", rng.New(1), layer.Options{})
	x := g.Observation("x", 6, 3)
	for i, scope := range []*layer.Graph{g.In("a"), g.In("b"), g.In("a").Again()} {
		z, err := e.Build(scope, x)
		if err != nil {
			t.Fatal(err)
		}
		g.Output([]string{"z0", "z1", "z2"}[i], z)
	}
	if n := len(g.Params()); n != 16 {
		t.Errorf("%d parameters, expected two times eight", n)
	}
	m, err := g.Model()
	if err != nil {
		t.Fatal(err)
	}
	if err := onnx.Check(m); err != nil {
		t.Error(err)
	}
}

// TestFileInside: the features before a model's last layer are an encoder without that layer.
func TestFileInside(t *testing.T) {
	m := userModel(18, onnx.Symbol("N"))
	last := m.Graph.Node[slices.IndexFunc(m.Graph.Node, func(n *onnx.Node) bool { return n.OpType == "Gemm" })]
	c := encoder.FileDefaults()
	c.Path, c.Layout, c.Output = writeModel(t, m), "channels_first", last.Input[0]
	e, err := encoder.NewFile(c)
	if err != nil {
		t.Fatal(err)
	}
	g := layer.New("inside", rng.New(1), layer.Options{})
	z, err := e.Build(g.In("encoder"), g.Observation("x", 6, 3))
	if err != nil {
		t.Fatal(err)
	}
	if d := g.Extent(z, -1); d != 4 || len(g.Params()) != 6 {
		t.Errorf("%d features and %d parameters, expected 4 and the six that are not the last layer's", d, len(g.Params()))
	}
}

func TestFileDoesNotFit(t *testing.T) {
	n := 0
	expect := func(what string, err error, wants ...string) {
		t.Helper()
		for _, w := range wants {
			if err == nil || !strings.Contains(err.Error(), w) {
				t.Errorf("%s: %v does not mention %q", what, err, w)
			}
			n++
		}
	}
	open := func(m *onnx.Model, change func(c *encoder.FileConfig)) (*encoder.File, error) {
		c := encoder.FileDefaults()
		c.Path = writeModel(t, m)
		if change != nil {
			change(&c)
		}
		return encoder.NewFile(c)
	}
	build := func(m *onnx.Model, change func(c *encoder.FileConfig), obs ...int) error {
		t.Helper()
		e, err := open(m, change)
		if err != nil {
			t.Fatal(err)
		}
		g := layer.New("x", rng.New(1), layer.Options{})
		_, err = e.Build(g.In("encoder"), g.Observation("x", obs...))
		return err
	}
	m := userModel(18, onnx.Symbol("N"))
	expect("features", build(m, nil, 5, 4), "my.onnx", `"series"`, "float32[N,3,time]", "float32[batch,5,4]")
	expect("layout", build(m, nil, 6, 3), "float32[batch,6,3]", "other layout")
	expect("rank", build(m, nil, 3), "float32[N,3,time]", "float32[batch,3]")
	expect("batch", build(userModel(18, onnx.Known(1)), nil, 3, 6), "symbolic", "float32[1,3,time]")
	expect("window too short", build(m, nil, 3, 1), "Conv")
	sequence := func() *onnx.Model {
		b := onnx.NewBuilder("sequence", 18)
		x := b.Input("x", onnx.TensorType{DType: tensor.Float32, Ranked: true, Dims: []onnx.Dim{onnx.Symbol("b"), onnx.Symbol("t"), onnx.Known(3)}})
		y := b.Rename(b.Op("MatMul", []onnx.Value{x, b.Initializer("w", tensor.New(tensor.Float32, 3, 2))}), "y")
		b.Output(y, onnx.TensorType{DType: tensor.Float32})
		b.Output(b.Rename(b.Op("Neg", []onnx.Value{x}), "z"), onnx.TensorType{DType: tensor.Float32})
		m, err := b.Model()
		if err != nil {
			t.Fatal(err)
		}
		return m
	}()
	_, err := open(sequence, nil)
	expect("two outputs", err, "2 outputs (y, z)", "output: …")
	_, err = open(sequence, func(c *encoder.FileConfig) { c.Output = "w" })
	expect("no such output", err, `no output "w"`, "y, z")
	named := func(c *encoder.FileConfig) { c.Output = "y" }
	expect("no pooling", build(sequence, named, 4, 3), `"y"`, "float32[batch,4,2]", "pool: last")
	if err := build(sequence, func(c *encoder.FileConfig) { c.Output, c.Pool = "y", "mean" }, 4, 3); err != nil {
		t.Error(err)
	}
	expect("freeze", build(sequence, func(c *encoder.FileConfig) { c.Output, c.Pool, c.Freeze = "y", "mean", []string{"v*"} }, 4, 3), `"v*"`, "w")
	if n != 20 {
		t.Errorf("%d mentions", n)
	}
}
