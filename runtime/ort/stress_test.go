//go:build cgo

package ort_test

import (
	"context"
	"errors"
	"runtime"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/onnxrl/onnxrl/runtime/engine"
	"github.com/onnxrl/onnxrl/runtime/longtest"
	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/ort"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// TestCollector makes, runs and closes sessions in many goroutines while the collector does
// nothing but collect: memory that C still reaches for, or that it hands back with what it held
// before, ends the process or changes a result.
func TestCollector(t *testing.T) {
	quiet(t)
	defer debug.SetGCPercent(debug.SetGCPercent(1))
	stop := make(chan struct{})
	var collector, workers sync.WaitGroup
	var collections atomic.Int64
	collector.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
				runtime.GC()
				collections.Add(1)
			}
		}
	})
	c := open(t)
	var runs, models atomic.Int64
	const goroutines, atLeast = 16, 20
	rounds := longtest.Cases(t, 40, 8)
	for g := range goroutines {
		workers.Go(func() {
			// A busy machine collects less often: the work lasts until it did.
			for i := 0; i < rounds || collections.Load() < atLeast; i++ {
				if err := strainOnce(t.Context(), c, 1+(7*g+i)%40, &runs); err != nil {
					t.Error(err)
					return
				}
				models.Add(1)
			}
		})
	}
	workers.Wait()
	close(stop)
	collector.Wait()
	must(t, c.Close())
	if n, m := runs.Load(), models.Load(); m < goroutines*int64(rounds) || n != 9*m {
		t.Errorf("%d models, %d runs beside %d collections", m, n, collections.Load())
	}
	if l := ort.Live(); l != (ort.Objects{}) {
		t.Errorf("native objects are left: %+v", l)
	}
}

// strainOnce takes a model of n elements through every way in which memory goes to C and back:
// tensors of the Go heap, arenas, outputs that the library allocates, strings, bindings, runs that
// are cancelled.
func strainOnce(ctx context.Context, c engine.Compiler, n int, runs *atomic.Int64) error {
	b := onnx.NewBuilder("strain", onnx.DefaultOpset)
	x := b.Input("x", onnx.TypeOf(tensor.Float32, n))
	w := b.Input("w", onnx.TypeOf(tensor.String, 2))
	b.Output(b.Op("Add", []onnx.Value{x, x}), onnx.TypeOf(tensor.Float32, n))
	b.Output(b.Op("NonZero", []onnx.Value{x}), onnx.TensorType{DType: tensor.Int64})
	b.Output(b.Op("Identity", []onnx.Value{w}), onnx.TypeOf(tensor.String, 2))
	m, err := b.Model()
	if err != nil {
		return err
	}
	s, err := c.Compile(m, engine.Options{})
	if err != nil {
		return err
	}
	words := tensor.OfStrings([]string{"long enough to lie on the heap of C++", ""}, 2)
	for i := range 5 {
		in := tensor.New(tensor.Float32, n)
		for j := range in.Float32s() {
			in.Float32s()[j] = float32(i + j + 1)
		}
		out := make([]*tensor.Tensor, 3)
		if err := s.Run(ctx, out, []*tensor.Tensor{in, words}); err != nil {
			return err
		}
		runs.Add(1)
		if out[0].Float32s()[n-1] != 2*float32(i+n) || out[1].Len() != n || out[2].Strings()[0] != words.Strings()[0] {
			return errors.New("wrong outputs")
		}
	}
	over, cancel := context.WithCancel(ctx)
	cancel()
	if err := s.Run(over, make([]*tensor.Tensor, 3), []*tensor.Tensor{tensor.New(tensor.Float32, n), words}); !errors.Is(err, context.Canceled) {
		return err
	}
	if err := s.Close(); err != nil {
		return err
	}
	return strainBinding(c, n, runs)
}

func strainBinding(c engine.Compiler, n int, runs *atomic.Int64) error {
	b := onnx.NewBuilder("bound", onnx.DefaultOpset)
	x, k := b.Input("x", onnx.TypeOf(tensor.Float32, n)), b.Input("k", onnx.TypeOf(tensor.Float32))
	b.Output(b.Op("Mul", []onnx.Value{x, k}), onnx.TypeOf(tensor.Float32, n))
	m, err := b.Model()
	if err != nil {
		return err
	}
	s, err := c.Compile(m, engine.Options{})
	if err != nil {
		return err
	}
	arena, err := tensor.NewArena(4 * n)
	if err != nil {
		return err
	}
	in, err := arena.Tensor(tensor.Float32, 0, n)
	if err != nil {
		return err
	}
	out, factor := tensor.New(tensor.Float32, n), tensor.Scalar(float32(3))
	bound, err := s.Bind([]*tensor.Tensor{out}, []*tensor.Tensor{in, factor})
	if err != nil {
		return err
	}
	for i := range 4 {
		in.Float32s()[n-1] = float32(i)
		if err := bound.Run(); err != nil {
			return err
		}
		runs.Add(1)
		if out.Float32s()[n-1] != float32(3*i) {
			return errors.New("wrong output of a binding")
		}
	}
	return errors.Join(bound.Close(), s.Close(), arena.Close())
}
