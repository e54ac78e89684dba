package websocket

import (
	"context"
	"sync"
)

// queue has messages that wait for the service. It is safe for one who puts and one who takes.
type queue struct {
	limit int // of bytes

	mu     sync.Mutex
	values [][]byte
	bytes  int
	paused bool
	err    error // behind the values
	// stalls counts how often there was no room, and stalled says that there is none.
	stalls  int64
	stalled bool
	changed chan struct{}
}

// overhead is what a message takes beside its bytes, and most how many are taken at once.
const (
	overhead = 64
	most     = 4096
)

func newQueue(limit int) *queue { return &queue{limit: limit, changed: make(chan struct{})} }

// change tells who waits; mu is held.
func (q *queue) change() {
	close(q.changed)
	q.changed = make(chan struct{})
}

// put waits for room. A message that is longer than all of it is taken by itself.
func (q *queue) put(ctx context.Context, value []byte) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	size := len(value) + overhead
	for q.bytes > 0 && q.bytes+size > q.limit {
		if !q.stalled {
			q.stalled = true
			q.stalls++
			q.change()
		}
		if err := q.wait(ctx); err != nil {
			return err
		}
	}
	q.stalled = false
	q.values, q.bytes = append(q.values, value), q.bytes+size
	q.change()
	return nil
}

// take waits for messages, or for the end.
func (q *queue) take(ctx context.Context) ([][]byte, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for q.paused || len(q.values) == 0 && q.err == nil {
		if err := q.wait(ctx); err != nil {
			return nil, err
		}
	}
	if len(q.values) == 0 {
		return nil, q.err
	}
	n := min(len(q.values), most)
	list := q.values[:n:n]
	if q.values = q.values[n:]; len(q.values) == 0 {
		q.values = nil
	}
	for _, v := range list {
		q.bytes -= len(v) + overhead
	}
	q.change()
	return list, nil
}

// wait waits for a change; mu is held before and after.
func (q *queue) wait(ctx context.Context) error {
	changed := q.changed
	q.mu.Unlock()
	defer q.mu.Lock()
	select {
	case <-changed:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// pause gives nothing as long as it is on.
func (q *queue) pause(on bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.paused = on
	q.change()
}

// end gives an error behind the messages.
func (q *queue) end(err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.err = err
	q.change()
}

// stalling says how often there was no room so far, and whether there is none now.
func (q *queue) stalling() (times int64, now bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.stalls, q.stalled
}
