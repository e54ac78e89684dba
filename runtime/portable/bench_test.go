package portable_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/onnxrl/onnxrl/runtime/engine"
	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

func random(r *rand.Rand, shape ...int) *tensor.Tensor {
	t := tensor.New(tensor.Float32, shape...)
	for i := range t.Float32s() {
		t.Float32s()[i] = r.Float32() - 0.5
	}
	return t
}

// perceptron is a network with two tanh layers, its parameters baked in.
func perceptron(batch, obs, hidden, act int) *onnx.Model {
	r := rand.New(rand.NewPCG(1, 2))
	b := onnx.NewBuilder("perceptron", onnx.DefaultOpset)
	v := b.Input("x", onnx.TypeOf(tensor.Float32, batch, obs))
	width := []int{obs, hidden, hidden, act}
	for i := range 3 {
		v = b.Op("Gemm", []onnx.Value{v, b.Initializer(fmt.Sprintf("w%d", i), random(r, width[i], width[i+1])), b.Initializer(fmt.Sprintf("b%d", i), random(r, width[i+1]))})
		if i < 2 {
			v = b.Op("Tanh", []onnx.Value{v})
		}
	}
	b.Output(v, onnx.TypeOf(tensor.Float32, batch, act))
	m, err := b.Model()
	if err != nil {
		panic(err)
	}
	return m
}

func benchmarkBound(b *testing.B, m *onnx.Model, threads int, flops float64) {
	s := compileWith(b, m, engine.Options{Threads: threads})
	r := rand.New(rand.NewPCG(5, 6))
	var in, out []*tensor.Tensor
	for _, p := range s.Inputs() {
		in = append(in, random(r, p.Shape...))
	}
	for _, p := range s.Outputs() {
		out = append(out, tensor.New(p.DType, p.Shape...))
	}
	bound, err := s.Bind(out, in)
	if err != nil {
		b.Fatal(err)
	}
	defer bound.Close()
	if err := bound.Run(); err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if err := bound.Run(); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(flops*float64(b.N)/b.Elapsed().Seconds()/1e9, "GFLOP/s")
}

func BenchmarkPolicy(b *testing.B) {
	for _, c := range [][2]int{{1, 64}, {1, 256}, {64, 64}, {256, 256}} {
		batch, hidden := c[0], c[1]
		flops := 2 * float64(batch) * float64(17*hidden+hidden*hidden+hidden*6)
		for _, threads := range []int{1, 2} {
			b.Run(fmt.Sprintf("batch=%d/hidden=%d/threads=%d", batch, hidden, threads), func(b *testing.B) {
				benchmarkBound(b, perceptron(batch, 17, hidden, 6), threads, flops)
			})
		}
	}
}

func BenchmarkProduct(b *testing.B) {
	for _, t := range []string{"nn", "nt", "tn"} {
		for _, threads := range []int{1, 2} {
			b.Run(fmt.Sprintf("%s/threads=%d", t, threads), func(b *testing.B) {
				g := onnx.NewBuilder("product", onnx.DefaultOpset)
				ta, tb := 0, 0
				if t[0] == 't' {
					ta = 1
				}
				if t[1] == 't' {
					tb = 1
				}
				x, y := g.Input("x", onnx.TypeOf(tensor.Float32, 256, 256)), g.Input("y", onnx.TypeOf(tensor.Float32, 256, 256))
				g.Output(g.Op("Gemm", []onnx.Value{x, y}, onnx.AttrInt("transA", ta), onnx.AttrInt("transB", tb)), onnx.TypeOf(tensor.Float32, 256, 256))
				m, err := g.Model()
				if err != nil {
					b.Fatal(err)
				}
				benchmarkBound(b, m, threads, 2*256*256*256)
			})
		}
	}
}
