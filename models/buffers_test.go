package models

import (
	"math"
	"slices"
	"testing"

	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/sorted"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

func computed(f func(r, c int) float64, shape ...int) *tensor.Tensor {
	t := tensor.New(tensor.Float32, shape...)
	columns := shape[len(shape)-1]
	for i := range t.Float32s() {
		t.Float32s()[i] = float32(f(i/columns, i%columns))
	}
	return t
}

// angle is that of Vaswani's position table with eight columns.
func angle(r, c int) float64 { return float64(r) / math.Pow(10000, float64(c)/8) }

// TestBuffersAreTold: tables that a network's code computes are not trained; tensors that differ
// from them in one element are, and so is everything at a product.
func TestBuffersAreTold(t *testing.T) {
	interleaved := func(r, c int) float64 {
		if c%2 == 0 {
			return math.Sin(angle(r, c))
		}
		return math.Cos(angle(r, c-1))
	}
	halves := func(r, c int) float64 {
		if c < 4 {
			return math.Sin(angle(r, 2*c))
		}
		return math.Cos(angle(r, 2*c-8))
	}
	cases := []struct {
		name    string
		content *tensor.Tensor
	}{
		{"sines and cosines", computed(interleaved, 6, 8)},
		{"a long table", computed(interleaved, 1, 5000, 8)},
		{"halves", computed(halves, 4, 8)},
		{"rotary cosines", computed(func(r, c int) float64 { return math.Cos(angle(r, c%4)) }, 1, 1, 16, 8)},
		{"rotary sines of each head", computed(func(r, c int) float64 { return math.Sin(angle(r%16, c%4)) }, 2, 16, 8)},
		{"frequencies", computed(func(_, c int) float64 { return math.Pow(10000, -float64(c)/8) }, 8)},
		{"slopes", computed(func(_, c int) float64 { return math.Pow(2, -float64(c+1)) }, 8)},
		{"positions", computed(func(_, c int) float64 { return float64(c) }, 1, 16)},
		{"atoms", computed(func(_, c int) float64 { return -10 + 20*float64(c)/50 }, 51)},
		{"causal mask", computed(func(r, c int) float64 { return float64(min(1, max(0, r-c+1))) }, 1, 1, 6, 6)},
		{"strict mask", computed(func(r, c int) float64 { return float64(min(1, max(0, c-r))) }, 6, 6)},
	}
	network := func(x *tensor.Tensor, product bool) *Network {
		b := onnx.NewBuilder("table", 18)
		in := onnx.TypeOf(tensor.Float32, 1)
		h := b.Input("x", in)
		table := b.Initializer("table", x)
		if product {
			h = b.Op("MatMul", []onnx.Value{table, b.Op("Transpose", []onnx.Value{table})})
		} else {
			h = b.Op("Mul", []onnx.Value{h, b.Op("Unsqueeze", []onnx.Value{table, b.Ints(0)})})
		}
		b.Output(b.Rename(h, "y"), onnx.TypeOf(tensor.Float32))
		m, err := b.Model()
		if err != nil {
			t.Fatal(err)
		}
		m.Graph.Output[0].Type = nil
		net, _, err := FromModel(m, Options{})
		if err != nil {
			t.Fatal(err)
		}
		return net
	}
	told := func(net *Network) bool { return slices.Equal(net.Buffers, []string{"table"}) && len(net.Specs) == 0 }
	for _, c := range cases {
		if !told(network(c.content, false)) {
			t.Errorf("%s: taken for a parameter", c.name)
		}
		if c.content.Rank() == 2 && told(network(c.content, true)) {
			t.Errorf("%s: at a product, taken for a buffer", c.name)
		}
		other := c.content.Clone()
		other.Float32s()[other.Len()/2] += 0.25
		if c.name != "a long table" && told(network(other, false)) {
			t.Errorf("%s with another element: taken for a buffer", c.name)
		}
	}
	if len(cases) != 11 {
		t.Errorf("%d cases", len(cases))
	}
	for name, x := range sorted.All(map[string]*tensor.Tensor{
		"zeros": tensor.New(tensor.Float32, 6, 8), "ones": computed(func(int, int) float64 { return 1 }, 6, 8), "a vector of ones": computed(func(int, int) float64 { return 1 }, 8), "noise": floats(6, 8),
		"a short vector": computed(func(_, c int) float64 { return float64(c) }, 3),
	}) {
		if told(network(x, false)) {
			t.Errorf("%s: taken for a buffer", name)
		}
	}
}

// TestExportersWordCounts: what PyTorch's exporter says of an initializer decides.
func TestExportersWordCounts(t *testing.T) {
	b := onnx.NewBuilder("declared", 18)
	h := b.Input("x", onnx.TypeOf(tensor.Float32, 4))
	kinds := map[string]string{"val_3": "PARAMETER", "noise": "BUFFER", "literal": "CONSTANT_TENSOR", "weight": ""}
	for _, name := range []string{"val_3", "noise", "literal", "weight"} {
		h = b.Op("Mul", []onnx.Value{h, b.Initializer(name, floats(4))})
	}
	b.Output(b.Rename(h, "y"), onnx.TypeOf(tensor.Float32, 4))
	m, err := b.Model()
	if err != nil {
		t.Fatal(err)
	}
	for name, kind := range sorted.All(kinds) {
		v := onnx.NewValueInfo(onnx.Value(name), onnx.TypeOf(tensor.Float32, 4))
		if kind != "" {
			v.MetadataProps = []*onnx.StringStringEntryProto{{Key: kindKey, Value: kind}}
		}
		m.Graph.ValueInfo = append(m.Graph.ValueInfo, v)
	}
	net, _, err := FromModel(m, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if len(net.Specs) != 2 || net.Specs[0].Name != "val_3" || net.Specs[1].Name != "weight" || !slices.Equal(net.Buffers, []string{"noise"}) || !slices.Equal(net.Constants, []string{"literal"}) {
		t.Errorf("parameters %v, buffers %q, constants %q", net.Specs, net.Buffers, net.Constants)
	}
}
