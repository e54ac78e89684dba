//go:build cgo

package ort

import (
	"fmt"
	"slices"

	onnxruntime "github.com/yalue/onnxruntime_go"

	"github.com/onnxrl/onnxrl/runtime/engine"
	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/ort/internal/capi"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

var _ engine.Binding = (*binding)(nil)

// binding is a session on fixed buffers.
type binding struct {
	// The fields that Run touches come first.
	sessionHandle capi.Handle
	handle        capi.Handle
	flush         bool
	closed        bool
	checked       []*tensor.Tensor // inputs whose numbers are checked before each run, mostly nil

	session *session
	native  *onnxruntime.IoBinding
	values  []capi.Handle
	holder  holder
}

func (s *session) Bind(out, in []*tensor.Tensor) (engine.Binding, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.closed {
		return nil, fmt.Errorf("bind session: %w", engine.ErrClosed)
	}
	if err := s.count(out, in); err != nil {
		return nil, fmt.Errorf("bind session: %w", err)
	}
	native, err := s.native.CreateIoBinding()
	if err != nil {
		return nil, fmt.Errorf("bind session: %w", err)
	}
	b := &binding{sessionHandle: s.handle, handle: bindingHandle(native), flush: s.flush, session: s, native: native}
	b.register()
	if err := b.fill(out, in); err != nil {
		b.destroy()
		return nil, fmt.Errorf("bind session: %w", err)
	}
	return b, nil
}

func (b *binding) fill(out, in []*tensor.Tensor) error {
	s := b.session
	for i, t := range in {
		if err := b.bind(s.inNames, i, s.in[i], t, false); err != nil {
			return err
		}
	}
	if err := s.extents.accept(in); err != nil {
		return err
	}
	if s.extents != nil && s.extents.contents {
		b.checked = slices.Clone(in)
	}
	for i, t := range out {
		if err := b.bind(s.outNames, i, s.out[i], t, true); err != nil {
			return err
		}
	}
	return nil
}

func (b *binding) bind(names capi.Names, i int, port engine.Port, t *tensor.Tensor, output bool) error {
	if err := port.Accepts(t); err != nil {
		return err
	}
	if port.DType == tensor.String {
		return fmt.Errorf("value %q: strings have no memory that both sides can share, use Run", port.Name)
	}
	addr, err := b.holder.hold(port, t, output)
	if err != nil {
		return err
	}
	d, _ := elementType(t.DType()) // ports have known types only
	v, err := capi.NewValue(b.session.memory, addr, len(t.Bytes()), onnx.Int64s(t.Shape()), d)
	if err != nil {
		return fmt.Errorf("value %q: %w", port.Name, err)
	}
	b.values = append(b.values, v)
	if err := names.Bind(b.handle, i, v, output); err != nil {
		return fmt.Errorf("value %q: %w", port.Name, err)
	}
	return nil
}

func (b *binding) Run() error {
	if b.closed {
		return fmt.Errorf("run binding: %w", engine.ErrClosed)
	}
	if b.checked != nil {
		if err := b.session.extents.accept(b.checked); err != nil {
			return fmt.Errorf("run binding: %w", err)
		}
	}
	b.holder.guards.enter()
	err := capi.RunBound(b.sessionHandle, b.handle, b.flush)
	b.holder.guards.leave()
	if err != nil {
		return runError(err, b.session.found)
	}
	return nil
}

// Floor runs the binding len(ns) times in a C loop, for sub-package floor, and stores what each
// run took in nanoseconds.
func (b *binding) Floor(ns []int64) error {
	if b.closed {
		return engine.ErrClosed
	}
	b.holder.guards.enter()
	defer b.holder.guards.leave()
	return capi.Floor(b.sessionHandle, b.handle, b.flush, ns)
}

func (b *binding) Close() error {
	if b.closed {
		return fmt.Errorf("close binding: %w", engine.ErrClosed)
	}
	return b.destroy()
}

func (b *binding) destroy() error {
	b.closed = true
	err := b.native.Destroy()
	for _, v := range b.values {
		capi.Release(v)
	}
	b.values = nil
	b.holder.release()
	b.session.bindings.Add(-1)
	bound.mu.Lock()
	delete(bound.open, b)
	bound.mu.Unlock()
	return err
}

func (b *binding) register() {
	b.session.bindings.Add(1)
	bound.mu.Lock()
	defer bound.mu.Unlock()
	if bound.open == nil {
		bound.open = make(map[*binding]struct{})
	}
	bound.open[b] = struct{}{}
}
