package models

import (
	"errors"
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// Segment is a contiguous block of parameters of one role in one arena. Segments are
// reference-counted, because frozen ones are shared between networks.
type Segment struct {
	Role  Role
	specs []Spec
	off   []int
	arena *tensor.Arena
	views []*tensor.Tensor
	size  int
	refs  *atomic.Int64
}

// NewSegment lays out the specs in order, each aligned to 64 bytes, in a new zeroed arena.
func NewSegment(role Role, specs []Spec) (*Segment, error) {
	s := &Segment{Role: role, specs: slices.Clone(specs), refs: new(atomic.Int64)}
	s.refs.Store(1)
	for _, p := range specs {
		s.off = append(s.off, s.size)
		s.size += tensor.AlignUp(4 * p.Len())
	}
	var err error
	if s.arena, err = tensor.NewArena(s.size); err != nil {
		return nil, err
	}
	for i, p := range specs {
		v, err := s.arena.Tensor(tensor.Float32, s.off[i], p.Shape...)
		if err != nil {
			s.arena.Close()
			return nil, fmt.Errorf("parameter %q: %w", p.Name, err)
		}
		s.views = append(s.views, v)
	}
	return s, nil
}

// Like returns a new zeroed segment of the same layout: gradients, optimiser moments or a target
// network.
func (s *Segment) Like() (*Segment, error) { return NewSegment(s.Role, s.specs) }

// Specs lists the parameters in layout order. The caller must not change the list.
func (s *Segment) Specs() []Spec { return s.specs }

// Floats returns the whole segment as one slice, alignment padding included. Padding is zero and
// stays zero under every optimiser, because its gradient is zero.
func (s *Segment) Floats() []float32 { return s.arena.Float32s(0, s.size/4) }

// Range returns where parameter i lies in [Segment.Floats]: offset and length in elements.
func (s *Segment) Range(i int) (off, n int) { return s.off[i] / 4, s.specs[i].Len() }

// View returns parameter i as a tensor over the arena.
func (s *Segment) View(i int) *tensor.Tensor { return s.views[i] }

// SameLayout reports whether two segments hold parameters of the same names and shapes in the same
// order, whatever their roles.
func (s *Segment) SameLayout(t *Segment) bool { return slices.EqualFunc(s.specs, t.specs, Spec.equal) }

// Share returns the same segment with one more holder; each holder closes it once.
func (s *Segment) Share() *Segment {
	s.refs.Add(1)
	return s
}

// Close drops one holder; the last one frees the memory. It fails while an engine's binding still
// holds the arena.
func (s *Segment) Close() error {
	switch n := s.refs.Add(-1); {
	case n > 0:
		return nil
	case n < 0:
		s.refs.Add(1)
		return errors.New("close parameter segment: it is closed")
	}
	if err := s.arena.Close(); err != nil {
		s.refs.Add(1)
		return err
	}
	return nil
}

// Params holds the values of a network's parameters.
type Params struct {
	segments []*Segment
	index    map[string]*tensor.Tensor
	// Configured is the SHA-256 that the base had as the configuration has it, see [BaseSum],
	// before anything else was copied there.
	Configured string

	// shared are segments whose values belong to somebody else as well.
	shared []*Segment
}

// NewParams returns zeroed parameters for a network: one segment per role that occurs, trainable
// first. The values of a role may come from an existing segment, which is then shared and not
// copied: it must hold exactly the network's parameters of that role. Segments that are nil are
// ignored.
func NewParams(net *Network, shared ...*Segment) (*Params, error) {
	p := &Params{index: map[string]*tensor.Tensor{}, shared: slices.DeleteFunc(slices.Clone(shared), func(s *Segment) bool { return s == nil })}
	for _, role := range []Role{Trainable, Frozen, Buffer, Base} {
		var specs []Spec
		for _, s := range net.Specs {
			if s.Role == role {
				specs = append(specs, s)
			}
		}
		if len(specs) == 0 {
			continue
		}
		var seg *Segment
		if i := slices.IndexFunc(p.shared, func(s *Segment) bool { return s.Role == role }); i >= 0 {
			if !slices.EqualFunc(p.shared[i].specs, specs, Spec.equal) {
				p.Close()
				return nil, fmt.Errorf("new parameters: the shared %v segment does not hold exactly the network's %[1]v parameters", role)
			}
			seg = p.shared[i].Share()
		} else {
			var err error
			if seg, err = NewSegment(role, specs); err != nil {
				p.Close()
				return nil, fmt.Errorf("new parameters: %w", err)
			}
		}
		for i, s := range specs {
			p.index[s.Name] = seg.views[i]
		}
		p.segments = append(p.segments, seg)
	}
	return p, nil
}

// Segments lists the segments in order.
func (p *Params) Segments() []*Segment { return p.segments }

// Segment returns the segment of a role, or nil when no parameter has it.
func (p *Params) Segment(r Role) *Segment {
	for _, s := range p.segments {
		if s.Role == r {
			return s
		}
	}
	return nil
}

// View returns a parameter by name as a tensor over its arena, or nil when there is none.
func (p *Params) View(name string) *tensor.Tensor { return p.index[name] }

// Set copies a value into a parameter. It returns an error naming the parameter when there is none
// of that name, when the shape differs, and when the parameter lies in a shared segment. The
// values of that are not this network's to change.
func (p *Params) Set(name string, t *tensor.Tensor) error {
	v := p.index[name]
	switch {
	case v == nil:
		return fmt.Errorf("set parameter %q: the network has none of that name", name)
	case p.isShared(v):
		return fmt.Errorf("set parameter %q: it is shared with other networks", name)
	}
	if err := v.CopyFrom(t); err != nil {
		return fmt.Errorf("set parameter %q: %w", name, err)
	}
	return nil
}

// Shared reports whether a segment's values belong to somebody else as well.
func (p *Params) Shared(s *Segment) bool { return slices.Contains(p.shared, s) }

// isShared reports whether a parameter's values belong to somebody else as well.
func (p *Params) isShared(v *tensor.Tensor) bool {
	return v != nil && slices.ContainsFunc(p.shared, func(s *Segment) bool { return v.Arena() == s.arena })
}

// Load copies all values. Values must name every parameter, and nothing else; those of a shared
// segment may be left out and are not copied.
func (p *Params) Load(values map[string]*tensor.Tensor) error {
	for name, v := range p.index {
		if values[name] == nil && !p.isShared(v) {
			return fmt.Errorf("load parameters: %q has no value", name)
		}
	}
	for name, t := range values {
		if p.isShared(p.index[name]) {
			continue
		}
		if err := p.Set(name, t); err != nil {
			return err
		}
	}
	return nil
}

// CopyFrom copies every segment of q, which must have the same layout. It is how an exploit step or
// a hard target update is done: one copy per segment. Segments that both share are left alone.
func (p *Params) CopyFrom(q *Params) error {
	if len(p.segments) != len(q.segments) {
		return fmt.Errorf("copy parameters: %d segments into %d", len(q.segments), len(p.segments))
	}
	for i, s := range p.segments {
		switch t := q.segments[i]; {
		case s.Role != t.Role || !s.SameLayout(t):
			return fmt.Errorf("copy parameters: segment %d (%v) has another layout", i, s.Role)
		case s != t && slices.Contains(p.shared, s):
			return fmt.Errorf("copy parameters: the %v segment is shared with other networks", s.Role)
		}
	}
	for i, s := range p.segments {
		if t := q.segments[i]; s != t {
			copy(s.Floats(), t.Floats())
		}
	}
	return nil
}

// Close gives up every segment; what nobody else holds is freed. When an engine's binding still
// holds a segment it stays, the error says so, and Close may be called again.
func (p *Params) Close() error {
	var errs []error
	p.segments = slices.DeleteFunc(p.segments, func(s *Segment) bool {
		err := s.Close()
		errs = append(errs, err)
		return err == nil
	})
	return errors.Join(errs...)
}
