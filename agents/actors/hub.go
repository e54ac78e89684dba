package actors

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/onnxrl/onnxrl/agents"
)

// Played is an unroll that an actor hands over.
type Played struct {
	// Number says which update it is for; see the package comment.
	Number int64
	*agents.Unroll
	Tally    Tally
	Position Position
}

// Lag is how many updates the parameters that acted were behind those that learn from it.
func (p *Played) Lag() int64 { return p.Number - p.Version }

// RefusedError says that an unroll was not taken, and that nothing of it counts.
type RefusedError struct{ Text string }

func (e *RefusedError) Error() string { return "the unroll is refused: " + e.Text }

// Hub is where actors hand over their unrolls and a learner takes batches of them, one of each
// actor. It is safe for concurrent use: by a goroutine for each actor, and one for the learner.
type Hub struct {
	lag int64

	mu      sync.Mutex
	version int64
	// next are the numbers of the unrolls that actors play, and queues those that were not taken
	// yet, by actor, in order.
	next   []int64
	queues [][]*Played
	// changed is closed, and replaced by another, with every change.
	changed chan struct{}
	err     error
}

// NewHub returns a hub for so many actors and a learner whose parameters are of a version, with
// unrolls at most lag versions old; next is the number of the first ones.
func NewHub(actors, lag int, version, next int64) *Hub {
	return &Hub{lag: int64(lag), version: version, next: slices.Repeat([]int64{next}, actors), queues: make([][]*Played, actors), changed: make(chan struct{})}
}

// tell wakes everybody who waits.
func (h *Hub) tell() {
	close(h.changed)
	h.changed = make(chan struct{})
}

// wait returns when ready does not return false any more, which it is asked with the lock held,
// ctx has ended, or Fail was called.
func (h *Hub) wait(ctx context.Context, ready func() bool) error {
	for {
		h.mu.Lock()
		if h.err != nil {
			defer h.mu.Unlock()
			return h.err
		}
		if err := ctx.Err(); err != nil {
			defer h.mu.Unlock()
			return err
		}
		if ready() {
			h.mu.Unlock()
			return nil
		}
		changed := h.changed
		h.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
		}
	}
}

// Permit waits until an actor may begin its next unroll, and returns that one's number. It returns
// the same one until that is handed over: one that is lost is played again.
func (h *Hub) Permit(ctx context.Context, actor int) (number int64, err error) {
	err = h.wait(ctx, func() bool {
		number = h.next[actor]
		return number <= h.version+h.lag
	})
	return number, err
}

// Submit hands over the next unroll of an actor, or returns a [RefusedError].
func (h *Hub) Submit(actor int, p *Played) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch next := h.next[actor]; {
	case p.Number < next:
		return &RefusedError{fmt.Sprintf("number %d was handed over already, expected %d", p.Number, next)}
	case p.Number > next:
		return &RefusedError{fmt.Sprintf("its number is %d, expected %d", p.Number, next)}
	case p.Number > h.version+h.lag:
		return &RefusedError{fmt.Sprintf("number %d was not permitted yet, and the parameters are of version %d", p.Number, h.version)}
	case p.Version > h.version:
		return &RefusedError{fmt.Sprintf("it was played by version %d, and the newest is %d", p.Version, h.version)}
	case p.Lag() > h.lag:
		return &RefusedError{fmt.Sprintf("it was played by version %d and is for %d, expected at most %d between", p.Version, p.Number, h.lag)}
	}
	h.next[actor]++
	h.queues[actor] = append(h.queues[actor], p)
	h.tell()
	return nil
}

// Take waits until there is an unroll of every actor for the present version, and returns them in
// the order of the actors. They are the caller's.
func (h *Hub) Take(ctx context.Context) (batch []*Played, err error) {
	err = h.wait(ctx, func() bool {
		for _, q := range h.queues {
			if len(q) == 0 || q[0].Number != h.version {
				return false
			}
		}
		batch = make([]*Played, len(h.queues))
		for i, q := range h.queues {
			batch[i] = q[0]
			h.queues[i] = slices.Delete(q, 0, 1)
		}
		return true
	})
	return batch, err
}

// Learnt says that the parameters are of the next version, which publish makes known: an unroll
// that was played with them is handed over after that, and permission that needs them given.
func (h *Hub) Learnt(publish func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	publish()
	h.version++
	h.tell()
}

// Fail has everybody who waits, now or later, get an error. The first one stays.
func (h *Hub) Fail(err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.err == nil {
		h.err = err
		h.tell()
	}
}
