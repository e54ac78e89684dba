package engine

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// sharedBytes is the size of models from which each has a session of its own: a session that may
// outlive the model needs a copy of its weights.
const sharedBytes = 1 << 20

// Shared is a compiler that compiles equal models with equal options once: whoever asks for one
// gets the same session, with bindings of its own. It is for agents that come and go with the same
// graphs, such as the members of a population. Models are equal where their bytes are, weights
// included; larger ones than a MiB, and options that name files, are not shared.
type Shared struct {
	Compiler
	keep int

	mu      sync.Mutex
	entries map[[sha256.Size]byte]*entry
	// idle are the sessions that nobody uses, oldest first.
	idle []*entry
}

// entry is one session, used by refs.
type entry struct {
	key     [sha256.Size]byte
	refs    int
	once    sync.Once
	session Session
	err     error
}

// Share returns a compiler over c, which stays the caller's. It keeps at most so many sessions that
// nobody uses, the newest. Its Close closes those, and not c.
func Share(c Compiler, keep int) *Shared {
	return &Shared{Compiler: c, keep: keep, entries: map[[sha256.Size]byte]*entry{}}
}

// Compile implements Compiler.
func (s *Shared) Compile(m *onnx.Model, o Options) (Session, error) {
	n := 0
	for _, t := range m.GetGraph().GetInitializer() {
		n += len(t.RawData)
	}
	if n > sharedBytes || o.Profile != "" || o.Optimized != "" || o.BaseDir != "" {
		return s.Compiler.Compile(m, o)
	}
	text, err := onnx.Marshal(m)
	if err != nil || len(text) > sharedBytes {
		return s.Compiler.Compile(m, o)
	}
	h := sha256.New()
	fmt.Fprintf(h, "%+v\n", o)
	h.Write(text)
	var key [sha256.Size]byte
	h.Sum(key[:0])

	s.mu.Lock()
	e := s.entries[key]
	if e == nil {
		e = &entry{key: key}
		s.entries[key] = e
	}
	e.refs++
	s.idle = slices.DeleteFunc(s.idle, func(x *entry) bool { return x == e })
	s.mu.Unlock()
	e.once.Do(func() {
		// The session may outlive the weights of this model.
		var own *onnx.Model
		if own, e.err = onnx.Unmarshal(text); e.err == nil {
			// Sums of an engine may be added up in another order where weights are not on the
			// boundaries that those of the model are on.
			for _, t := range own.GetGraph().GetInitializer() {
				if len(t.RawData) == 0 {
					continue // Its values are in a field of their type.
				}
				aligned := tensor.New(tensor.Uint8, len(t.RawData)).Bytes()
				copy(aligned, t.RawData)
				t.RawData = aligned
			}
			e.session, e.err = s.Compiler.Compile(own, o)
		}
	})
	if e.err == nil {
		return &sharedSession{Session: e.session, of: s, entry: e}, nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	// The next one tries again.
	if s.entries[key] == e {
		delete(s.entries, key)
	}
	return nil, e.err
}

// release gives up a session, which stays for the next one that asks.
func (s *Shared) release(e *entry) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if e.refs--; e.refs > 0 {
		return nil
	}
	s.idle = append(s.idle, e)
	return s.trim(s.keep)
}

// trim closes the oldest sessions that nobody uses, but for so many.
func (s *Shared) trim(keep int) error {
	var errs []error
	for len(s.idle) > keep {
		delete(s.entries, s.idle[0].key)
		errs = append(errs, s.idle[0].session.Close())
		s.idle = s.idle[1:]
	}
	return errors.Join(errs...)
}

// Close closes the sessions that nobody uses. It is an error, and nothing is closed, while others
// are open.
func (s *Shared) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n := len(s.entries) - len(s.idle); n > 0 {
		return fmt.Errorf("close shared sessions: %d are open", n)
	}
	return s.trim(0)
}

// sharedSession is one user's view of a session.
type sharedSession struct {
	Session
	of    *Shared
	entry *entry

	mu       sync.Mutex
	closed   bool
	bindings int
}

// Run implements Session.
func (s *sharedSession) Run(ctx context.Context, out, in []*tensor.Tensor) error {
	s.mu.Lock()
	closed := s.closed
	s.mu.Unlock()
	if closed {
		return fmt.Errorf("run: %w", ErrClosed)
	}
	return s.Session.Run(ctx, out, in)
}

// Bind implements Session.
func (s *sharedSession) Bind(out, in []*tensor.Tensor) (Binding, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, fmt.Errorf("bind: %w", ErrClosed)
	}
	b, err := s.Session.Bind(out, in)
	if err != nil {
		return nil, err
	}
	s.bindings++
	return &sharedBinding{Binding: b, of: s}, nil
}

// Close implements Session.
func (s *sharedSession) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closed:
		return fmt.Errorf("close session: %w", ErrClosed)
	case s.bindings > 0:
		return fmt.Errorf("close session: %d bindings are open", s.bindings)
	}
	s.closed = true
	return s.of.release(s.entry)
}

type sharedBinding struct {
	Binding
	of     *sharedSession
	closed bool
}

// Close implements Binding.
func (b *sharedBinding) Close() error {
	b.of.mu.Lock()
	defer b.of.mu.Unlock()
	if err := b.Binding.Close(); err != nil || b.closed {
		return err
	}
	b.closed = true
	b.of.bindings--
	return nil
}
