package world

import (
	"fmt"
	"sync/atomic"
	"time"
)

// watch is a goroutine that a table is played on. It is left behind in a call that is given up.
type watch struct {
	// calls is odd while an agent is called, which is seat. Whoever makes it even has the table:
	// the goroutine when the agent comes back, or the one that gives the call up.
	calls atomic.Uint64
	seat  *seat
	done  chan *Question
	// over says that the goroutine has ended.
	over atomic.Bool
}

// begin comes before a call; there is no watch where agents may take as long as they like.
func (w *watch) begin(s *seat) {
	if w != nil {
		w.seat = s
		w.calls.Add(1)
	}
}

// end comes after a call that was the n-th, and reports whether it has not been ended before.
func (w *watch) end(n uint64) bool { return w == nil || w.calls.CompareAndSwap(n, n+1) }

// count is the number of the current call.
func (w *watch) count() uint64 {
	if w == nil {
		return 0
	}
	return w.calls.Load()
}

// watched is Ask with a limit.
func (t *Table) watched() *Question {
	w, last := t.play(), uint64(0)
	tick := time.NewTicker(t.Limit)
	defer tick.Stop()
	for {
		select {
		case q := <-w.done:
			return q
		case <-tick.C:
		}
		call := w.count()
		if call%2 == 1 && call == last && w.end(call) {
			t.giveUp(w)
			w, call = t.play(), 0
		}
		last = call
	}
}

// play goes on to the next question that Ask stops at.
func (t *Table) play() *watch {
	w := &watch{done: make(chan *Question, 1)}
	go func() {
		defer w.over.Store(true)
		for {
			q := t.Next()
			if q.Event < Settled && !t.answer(q, w) {
				return
			}
			if t.stops(q) {
				w.done <- q
				return
			}
		}
	}()
	return w
}

// giveUp goes on without the agent that is called. It keeps a view of the world as it is now.
func (t *Table) giveUp(w *watch) {
	s := w.seat
	s.away = w
	t.fork()
	for i := range t.seats {
		if t.seats[i].away == nil {
			t.seats[i].v.w = t.run
		}
	}
	q := t.Question()
	s.faults.Stalls++
	s.faults.tell(q, t.View(q.Agent), fmt.Sprintf("no answer in %v", t.Limit))
	s.leave(q)
}

// absent reports whether the agent has not come back from a call that was given up. One that has
// sees what the world has become.
func (s *seat) absent(r *run) bool {
	if s.away != nil && s.away.over.Load() {
		s.away, s.v.w = nil, r
	}
	return s.away != nil
}
