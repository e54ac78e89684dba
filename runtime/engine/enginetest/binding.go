package enginetest

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/onnxrl/onnxrl/runtime/engine"
	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

func (s *suite) bindingIsZeroCopy(t *testing.T) {
	e := s.open(t)
	n := net{3, 5, 8, 2}
	session := compile(t, e, n.model(t, onnx.Known(n.batch)), engine.Options{})
	arena, _ := arenaAlloc(t, 1<<16)
	for name, alloc := range map[string]func(tensor.DType, ...int) *tensor.Tensor{"heap": tensor.New, "arena": arena} {
		in, out := n.inputs(5, alloc), alloc(tensor.Float32, n.batch, n.act)
		b, err := session.Bind([]*tensor.Tensor{out}, in)
		if err != nil {
			t.Fatal(err)
		}
		for step := range 3 {
			// Updating weights in place is all that a training step does.
			for _, p := range in {
				for i := range p.Float32s() {
					p.Float32s()[i] += 0.01 * float32(step)
				}
			}
			if err := b.Run(); err != nil {
				t.Fatal(err)
			}
			close32(t, fmt.Sprintf("%s, step %d", name, step), out.Float32s(), n.want(in))
		}
		if err := b.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

func (s *suite) bindingHoldsMemory(t *testing.T) {
	e := s.open(t)
	n := net{2, 3, 4, 2}
	session := compile(t, e, n.model(t, onnx.Known(n.batch)), engine.Options{})
	alloc, arena := arenaAlloc(t, 1<<14)
	in, out := n.inputs(6, alloc), tensor.New(tensor.Float32, n.batch, n.act)
	want := n.want(in)
	b, err := session.Bind([]*tensor.Tensor{out}, in)
	if err != nil {
		t.Fatal(err)
	}
	if err := arena.Close(); !errors.Is(err, tensor.ErrArenaBusy) {
		t.Errorf("close of a bound arena: %v, expected %v", err, tensor.ErrArenaBusy)
	}
	// The binding alone keeps Go memory: nothing else refers to the output, and new
	// garbage would overwrite it.
	keep := out.Float32s()
	out = nil
	for range 3 {
		runtime.GC()
		garbage := make([][]float32, 200)
		for i := range garbage {
			garbage[i] = make([]float32, n.batch*n.act)
		}
		if err := b.Run(); err != nil {
			t.Fatal(err)
		}
		runtime.KeepAlive(garbage)
	}
	close32(t, "logits", keep, want)
	if err := session.Close(); err == nil {
		t.Fatal("a session with an open binding was closed")
	}
	if err := b.Run(); err != nil {
		t.Errorf("run after a refused close: %v", err)
	}
	if err := b.Close(); err != nil {
		t.Error(err)
	}
}

func (s *suite) bindingDoesNotAllocate(t *testing.T) {
	e := s.open(t)
	n := net{1, 17, 64, 6}
	session := compile(t, e, n.model(t, onnx.Known(n.batch)), engine.Options{})
	b, err := session.Bind([]*tensor.Tensor{tensor.New(tensor.Float32, n.batch, n.act)}, n.inputs(7, tensor.New))
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	allocs := testing.AllocsPerRun(200, func() {
		if err := b.Run(); err != nil {
			t.Fatal(err)
		}
	})
	if allocs != 0 {
		t.Errorf("%v allocations per run, expected 0", allocs)
	}
}

func (s *suite) concurrentRuns(t *testing.T) {
	e := s.open(t)
	n := net{4, 5, 16, 3}
	session := compile(t, e, n.model(t, onnx.Symbol("batch")), engine.Options{})
	const routines, runs = 6, 30
	errs := make([]error, routines)
	var wg sync.WaitGroup
	for g := range routines {
		wg.Go(func() {
			in := n.inputs(uint64(g), tensor.New)
			want := n.want(in)
			out := []*tensor.Tensor{tensor.New(tensor.Float32, n.batch, n.act)}
			bound := tensor.New(tensor.Float32, n.batch, n.act)
			b, err := session.Bind([]*tensor.Tensor{bound}, in)
			if err != nil {
				errs[g] = err
				return
			}
			for i := range runs {
				fresh := []*tensor.Tensor{nil}
				ctx, cancel := context.WithCancel(context.Background())
				err := errors.Join(session.Run(ctx, out, in), session.Run(context.Background(), fresh, in), b.Run())
				cancel()
				for _, got := range []*tensor.Tensor{out[0], fresh[0], bound} {
					for j, v := range want {
						if err == nil && (got.Float32s()[j]-v > 1e-5 || v-got.Float32s()[j] > 1e-5) {
							err = fmt.Errorf("run %d: element %d is %v, expected %v", i, j, got.Float32s()[j], v)
						}
					}
				}
				if err != nil {
					errs[g] = err
					break
				}
			}
			errs[g] = errors.Join(errs[g], b.Close())
		})
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Error(err)
	}
}

// endless is a loop of more turns than anybody waits for.
func endless(t *testing.T) *onnx.Model {
	t.Helper()
	body := &onnx.Graph{
		Name: "body",
		Input: []*onnx.ValueInfo{
			onnx.NewValueInfo("turn", onnx.TypeOf(tensor.Int64)), onnx.NewValueInfo("go", onnx.TypeOf(tensor.Bool)),
			onnx.NewValueInfo("state", onnx.TypeOf(tensor.Float32, 4))},
		Node: []*onnx.Node{
			{OpType: "Identity", Input: []string{"go"}, Output: []string{"go_on"}},
			{OpType: "Tanh", Input: []string{"state"}, Output: []string{"next"}}},
		Output: []*onnx.ValueInfo{
			onnx.NewValueInfo("go_on", onnx.TypeOf(tensor.Bool)), onnx.NewValueInfo("next", onnx.TypeOf(tensor.Float32, 4))},
	}
	b := onnx.NewBuilder("endless", opset)
	x := b.Input("x", onnx.TypeOf(tensor.Float32, 4))
	n := b.Input("turns", onnx.TypeOf(tensor.Int64))
	y := b.Op("Loop", []onnx.Value{n, b.Const(tensor.Scalar(true)), x}, onnx.AttrGraph("body", body))
	b.Output(b.Rename(y, "y"), onnx.TypeOf(tensor.Float32, 4))
	return finish(t, b)
}

func (s *suite) cancellation(t *testing.T) {
	e := s.open(t)
	session := compile(t, e, identity(t, onnx.TypeOf(tensor.Float32, 2)), engine.Options{})
	x, y := tensor.Of([]float32{1, 2}, 2), tensor.New(tensor.Float32, 2)
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	if err := session.Run(ended, []*tensor.Tensor{y}, []*tensor.Tensor{x}); !errors.Is(err, context.Canceled) {
		t.Errorf("ended context: %v, expected %v", err, context.Canceled)
	}
	if y.Float32s()[0] != 0 {
		t.Error("a run whose context had ended wrote its output")
	}
	// A context that ends later disturbs nothing.
	later, cancel := context.WithCancel(context.Background())
	if err := session.Run(later, []*tensor.Tensor{y}, []*tensor.Tensor{x}); err != nil {
		t.Error(err)
	}
	cancel()
	if err := session.Run(context.Background(), []*tensor.Tensor{y}, []*tensor.Tensor{x}); err != nil {
		t.Errorf("run after another's context ended: %v", err)
	}
	if !s.Interrupts {
		return
	}
	loop := compile(t, e, endless(t), engine.Options{})
	state := tensor.Of([]float32{1, 2, 3, 4}, 4)
	turns := func(n int64) []*tensor.Tensor { return []*tensor.Tensor{state, tensor.Scalar(n)} }
	for range 3 {
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
		if err := loop.Run(ctx, make([]*tensor.Tensor, 1), turns(1<<50)); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("endless run: %v, expected %v", err, context.DeadlineExceeded)
		}
		cancel()
		// The session, and whatever it reuses, still works.
		live, cancel := context.WithCancel(context.Background())
		if err := loop.Run(live, make([]*tensor.Tensor, 1), turns(2)); err != nil {
			t.Errorf("run after a terminated one: %v", err)
		}
		cancel()
	}
}
