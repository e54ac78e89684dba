package optim

import (
	"fmt"
	"maps"
	"slices"

	"github.com/onnxrl/onnxrl/runtime/pool"
)

// Optimizer updates parameters in place. It is not safe for concurrent use.
type Optimizer interface {
	// Step performs one update of every group's Params from its Grads. Groups
	// are checked first: on an error nothing has changed. The first Step
	// allocates the state; later ones allocate nothing. Gradients are not
	// checked for infinities and NaN, see ClipGlobalNorm and FindNonFinite.
	Step(groups []Group) error

	// Steps returns how many steps have been performed.
	Steps() uint64

	// State returns everything besides Config, groups and parameters that the
	// next step depends on: the step counter under "step" and, once there was a
	// step, one slice per state slot in the layout of the groups. Slots are
	// views, valid until the next Step or SetState, and must not be written.
	State() map[string][]float32

	// SetState copies a state of the same kind of optimiser in. On an error
	// nothing has changed.
	SetState(state map[string][]float32) error
}

// Allocator provides the memory of one state slot: a zeroed slice of n elements
// that stays valid as long as the optimiser, ideally 64-byte aligned.
type Allocator func(slot string, n int) ([]float32, error)

// Option changes how New builds an optimiser.
type Option func(*stepper)

// WithAllocator places the state in memory of the caller's choice, such as an
// off-heap arena. Without it the state is on the Go heap.
func WithAllocator(a Allocator) Option { return func(s *stepper) { s.alloc = a } }

// WithWorkers limits the goroutines of one step; 1 keeps it on the caller's.
// The default, 0, is GOMAXPROCS. Only steps over at least a million parameters
// are split, and the results do not depend on it.
func WithWorkers(n int) Option { return func(s *stepper) { s.workers = n } }

// WithPool lets the workers of p share the steps over 16,384 parameters and
// more; WithWorkers has no effect then. The results do not depend on it. The
// optimiser must not be stepped while the pool does other work.
func WithPool(p *pool.Pool) Option { return func(s *stepper) { s.par.pool = p } }

const (
	maxSlots = 3
	stepKey  = "step"
)

// slots are the state slices of one range, in the order of rule.slotNames.
type slots [maxSlots][]float32

// rule is what distinguishes optimisers. method implements it.
type rule interface {
	slotNames() []string
	// first is what the elements of the first slot begin with.
	first() float32
	// persistent is how many of the slots, from the first, outlive a step; the
	// rest is scratch.
	persistent() int
	// prepare computes the coefficients of step t = 1, 2, … for every group.
	prepare(t uint64, groups []Group)
	// apply updates one range of group i; it runs concurrently on others.
	apply(i int, params, grads []float32, s slots)
	// finish runs once per group, in order, when all ranges are done.
	finish(i int, params []float32, s slots)
}

// method is a rule made of functions over one type of kernel coefficients.
type method[C any] struct {
	slots   []string
	start   float32                                      // first value of the first slot
	scratch int                                          // how many slots, from the last, are scratch
	begin   func(t uint64)                               // optional: per-step scalars
	coef    func(g *Group) C                             // coefficients for one group
	kernel  func(params, grads []float32, s slots, c *C) // fused pass over one range
	after   func(params []float32, s slots, lr float32)  // optional: per group

	coefs []C
	lrs   []float32
}

func (m *method[C]) slotNames() []string { return m.slots }
func (m *method[C]) first() float32      { return m.start }
func (m *method[C]) persistent() int     { return len(m.slots) - m.scratch }

func (m *method[C]) prepare(t uint64, groups []Group) {
	if m.begin != nil {
		m.begin(t)
	}
	m.coefs, m.lrs = m.coefs[:0], m.lrs[:0]
	for i := range groups {
		m.coefs = append(m.coefs, m.coef(&groups[i]))
		m.lrs = append(m.lrs, groups[i].LR)
	}
}

func (m *method[C]) apply(i int, params, grads []float32, s slots) {
	m.kernel(params, grads, s, &m.coefs[i])
}

func (m *method[C]) finish(i int, params []float32, s slots) {
	if m.after != nil {
		m.after(params, s, m.lrs[i])
	}
}

// stepper is the Optimizer of every rule: it owns counter, state and layout.
type stepper struct {
	kind    string
	rule    rule
	alloc   Allocator
	workers int

	t      uint64
	layout layout
	state  [maxSlots][]float32 // nil until the first step
	size   int                 // elements of each slot

	par parallel
}

var _ Optimizer = (*stepper)(nil)

func newStepper(kind string, r rule, opts []Option) *stepper {
	s := &stepper{kind: kind, rule: r}
	for _, o := range opts {
		o(s)
	}
	s.par.owner, s.par.part = s, s.par.share
	return s
}

func (s *stepper) Steps() uint64 { return s.t }

func (s *stepper) Step(groups []Group) error {
	for i := range groups {
		if err := groups[i].check(i); err != nil {
			return fmt.Errorf("%s step: %w", s.kind, err)
		}
	}
	if !s.layout.unchanged(groups) {
		if err := s.bind(groups); err != nil {
			return fmt.Errorf("%s step: %w", s.kind, err)
		}
	}
	s.t++
	s.rule.prepare(s.t, groups)
	if !s.par.run(groups) {
		for i := range groups {
			s.apply(groups, i, 0, len(groups[i].Params))
		}
	}
	for i := range groups {
		sub := s.slots(i, 0, len(groups[i].Params))
		s.rule.finish(i, groups[i].Params, sub)
	}
	return nil
}

// apply updates elements lo to hi of group i.
func (s *stepper) apply(groups []Group, i, lo, hi int) {
	sub := s.slots(i, lo, hi)
	s.rule.apply(i, groups[i].Params[lo:hi], groups[i].Grads[lo:hi], sub)
}

// slots returns the state of elements lo to hi of group i.
func (s *stepper) slots(i, lo, hi int) (sub slots) {
	off := s.layout.spans[i].off
	for k := range s.rule.slotNames() {
		sub[k] = s.state[k][off+lo : off+hi]
	}
	return sub
}

// bind places groups and allocates the state if there is none yet.
func (s *stepper) bind(groups []Group) error {
	l, err := place(groups)
	if err != nil {
		return err
	}
	if s.layout.spans != nil && s.size > 0 && (l.sequential || s.layout.sequential) {
		return fmt.Errorf("groups changed since the last step; only groups with an Offset may, since state is kept by offset")
	}
	switch {
	case s.state[0] == nil:
		if err := s.allocate(l.end); err != nil {
			return err
		}
	case l.end > s.size, l.sequential && l.end != s.size:
		return fmt.Errorf("groups end at element %d, the state at %d", l.end, s.size)
	}
	s.layout = l
	s.par.plan(l)
	return nil
}

// allocate obtains every slot with n elements.
func (s *stepper) allocate(n int) error {
	var state [maxSlots][]float32
	for k, name := range s.rule.slotNames() {
		state[k] = nil
		if s.alloc == nil {
			state[k] = make([]float32, n)
			continue
		}
		x, err := s.alloc(name, n)
		if err != nil {
			return fmt.Errorf("allocate state %q of %d elements: %w", name, n, err)
		}
		if len(x) < n {
			return fmt.Errorf("allocate state %q: got %d elements, want %d", name, len(x), n)
		}
		state[k] = x[:n:n]
	}
	s.state = state
	if len(s.rule.slotNames()) > 0 {
		s.size = n
		s.clear(0)
	}
	return nil
}

// clear gives the elements of slot k the values that they begin with.
func (s *stepper) clear(k int) {
	clear(s.state[k])
	if v := s.rule.first(); k == 0 && v != 0 {
		for i := range s.state[k] {
			s.state[k][i] = v
		}
	}
}

func (s *stepper) State() map[string][]float32 {
	m := map[string][]float32{stepKey: encodeCount(s.t)}
	for k, name := range s.persistentNames() {
		if s.state[k] != nil {
			m[name] = s.state[k]
		}
	}
	return m
}

// persistentNames are the slots that State and SetState deal in.
func (s *stepper) persistentNames() []string {
	return s.rule.slotNames()[:s.rule.persistent()]
}

func (s *stepper) SetState(state map[string][]float32) error {
	names := s.persistentNames()
	fail := func(format string, args ...any) error {
		return fmt.Errorf("set %s state: %w", s.kind, fmt.Errorf(format, args...))
	}
	t, err := decodeCount(state[stepKey])
	if err != nil {
		return fail("%q: %w", stepKey, err)
	}
	n := -1
	for _, name := range slices.Sorted(maps.Keys(state)) {
		if name == stepKey {
			continue
		}
		if !slices.Contains(names, name) {
			return fail("unknown slot %q, want %q", name, names)
		}
		if n >= 0 && len(state[name]) != n {
			return fail("slot %q has %d elements, another %d", name, len(state[name]), n)
		}
		n = len(state[name])
	}
	if have := len(state) - 1; have != len(names) && (have != 0 || t != 0) {
		return fail("%d of the slots %q present", have, names)
	}
	if s.state[0] != nil && n >= 0 && n != s.size {
		return fail("slots of %d elements, want %d", n, s.size)
	}
	if s.state[0] == nil && n >= 0 {
		if err := s.allocate(n); err != nil {
			return fail("%w", err)
		}
	}
	for k, name := range names {
		if src, ok := state[name]; ok {
			copy(s.state[k], src)
		} else {
			s.clear(k)
		}
	}
	s.t = t
	return nil
}

// encodeCount writes t as two exact float32: 24 low bits, then 24 high bits.
func encodeCount(t uint64) []float32 {
	return []float32{float32(t & (1<<24 - 1)), float32(t >> 24)}
}

func decodeCount(x []float32) (uint64, error) {
	if len(x) != 2 {
		return 0, fmt.Errorf("%d elements, want 2", len(x))
	}
	for _, e := range x {
		if !(e >= 0 && e < 1<<24 && float32(uint64(e)) == e) {
			return 0, fmt.Errorf("%v is not a counter", x)
		}
	}
	return uint64(x[0]) | uint64(x[1])<<24, nil
}
