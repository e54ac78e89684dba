package serve

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/onnxrl/onnxrl/runtime/engine"
	"github.com/onnxrl/onnxrl/runtime/engine/testengines"
	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// policy is a perceptron with the given hidden widths from 17 observations to 6 actions.
func policy(widths ...int) *onnx.Model {
	r := rand.New(rand.NewPCG(1, 2))
	b := onnx.NewBuilder("policy", onnx.DefaultOpset)
	h, in := b.Input("x", batchOf(tensor.Float32, onnx.Known(17))), 17
	for i, width := range append(widths, 6) {
		w, bias := tensor.New(tensor.Float32, in, width), tensor.New(tensor.Float32, width)
		for k := range w.Float32s() {
			w.Float32s()[k] = float32(r.NormFloat64()) / float32(in)
		}
		h = b.Op("Gemm", []onnx.Value{h, b.Initializer(fmt.Sprintf("w%d", i), w), b.Initializer(fmt.Sprintf("b%d", i), bias)})
		h, in = b.Op("Tanh", []onnx.Value{h}), width
	}
	b.Output(b.Rename(h, "y"), batchOf(tensor.Float32, onnx.Known(6)))
	return built(b)
}

// BenchmarkPaths compares the ways to one row of the 2×64 policy: the bound run itself, a caller, a
// request whose caller cannot leave, and one whose caller can.
func BenchmarkPaths(b *testing.B) {
	for _, e := range testengines.All(b) {
		model := policy(64, 64)
		session, err := e.Compile(model, engine.Options{})
		if err != nil {
			b.Fatal(err)
		}
		x, y := tensor.New(tensor.Float32, 1, 17), tensor.New(tensor.Float32, 1, 6)
		binding, err := session.Bind([]*tensor.Tensor{y}, []*tensor.Tensor{x})
		if err != nil {
			b.Fatal(err)
		}
		s, err := New(Options{Compiler: e}, &shelf{list: []Listing{one("m", Config{}, model), one("drift", Config{Drift: Drift{Limit: 1e6}}, published(policy(64, 64)))}})
		if err != nil {
			b.Fatal(err)
		}
		if err := s.Poll(b.Context()); err != nil {
			b.Fatal(err)
		}
		caller, err := s.Client().Caller("m", "", 1)
		if err != nil {
			b.Fatal(err)
		}
		leaving, cancel := context.WithCancel(context.Background())
		req, watched, resp := &Request{Model: "m", Inputs: []Tensor{{"x", x}}}, &Request{Model: "drift", Inputs: []Tensor{{"x", x}}}, &Response{}
		for _, path := range []struct {
			name string
			run  func() error
		}{
			{"bound", binding.Run},
			{"caller", func() error { return caller.Run(context.Background()) }},
			{"infer", func() error { return s.Infer(context.Background(), req, resp) }},
			{"infer-drift", func() error { return s.Infer(context.Background(), watched, resp) }},
			{"infer-cancellable", func() error { return s.Infer(leaving, req, resp) }},
		} {
			b.Run(e.Name()+"/"+path.name, func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					if err := path.run(); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
		cancel()
		if err := s.Close(context.Background()); err != nil {
			b.Fatal(err)
		}
		if err := binding.Close(); err != nil {
			b.Fatal(err)
		}
		if err := session.Close(); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkConcurrent is the throughput of 64 clients with and without batching, for a model that
// is all overhead and one that is all run.
func BenchmarkConcurrent(b *testing.B) {
	for _, e := range testengines.All(b) {
		for _, m := range []struct {
			name   string
			widths []int
		}{{"2x64", []int{64, 64}}, {"4x1024", []int{1024, 1024, 1024, 1024}}} {
			for _, off := range []bool{true, false} {
				s, err := New(Options{Compiler: e}, &shelf{list: []Listing{one("m", Config{Batching: Batching{Off: off}}, policy(m.widths...))}})
				if err != nil {
					b.Fatal(err)
				}
				if err := s.Poll(b.Context()); err != nil {
					b.Fatal(err)
				}
				b.Run(fmt.Sprintf("%s/%s/batching=%v", e.Name(), m.name, !off), func(b *testing.B) {
					b.ReportAllocs()
					b.SetParallelism(32)
					b.RunParallel(func(pb *testing.PB) {
						ctx, cancel := context.WithCancel(context.Background())
						defer cancel()
						req, resp := &Request{Model: "m", Inputs: []Tensor{{"x", tensor.New(tensor.Float32, 1, 17)}}}, &Response{}
						for pb.Next() {
							if err := s.Infer(ctx, req, resp); err != nil {
								b.Error(err)
								return
							}
						}
					})
				})
				if err := s.Close(context.Background()); err != nil {
					b.Fatal(err)
				}
			}
		}
	}
}
