package serve

import (
	"slices"
	"sync"
	"time"

	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// sequences are those of one model.
type sequences struct {
	mu   sync.Mutex
	open map[sequenceKey]*sequence
	// stop ends the timer that looks for idle ones at the time look; nil where none runs, which is
	// so while none is open.
	stop func() bool
	look time.Time
}

// sequenceKey tells sequences apart: by their identifier, and by the version where requests name
// one.
type sequenceKey struct{ id, version string }

// sequence is the state between the requests of one client. It holds its version until it ends.
type sequence struct {
	key sequenceKey
	v   *version
	// users counts requests in the server, last is when the latest of them was answered. Guarded by
	// sequences.mu.
	users int
	last  time.Time
	// busy says that a step is queued or runs, waiting are those behind it. Guarded by the mutex of
	// the version's queue.
	busy    bool
	waiting []*call
	// ids are what control inputs are given as its identifier, by control.
	ids []*tensor.Tensor
	// state is nil before the first step has been answered; ended says that the last step was an
	// end. Touched by the step that runs only.
	state []*tensor.Tensor
	ended bool
}

// enterSequence finds or begins a request's sequence. It returns with a reference to the version
// that the sequence lives on; the sequence is nil where that has no state.
func (m *model) enterSequence(req *Request, now time.Time) (*sequence, *version, *table, error) {
	key := sequenceKey{req.Sequence.ID, req.Version}
	s := &m.sequences
	s.mu.Lock()
	defer s.mu.Unlock()
	q := s.open[key]
	if q != nil && q.users == 0 && req.Sequence.Start {
		m.drop(q)
		q = nil
	}
	if q != nil {
		q.users++
		q.v.refs.Add(1) // q holds one, so it is not closing
		return q, q.v, m.table.Load(), nil
	}
	v, t, err := m.acquire(req)
	switch {
	case err != nil:
		return nil, nil, nil, err
	case !v.plan.sequential():
		return nil, v, t, nil
	case !req.Sequence.Start:
		v.release()
		return nil, nil, nil, invalid("inference request for sequence %s to model '%s' must specify the START flag on the first request of the sequence: it sets sequence_start; a sequence that has ended or was idle for too long begins again", req.Sequence.ID, m.name)
	}
	ids, err := v.plan.identifiers(req.Sequence.ID)
	if err != nil {
		v.release()
		return nil, nil, nil, err
	}
	if len(s.open) >= t.config.Sequences.Max {
		m.expireLocked(now)
	}
	if len(s.open) >= t.config.Sequences.Max {
		v.release()
		return nil, nil, nil, fail(Overloaded, "the limit of %d open sequences is reached", len(s.open))
	}
	q = &sequence{key: key, v: v, users: 1, ids: ids}
	v.refs.Add(1)
	v.stats.sequences.Add(1)
	if s.open == nil {
		s.open = map[sequenceKey]*sequence{}
	}
	s.open[key] = q
	m.lookIn(v.config.Sequences.Idle, now)
	return q, v, t, nil
}

// leaveSequence ends a request's use of its sequence, and the sequence if it has ended or never
// began.
func (m *model) leaveSequence(q *sequence, now time.Time) {
	m.sequences.mu.Lock()
	defer m.sequences.mu.Unlock()
	q.users--
	q.last = now
	if q.users > 0 {
		return
	}
	q.v.queue.mu.Lock()
	over := !q.busy && (q.ended || q.state == nil) // a step that its caller has left may still run
	q.v.queue.mu.Unlock()
	if over {
		m.drop(q)
	}
}

// drop forgets a sequence. The caller holds sequences.mu.
func (m *model) drop(q *sequence) {
	if m.sequences.open[q.key] == q {
		delete(m.sequences.open, q.key)
		q.v.stats.sequences.Add(-1)
		q.v.release()
	}
}

// expire is called by the timer: it drops the sequences that were idle for too long, and looks
// again when the next one may be.
func (m *model) expire() {
	s := &m.sequences
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stop = nil
	now := m.server.clock.Now()
	if next := m.expireLocked(now); len(s.open) > 0 {
		m.lookIn(next, now)
	}
}

// lookIn has the timer look for idle sequences after d at the latest. The caller holds
// sequences.mu.
func (m *model) lookIn(d time.Duration, now time.Time) {
	s := &m.sequences
	if s.stop != nil && !now.Add(d).Before(s.look) {
		return
	}
	if s.stop != nil {
		s.stop()
	}
	s.look, s.stop = now.Add(d), m.server.clock.AfterFunc(d, m.expire)
}

// expireLocked drops what was idle for too long, and returns when to look again. That is at least
// a sixteenth of the time that sequences may be idle later, so that many that end one after
// another are not a timer each.
func (m *model) expireLocked(now time.Time) (next time.Duration) {
	for _, q := range m.sequences.open {
		idle := q.v.config.Sequences.Idle
		left := idle
		if q.users == 0 {
			if left -= now.Sub(q.last); left <= 0 {
				m.drop(q)
				continue
			}
		}
		if left = max(left, idle/16); next == 0 || left < next {
			next = left
		}
	}
	return next
}

// end drops all sequences that nobody waits for, where a model is unloaded or the server closes.
func (m *model) end() {
	s := &m.sequences
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, q := range s.open {
		if q.users == 0 {
			m.drop(q)
		}
	}
	if len(s.open) == 0 && s.stop != nil {
		s.stop()
		s.stop = nil
	}
}

// advance keeps the state that a step has given. A step that fails or whose caller has left does
// not get here and leaves the state as it was.
func (q *sequence) advance(p *plan, out []*tensor.Tensor, row int, end bool) error {
	next := q.state
	if next == nil {
		next = make([]*tensor.Tensor, len(p.state))
	}
	for k, slot := range p.state {
		from := out[slot.out]
		if next[k] == nil || !slices.Equal(next[k].Shape()[btoi(p.batch):], from.Shape()[btoi(p.batch):]) {
			shape := slices.Clone(from.Shape())
			if p.batch {
				shape[0] = 1
			}
			next[k] = tensor.New(from.DType(), shape...)
		}
		if err := copyRows(next[k], 0, from, row, 1, p.batch); err != nil {
			return fail(Internal, "state %q: %w", p.out[slot.out].Name, err)
		}
	}
	q.state, q.ended = next, end
	return nil
}
