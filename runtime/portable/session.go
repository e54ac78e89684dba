package portable

import (
	"context"
	"fmt"
	"sync"

	"github.com/onnxrl/onnxrl/runtime/engine"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// session is a compiled model. Each concurrent run takes a frame of its own from a free list.
type session struct {
	prog    *program
	shared  *shared
	in, out []engine.Port

	mu       sync.Mutex
	free     []*frame
	bindings int
	running  int
	closed   bool
}

// maxFreeFrames bounds the frames kept for later runs; their registers are as large as the model's
// intermediate values.
const maxFreeFrames = 8

// Inputs implements engine.Session.
func (s *session) Inputs() []engine.Port { return s.in }

// Outputs implements engine.Session.
func (s *session) Outputs() []engine.Port { return s.out }

func (s *session) acquire() (*frame, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, engine.ErrClosed
	}
	s.running++
	if n := len(s.free); n > 0 {
		f := s.free[n-1]
		s.free = s.free[:n-1]
		return f, nil
	}
	return newFrame(s.prog, s.shared, nil), nil
}

func (s *session) release(f *frame) {
	// The frame must not keep the caller's tensors alive.
	for _, id := range s.prog.inputs {
		f.vals[id] = nil
	}
	for _, id := range s.prog.outputs {
		f.vals[id] = nil
	}
	clear(f.bound)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.running--
	if len(s.free) < maxFreeFrames && !s.closed {
		s.free = append(s.free, f)
	}
}

func (s *session) check(out, in []*tensor.Tensor, bind bool) error {
	if len(in) != len(s.in) || len(out) != len(s.out) {
		return fmt.Errorf("%d inputs and %d outputs given, the model has %d and %d", len(in), len(out), len(s.in), len(s.out))
	}
	for i, p := range s.in {
		if err := accepts(p, in[i]); err != nil {
			return err
		}
	}
	for i, p := range s.out {
		if out[i] == nil && !bind {
			continue
		}
		if err := accepts(p, out[i]); err != nil {
			return err
		}
	}
	return nil
}

// accepts is Port.Accepts for ports whose element type the model may leave out.
func accepts(p engine.Port, t *tensor.Tensor) error {
	if t != nil && p.DType == tensor.Undefined {
		p.DType = t.DType()
	}
	return p.Accepts(t)
}

// Run implements engine.Session.
func (s *session) Run(ctx context.Context, out, in []*tensor.Tensor) error {
	f, err := s.acquire()
	if err != nil {
		return fmt.Errorf("run: %w", err)
	}
	defer s.release(f)
	if err := s.check(out, in, false); err != nil {
		return fmt.Errorf("run: %w", err)
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	for i, id := range s.prog.inputs {
		f.vals[id] = in[i]
	}
	copy(f.bound, out)
	if err := f.run(ctx); err != nil {
		return err
	}
	for i, id := range s.prog.outputs {
		if f.vals[id] == nil {
			return &engine.RunError{Engine: Name, Err: fmt.Errorf("output %q is not a tensor", s.out[i].Name)}
		}
	}
	for i, id := range s.prog.outputs {
		out[i] = f.vals[id]
	}
	return nil
}

// Bind implements engine.Session. The first run sizes the intermediate buffers; later ones allocate
// nothing.
func (s *session) Bind(out, in []*tensor.Tensor) (engine.Binding, error) {
	f, err := s.acquire()
	if err != nil {
		return nil, fmt.Errorf("bind: %w", err)
	}
	if err := s.check(out, in, true); err != nil {
		s.release(f)
		return nil, fmt.Errorf("bind: %w", err)
	}
	b := &binding{s: s, f: f}
	for i, id := range s.prog.inputs {
		f.vals[id] = in[i]
	}
	copy(f.bound, out)
	for _, t := range append(append([]*tensor.Tensor{}, out...), in...) {
		a := t.Arena()
		if a == nil {
			continue
		}
		if err := a.Retain(); err != nil {
			b.unbind()
			return nil, fmt.Errorf("bind: %w", err)
		}
		b.arenas = append(b.arenas, a)
	}
	s.mu.Lock()
	s.bindings++
	s.mu.Unlock()
	return b, nil
}

// Close implements engine.Session.
func (s *session) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closed:
		return fmt.Errorf("close session: %w", engine.ErrClosed)
	case s.bindings > 0:
		return fmt.Errorf("close session: %d bindings are open", s.bindings)
	case s.running > 0:
		return fmt.Errorf("close session: %d runs are in progress", s.running)
	}
	s.closed = true
	s.free = nil
	s.shared.workers.close()
	return nil
}

// binding is a frame whose inputs and outputs stay set.
type binding struct {
	s      *session
	f      *frame
	arenas []*tensor.Arena
	closed bool
}

// Run implements engine.Binding.
func (b *binding) Run() error {
	if b.closed {
		return fmt.Errorf("run: %w", engine.ErrClosed)
	}
	return b.f.run(context.Background())
}

// Close implements engine.Binding.
func (b *binding) Close() error {
	if b.closed {
		return fmt.Errorf("close binding: %w", engine.ErrClosed)
	}
	b.closed = true
	b.unbind()
	b.s.mu.Lock()
	b.s.bindings--
	b.s.mu.Unlock()
	return nil
}

func (b *binding) unbind() {
	for _, a := range b.arenas {
		a.Release()
	}
	b.arenas = nil
	b.s.release(b.f)
}
