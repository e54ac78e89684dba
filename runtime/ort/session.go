//go:build cgo

package ort

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"

	onnxruntime "github.com/yalue/onnxruntime_go"

	"github.com/onnxrl/onnxrl/runtime/engine"
	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/onnx/shape"
	"github.com/onnxrl/onnxrl/runtime/ort/internal/capi"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

var _ engine.Session = (*session)(nil)

type session struct {
	compiler *compiler
	native   *onnxruntime.DynamicAdvancedSession
	handle   capi.Handle
	memory   capi.Handle
	flush    bool

	in, out           []engine.Port
	inNames, outNames capi.Names
	found             []finding // for runError
	extents           *extents  // nil where all extents are known

	// Runs and Bind hold mu for reading, Close for writing: the session outlives
	// every run.
	mu       sync.RWMutex
	closed   bool
	bindings atomic.Int64

	calls sync.Pool // of *call

	idleMu sync.Mutex
	idle   []*onnxruntime.RunOptions
}

// call is the memory of one run, reused by later ones.
type call struct {
	capi.Call
	holder
	fresh []*tensor.Tensor // outputs that take the place of nil ones
	owned []capi.Handle    // values of strings
}

func (s *session) Inputs() []engine.Port  { return s.in }
func (s *session) Outputs() []engine.Port { return s.out }

// describe asks ONNX Runtime for the types of inputs and outputs, which it infers
// where the model does not declare them. declared is the graph as it was given, m the
// model that was compiled ([makeOutputs]), whose types env has.
func (s *session) describe(m *onnx.Model, declared *onnx.Graph, env *shape.Env) error {
	var err error
	if s.in, err = s.ports(declared.Inputs(), false); err != nil {
		return err
	}
	if s.out, err = s.ports(declared.Output, true); err != nil {
		return err
	}
	s.extents = newExtents(m, env, s.in)
	s.inNames, s.outNames = capi.NewNames(valueNames(declared.Inputs())), capi.NewNames(valueNames(m.Graph.Output))
	return nil
}

func valueNames(values []*onnx.ValueInfo) []string {
	names := make([]string, len(values))
	for i, v := range values {
		names[i] = v.Name
	}
	return names
}

func (s *session) ports(declared []*onnx.ValueInfo, output bool) ([]engine.Port, error) {
	n, err := capi.PortCount(s.handle, output)
	if err != nil {
		return nil, err
	}
	if n != len(declared) {
		return nil, fmt.Errorf("ONNX Runtime sees %d inputs or outputs where the model declares %d", n, len(declared))
	}
	ports := make([]engine.Port, n)
	for i, v := range declared {
		p, err := capi.PortAt(s.handle, output, i)
		if err != nil {
			return nil, fmt.Errorf("value %q: %w", v.GetName(), err)
		}
		d, ok := dtypeOf(p.DType)
		if !p.IsTensor || !ok {
			return nil, &engine.UnsupportedError{Engine: Name, Node: fmt.Sprintf("value %q", v.GetName()),
				Reason: "inputs and outputs must be tensors of a known element type"}
		}
		ports[i] = engine.Port{Name: v.GetName(), DType: d}
		if t, ok := v.TensorType(); len(p.Dims) == 0 && (!ok || !t.Ranked) {
			continue // of unknown rank
		}
		ports[i].Shape = make([]int, len(p.Dims))
		for j, extent := range p.Dims {
			ports[i].Shape[j] = int(extent)
		}
	}
	return ports, nil
}

func (s *session) Run(ctx context.Context, out, in []*tensor.Tensor) error {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.closed {
		return fmt.Errorf("run session: %w", engine.ErrClosed)
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	c, _ := s.calls.Get().(*call)
	if c == nil {
		c = &call{}
	}
	defer s.recycle(c)
	if err := s.prepare(c, out, in); err != nil {
		return fmt.Errorf("run session: %w", err)
	}
	err := s.execute(ctx, c)
	c.guards.leave()
	if err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return runError(err, s.found)
	}
	if err := s.collect(c, out, len(in)); err != nil {
		return fmt.Errorf("run session: %w", err)
	}
	return nil
}

// recycle frees what the run held, and keeps the call's memory.
func (s *session) recycle(c *call) {
	for _, v := range c.owned {
		capi.Release(v)
	}
	c.owned = c.owned[:0]
	clear(c.fresh)
	c.fresh = c.fresh[:0]
	c.holder.release()
	c.Reset()
	s.calls.Put(c)
}

// prepare fills c with the tensors of one run.
func (s *session) prepare(c *call, out, in []*tensor.Tensor) error {
	if err := s.count(out, in); err != nil {
		return err
	}
	for i, t := range in {
		if err := s.in[i].Accepts(t); err != nil {
			return err
		}
		if err := s.addInput(c, s.in[i], t); err != nil {
			return err
		}
	}
	if err := s.extents.accept(in); err != nil {
		return err
	}
	for i, t := range out {
		port := s.out[i]
		if t != nil {
			if err := port.Accepts(t); err != nil {
				return err
			}
		} else if preallocated(port) {
			t = tensor.New(port.DType, port.Shape...)
		}
		c.fresh = append(c.fresh, t)
		if t == nil || port.DType == tensor.String {
			c.AddAllocated()
			continue
		}
		if err := c.add(port, t, true); err != nil {
			return err
		}
	}
	return nil
}

func (s *session) count(out, in []*tensor.Tensor) error {
	if len(in) != len(s.in) || len(out) != len(s.out) {
		return fmt.Errorf("got %d inputs and %d outputs, expected %d and %d", len(in), len(out), len(s.in), len(s.out))
	}
	return nil
}

// maxPreallocated is the most elements of an output that is allocated before the run; ONNX Runtime
// allocates larger ones, and fails where there is no memory. Go would end the process.
const maxPreallocated = 1 << 26

// preallocated reports whether an output's shape is known and moderate.
func preallocated(p engine.Port) bool {
	if p.Shape == nil {
		return false
	}
	n := 1
	for _, d := range p.Shape {
		if d < 0 || d > maxPreallocated {
			return false
		}
		if n *= d; n > maxPreallocated {
			return false
		}
	}
	return true
}

func (s *session) addInput(c *call, port engine.Port, t *tensor.Tensor) error {
	if t.DType() != tensor.String {
		return c.add(port, t, false)
	}
	v, err := capi.NewStrings(t.Strings(), onnx.Int64s(t.Shape()))
	if err != nil {
		return fmt.Errorf("value %q: %w", port.Name, err)
	}
	c.owned = append(c.owned, v)
	c.AddValue(v)
	return nil
}

func (c *call) add(port engine.Port, t *tensor.Tensor, output bool) error {
	addr, err := c.hold(port, t, output)
	if err != nil {
		return err
	}
	d, _ := elementType(t.DType()) // ports have known types only
	c.Add(addr, len(t.Bytes()), t.Shape(), d)
	return nil
}

// execute runs c, and terminates it when ctx ends. A ctx that never ends costs
// nothing.
func (s *session) execute(ctx context.Context, c *call) error {
	if ctx.Done() == nil {
		return c.Run(s.handle, nil, s.memory, s.inNames, s.outNames, s.flush)
	}
	ro, err := s.runOptions()
	if err != nil {
		return err
	}
	terminated := make(chan error, 1)
	stop := context.AfterFunc(ctx, func() { terminated <- ro.Terminate() })
	err = c.Run(s.handle, runOptionsHandle(ro), s.memory, s.inNames, s.outNames, s.flush)
	if !stop() {
		// The options must not be used again before the other goroutine has let go.
		<-terminated
		if ro.UnsetTerminate() != nil {
			dropRunOptions(ro)
			return err
		}
	}
	s.idleMu.Lock()
	s.idle = append(s.idle, ro)
	s.idleMu.Unlock()
	return err
}

func (s *session) runOptions() (*onnxruntime.RunOptions, error) {
	s.idleMu.Lock()
	if n := len(s.idle); n > 0 {
		ro := s.idle[n-1]
		s.idle = s.idle[:n-1]
		s.idleMu.Unlock()
		return ro, nil
	}
	s.idleMu.Unlock()
	ro, err := onnxruntime.NewRunOptions()
	if err != nil {
		return nil, fmt.Errorf("run options: %w", err)
	}
	live.runOptions.Add(1)
	return ro, nil
}

func dropRunOptions(ro *onnxruntime.RunOptions) {
	_ = ro.Destroy() // fails for nil only
	live.runOptions.Add(-1)
}

// collect hands the outputs of a successful run to the caller. Nothing is handed
// over unless everything is.
func (s *session) collect(c *call, out []*tensor.Tensor, inputs int) (err error) {
	for i, t := range c.fresh {
		v := c.Value(inputs + i)
		if v == nil {
			continue // written in place
		}
		if err == nil {
			c.fresh[i], err = take(v, t)
		}
		capi.Release(v)
	}
	if err == nil {
		copy(out, c.fresh)
	}
	return err
}

// take copies a value that ONNX Runtime allocated into t, or into a new tensor if
// t is nil.
func take(v capi.Handle, t *tensor.Tensor) (*tensor.Tensor, error) {
	n, dims, err := capi.TypeOf(v)
	if err != nil {
		return nil, err
	}
	d, ok := dtypeOf(n)
	if !ok {
		return nil, fmt.Errorf("output of element type %d", n)
	}
	shape := make([]int, len(dims))
	for i, extent := range dims {
		shape[i] = int(extent)
	}
	got := tensor.New(d, shape...)
	if d == tensor.String {
		text, err := capi.Strings(v, got.Len())
		if err != nil {
			return nil, err
		}
		copy(got.Strings(), text)
	} else {
		data, err := capi.Bytes(v, len(got.Bytes()))
		if err != nil {
			return nil, err
		}
		copy(got.Bytes(), data)
	}
	if t == nil {
		return got, nil
	}
	return t, t.CopyFrom(got)
}

func (s *session) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return fmt.Errorf("close session: %w", engine.ErrClosed)
	}
	if n := s.bindings.Load(); n > 0 {
		return fmt.Errorf("close session: %d bindings are open", n)
	}
	s.closed = true
	err := s.destroy()
	s.compiler.done()
	if err != nil {
		return fmt.Errorf("close session: %w", err)
	}
	return nil
}

// destroy frees everything native.
func (s *session) destroy() error {
	for _, ro := range s.idle {
		dropRunOptions(ro)
	}
	s.idle = nil
	s.inNames.Free()
	s.outNames.Free()
	live.sessions.Add(-1)
	return s.native.Destroy()
}
