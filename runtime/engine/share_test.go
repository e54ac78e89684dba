package engine_test

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/onnxrl/onnxrl/runtime/engine"
	"github.com/onnxrl/onnxrl/runtime/engine/testengines"
	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/rng"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// product is x·w with a weight of its own.
func product(t testing.TB, seed uint64) (*onnx.Model, *tensor.Tensor) {
	t.Helper()
	w := tensor.New(tensor.Float32, 8, 8)
	rng.New(seed).Stream().FillNormal32(w.Float32s(), 0, 1)
	b := onnx.NewBuilder("product", onnx.DefaultOpset)
	x := b.Input("x", onnx.TypeOf(tensor.Float32, 4, 8))
	b.Output(b.Rename(b.Op("MatMul", []onnx.Value{x, b.Initializer("w", w)}), "y"), onnx.TypeOf(tensor.Float32, 4, 8))
	m, err := b.Model()
	if err != nil {
		t.Fatal(err)
	}
	return m, w
}

// compiles counts what an engine compiles.
type compiles struct {
	engine.Compiler
	n int
}

func (c *compiles) Compile(m *onnx.Model, o engine.Options) (engine.Session, error) {
	c.n++
	return c.Compiler.Compile(m, o)
}

func TestShare(t *testing.T) {
	n := 0
	for _, e := range testengines.All(t) {
		count := &compiles{Compiler: e}
		s := engine.Share(count, 1)
		open := func(seed uint64) (engine.Session, *tensor.Tensor) {
			m, w := product(t, seed)
			x, err := s.Compile(m, engine.Options{})
			if err != nil {
				t.Fatal(err)
			}
			return x, w
		}
		first, w := open(1)
		// The session has weights of its own: they may go with the model.
		want := slices.Clone(w.Float32s())
		clear(w.Float32s())
		second, _ := open(1)
		other, _ := open(2)
		if got := count.n; got != 2 {
			t.Errorf("%s: %d models were compiled, expected 2", e.Name(), got)
		}
		m, _ := product(t, 1)
		threads, err := s.Compile(m, engine.Options{Optimize: engine.OptNone})
		if err != nil {
			t.Fatal(err)
		}
		if got := count.n; got != 3 {
			t.Errorf("%s: %d models were compiled with other options, expected 3", e.Name(), got)
		}
		// Bindings of one session run at once.
		var wait sync.WaitGroup
		var problems sync.Map
		for k, x := range []engine.Session{first, second, first, second} {
			wait.Go(func() {
				in, out := tensor.New(tensor.Float32, 4, 8), tensor.New(tensor.Float32, 4, 8)
				b, err := x.Bind([]*tensor.Tensor{out}, []*tensor.Tensor{in})
				for i := 0; i < 200 && err == nil; i++ {
					for j := range in.Float32s() {
						in.Float32s()[j] = 0
					}
					in.Float32s()[(i+k)%8] = float32(i + 1)
					if err = b.Run(); err == nil {
						for j, y := range out.Float32s()[:8] {
							if z := float32(i+1) * want[(i+k)%8*8+j]; y != z {
								err = fmt.Errorf("element %d is %g, expected %g", j, y, z)
							}
						}
					}
				}
				if b != nil {
					err = errors.Join(err, b.Close())
				}
				if err != nil {
					problems.Store(k, err)
				}
			})
		}
		wait.Wait()
		problems.Range(func(k, v any) bool { t.Errorf("%s: binding %v: %v", e.Name(), k, v); return true })
		if err := s.Close(); err == nil {
			t.Errorf("%s: closed while sessions are open", e.Name())
		}
		for _, x := range []engine.Session{first, second, other, threads} {
			if err := x.Close(); err != nil {
				t.Errorf("%s: %v", e.Name(), err)
			}
			if err := x.Close(); !errors.Is(err, engine.ErrClosed) {
				t.Errorf("%s: closed twice: %v", e.Name(), err)
			}
		}
		// The newest is kept, the others are not.
		m, _ = product(t, 1)
		again, err := s.Compile(m, engine.Options{Optimize: engine.OptNone})
		if err != nil {
			t.Fatal(err)
		}
		if got := count.n; got != 3 {
			t.Errorf("%s: %d models were compiled, expected the newest to be there", e.Name(), got)
		}
		last, _ := open(2)
		if got := count.n; got != 4 {
			t.Errorf("%s: %d models were compiled, expected 4", e.Name(), got)
		}
		if err := errors.Join(again.Close(), last.Close(), s.Close()); err != nil {
			t.Errorf("%s: %v", e.Name(), err)
		}
		n++
	}
	if n == 0 {
		t.Error("no engine")
	}
}

// TestShareKeepsTypedFields compiles a model whose weight is in float_data, as some exporters write
// it, and not in raw_data.
func TestShareKeepsTypedFields(t *testing.T) {
	for _, e := range testengines.All(t) {
		m, w := product(t, 1)
		for _, init := range m.GetGraph().GetInitializer() {
			init.RawData, init.FloatData = nil, slices.Clone(w.Float32s())
		}
		s, err := engine.Share(e, 1).Compile(m, engine.Options{})
		if err != nil {
			t.Errorf("%s: %v", e.Name(), err)
			continue
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}
