//go:build cgo

package ort_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	onnxruntime "github.com/yalue/onnxruntime_go"

	"github.com/onnxrl/onnxrl/runtime/engine"
	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/ort/floor"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// policy is obs -> logits with two tanh layers of the given width, its weights
// compiled in, as for acting.
func policy(t testing.TB, batch, obs, hidden, act int) *onnx.Model {
	t.Helper()
	b := onnx.NewBuilder("policy", onnx.DefaultOpset)
	x := b.Input("obs", onnx.TypeOf(tensor.Float32, batch, obs))
	weight := func(name string, shape ...int) onnx.Value {
		w := tensor.New(tensor.Float32, shape...)
		for i := range w.Float32s() {
			w.Float32s()[i] = float32(i%17-8) / 64
		}
		return b.Initializer(name, w)
	}
	for i, d := range [][2]int{{obs, hidden}, {hidden, hidden}, {hidden, act}} {
		x = b.Op("Gemm", []onnx.Value{x, weight(fmt.Sprintf("w%d", i), d[0], d[1]), weight(fmt.Sprintf("b%d", i), d[1])})
		if i < 2 {
			x = b.Op("Tanh", []onnx.Value{x})
		}
	}
	b.Output(b.Rename(x, "logits"), onnx.TypeOf(tensor.Float32, batch, act))
	m, err := b.Model()
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func benchBinding(b *testing.B, hidden int) (engine.Binding, engine.Session, []*tensor.Tensor, []*tensor.Tensor) {
	b.Helper()
	e := open(b)
	s, err := e.Compile(policy(b, 1, 17, hidden, 6), engine.Options{})
	if err != nil {
		b.Fatal(err)
	}
	in, out := []*tensor.Tensor{tensor.New(tensor.Float32, 1, 17)}, []*tensor.Tensor{tensor.New(tensor.Float32, 1, 6)}
	binding, err := s.Bind(out, in)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		for _, c := range []func() error{binding.Close, s.Close, e.Close} {
			if err := c(); err != nil {
				b.Error(err)
			}
		}
	})
	return binding, s, out, in
}

func BenchmarkPolicy(b *testing.B) {
	for _, hidden := range []int{64, 256} {
		b.Run(fmt.Sprintf("2x%d/bound", hidden), func(b *testing.B) {
			binding, _, _, _ := benchBinding(b, hidden)
			b.ReportAllocs()
			for b.Loop() {
				if err := binding.Run(); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(fmt.Sprintf("2x%d/floor", hidden), func(b *testing.B) {
			binding, _, _, _ := benchBinding(b, hidden)
			// Both sides run in turns, so that what else the machine does meets both.
			const runs = 500
			ns := make([]int64, runs)
			var bound, ratio []float64
			for b.Loop() {
				if err := floor.Runs(binding, ns); err != nil {
					b.Fatal(err)
				}
				var low int64
				for _, n := range ns {
					low += n
				}
				start := time.Now()
				for range runs {
					if err := binding.Run(); err != nil {
						b.Fatal(err)
					}
				}
				took := float64(time.Since(start).Nanoseconds())
				bound = append(bound, took/runs)
				ratio = append(ratio, took/float64(low))
			}
			slices.Sort(bound)
			slices.Sort(ratio)
			b.ReportMetric(bound[len(bound)/2], "bound-ns")
			b.ReportMetric(ratio[len(ratio)/2], "bound/floor")
		})
		b.Run(fmt.Sprintf("2x%d/run", hidden), func(b *testing.B) {
			_, s, out, in := benchBinding(b, hidden)
			b.ReportAllocs()
			for b.Loop() {
				if err := s.Run(context.Background(), out, in); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(fmt.Sprintf("2x%d/run-cancellable", hidden), func(b *testing.B) {
			_, s, out, in := benchBinding(b, hidden)
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			b.ReportAllocs()
			for b.Loop() {
				if err := s.Run(ctx, out, in); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkWrapper runs the same model by onnxruntime_go alone, to show what the
// calls of internal/capi cost or save.
func BenchmarkWrapper(b *testing.B) {
	e := open(b) // loads the library
	defer e.Close()
	check := func(err error) {
		b.Helper()
		if err != nil {
			b.Fatal(err)
		}
	}
	model, err := onnx.Marshal(policy(b, 1, 17, 64, 6))
	check(err)
	so, err := onnxruntime.NewSessionOptions()
	check(err)
	defer so.Destroy()
	check(so.SetIntraOpNumThreads(1))
	s, err := onnxruntime.NewDynamicAdvancedSessionWithONNXData(model, []string{"obs"}, []string{"logits"}, so)
	check(err)
	defer s.Destroy()
	x, err := onnxruntime.NewEmptyTensor[float32](onnxruntime.NewShape(1, 17))
	check(err)
	defer x.Destroy()
	y, err := onnxruntime.NewEmptyTensor[float32](onnxruntime.NewShape(1, 6))
	check(err)
	defer y.Destroy()
	binding, err := s.CreateIoBinding()
	check(err)
	defer binding.Destroy()
	check(binding.BindInput("obs", x))
	check(binding.BindOutput("logits", y))
	b.Run("bound", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			check(s.RunWithBinding(binding))
		}
	})
	b.Run("run", func(b *testing.B) {
		b.ReportAllocs()
		in, out := []onnxruntime.Value{x}, []onnxruntime.Value{y}
		for b.Loop() {
			check(s.Run(in, out))
		}
	})
}

func BenchmarkCompile(b *testing.B) {
	e := open(b)
	defer e.Close()
	m := policy(b, 1, 17, 64, 6)
	for b.Loop() {
		s, err := e.Compile(m, engine.Options{})
		if err != nil {
			b.Fatal(err)
		}
		if err := s.Close(); err != nil {
			b.Fatal(err)
		}
	}
}
