package corebench

import (
	"embed"
	"fmt"
	"math"

	"github.com/onnxrl/onnxrl/models/encoder"
	"github.com/onnxrl/onnxrl/models/layer"
	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/rng"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// fixtures are models exported from PyTorch.
//
//go:embed fixtures/*.onnx
var fixtures embed.FS

func fixtureBytes(name string) ([]byte, error) {
	return fixtures.ReadFile("fixtures/" + name + ".onnx")
}

// fixture decodes a PyTorch export; its batch is fixed.
func fixture(name string) func() (*onnx.Model, error) {
	return func() (*onnx.Model, error) {
		b, err := fixtureBytes(name)
		if err != nil {
			return nil, err
		}
		return onnx.Unmarshal(b)
	}
}

// net builds networks in the form that PyTorch's exporter gives them, with the symbolic batch
// "batch", input "x" and output "y". Weights are uniform in ±1/√fan-in, drawn from a fixed seed.
type net struct {
	*onnx.Builder
	stream *rng.Stream
}

const batchSymbol = "batch"

func newNet(name string) *net {
	return &net{onnx.NewBuilder(name, 17), rng.New(1).Split(name).Stream()}
}

func batched(shape ...int) onnx.TensorType {
	return onnx.TensorType{DType: tensor.Float32, Ranked: true, Dims: append([]onnx.Dim{onnx.Symbol(batchSymbol)}, onnx.TypeOf(tensor.Float32, shape...).Dims...)}
}

func (n *net) finish(y onnx.Value, shape ...int) (*onnx.Model, error) {
	n.Output(n.Rename(y, "y"), batched(shape...))
	return n.Model()
}

func (n *net) parameter(name string, fanIn int, shape ...int) onnx.Value {
	t := tensor.New(tensor.Float32, shape...)
	bound := 1 / math.Sqrt(float64(fanIn))
	n.stream.FillUniform32(t.Float32s(), float32(-bound), float32(bound))
	return n.Initializer(name, t)
}

func (n *net) op(op string, in ...onnx.Value) onnx.Value { return n.Op(op, in) }

// linear is y = x·Wᵀ + b on matrices.
func (n *net) linear(name string, x onnx.Value, in, out int) onnx.Value {
	w, b := n.parameter(name+".weight", in, out, in), n.parameter(name+".bias", in, out)
	return n.Op("Gemm", []onnx.Value{x, w, b}, onnx.AttrInt("transB", 1))
}

// project is linear on the last axis of a tensor of rank 3.
func (n *net) project(name string, x onnx.Value, in, out int) onnx.Value {
	w, b := n.parameter(name+".weight", in, out, in), n.parameter(name+".bias", in, out)
	wt := n.Op("Transpose", []onnx.Value{w}, onnx.AttrInts("perm", 1, 0))
	return n.op("Add", b, n.op("MatMul", x, wt))
}

func (n *net) conv(name string, x onnx.Value, in, out, kernel, dilation int) onnx.Value {
	w, b := n.parameter(name+".weight", in*kernel, out, in, kernel), n.parameter(name+".bias", in*kernel, out)
	pad := dilation * (kernel - 1) / 2
	return n.Op("Conv", []onnx.Value{x, w, b}, onnx.AttrInts("dilations", dilation), onnx.AttrInt("group", 1), onnx.AttrInts("kernel_shape", kernel),
		onnx.AttrInts("pads", pad, pad), onnx.AttrInts("strides", 1))
}

// mlp has hidden layers of the given widths.
func mlp(name, activation string, sizes ...int) func() (*onnx.Model, error) {
	return func() (*onnx.Model, error) {
		n := newNet(name)
		x := n.Input("x", batched(sizes[0]))
		last := len(sizes) - 2
		for i := range last + 1 {
			x = n.linear(fmt.Sprintf("fc%d", i+1), x, sizes[i], sizes[i+1])
			if i < last {
				x = n.op(activation, x)
			}
		}
		return n.finish(x, sizes[last+1])
	}
}

// timeCNN is the architecture of the fixture timecnn_glu at the size of a market window: 8 features
// over 60 bars, 32 channels after each gate.
func timeCNN() (*onnx.Model, error) {
	const features, bars, ch = 8, 60, 32
	n := newNet("timecnn")
	gate := func(x onnx.Value) onnx.Value {
		s := n.OpN("Split", "", 2, []onnx.Value{x}, onnx.AttrInt("axis", 1))
		return n.op("Mul", s[0], n.op("Sigmoid", s[1]))
	}
	h := gate(n.conv("c1", n.Input("x", batched(features, bars)), features, 2*ch, 3, 1))
	h = gate(n.conv("c2", h, ch, 2*ch, 5, 1))
	h = n.op("Relu", n.conv("c3", h, ch, 2*ch, 3, 2))
	over, drop := onnx.AttrInts("axes", -1), onnx.AttrInt("keepdims", 0)
	pooled := n.Op("Concat", []onnx.Value{n.Op("ReduceMean", []onnx.Value{h}, over, drop), n.Op("ReduceMax", []onnx.Value{h}, over, drop)}, onnx.AttrInt("axis", 1))
	return n.finish(n.linear("o", pooled, 4*ch, 3), 3)
}

// preNormBlock is one pre-norm transformer block, as the fixture encoder_attention has it, over windows
// of 32 bars: width 64, four heads, read out at the last bar.
func preNormBlock() (*onnx.Model, error) {
	const features, bars, width, heads, hidden = 16, 32, 64, 4, 128
	n := newNet("encoder")
	norm := func(name string, x onnx.Value) onnx.Value {
		ones := tensor.New(tensor.Float32, width)
		for i := range ones.Float32s() {
			ones.Float32s()[i] = 1
		}
		return n.Op("LayerNormalization", []onnx.Value{x, n.Initializer(name+".weight", ones), n.Initializer(name+".bias", tensor.New(tensor.Float32, width))},
			onnx.AttrInt("axis", -1), onnx.AttrFloat("epsilon", 1e-5))
	}
	split := func(x onnx.Value, perm ...int) onnx.Value {
		return n.Op("Transpose", []onnx.Value{n.op("Reshape", x, n.Ints(0, 0, heads, width/heads))}, onnx.AttrInts("perm", perm...))
	}
	h := n.project("emb", n.Input("x", batched(bars, features)), features, width)
	a := norm("n1", h)
	q := split(n.project("q", a, width, width), 0, 2, 1, 3)
	k := split(n.project("k", a, width, width), 0, 2, 3, 1)
	v := split(n.project("v", a, width, width), 0, 2, 1, 3)
	weights := n.Op("Softmax", []onnx.Value{n.op("Div", n.op("MatMul", q, k), n.Float(float32(math.Sqrt(width/heads))))}, onnx.AttrInt("axis", -1))
	mixed := n.Op("Transpose", []onnx.Value{n.op("MatMul", weights, v)}, onnx.AttrInts("perm", 0, 2, 1, 3))
	h = n.op("Add", h, n.project("o", n.op("Reshape", mixed, n.Ints(0, 0, width)), width, width))
	f := n.project("f1", norm("n2", h), width, hidden)
	// GELU with the error function, as exporters of opset 17 write it.
	f = n.op("Mul", n.op("Mul", f, n.op("Add", n.op("Erf", n.op("Div", f, n.Float(math.Sqrt2))), n.Float(1))), n.Float(0.5))
	h = n.op("Add", h, n.project("f2", f, hidden, width))
	last := n.Op("Gather", []onnx.Value{h, n.Int(bars - 1)}, onnx.AttrInt("axis", 1))
	return n.finish(n.linear("head", last, width, 4), 4)
}

// timesNet is the program's own, of a block of width 32, over windows of 20 bars of 30 features,
// with a linear layer behind it.
func timesNet(choice string) func() (*onnx.Model, error) {
	return func() (*onnx.Model, error) {
		c := encoder.TimesNetDefaults()
		if c.DModel, c.DFF, c.NLayers, c.PeriodChoice = 32, 32, 1, choice; choice == encoder.PeriodsFrozen {
			c.Periods = []int{20, 10, 6, 5, 4}
		}
		e, err := encoder.NewTimesNet(c)
		if err != nil {
			return nil, err
		}
		g := layer.New("timesnet", rng.New(1), layer.Options{})
		z, err := e.Build(g, g.Observation("x", 20, 30))
		if err != nil {
			return nil, err
		}
		g.Output("y", g.In("head").Linear("last", z, 4, layer.Kaiming(1)))
		return g.Model()
	}
}
