package serve

import (
	"slices"
	"sync"
	"time"
)

// queue hands instances to calls: at once when nobody waits and one is free, in the order of
// arrival otherwise.
type queue struct {
	v *version

	mu         sync.Mutex
	head, tail *call
	waiting    int // calls that wait here or behind a step of their sequence
	rows       int // rows of the calls in the list
	free       []*instance
	// timer dispatches what waits for more rows.
	timer    func() bool
	timerFor time.Time
}

// do runs a call and returns when it is answered or its context ends.
func (v *version) do(c *call) error {
	q := &v.queue
	if c.ctx.Err() != nil {
		return ended(c.ctx)
	}
	delay := v.config.Batching.MaxDelay
	q.mu.Lock()
	if s := c.seq; s != nil {
		if s.busy {
			if q.waiting >= v.config.MaxQueue {
				q.mu.Unlock()
				return fail(Overloaded, "the queue is full: %d requests wait", v.config.MaxQueue)
			}
			s.waiting = append(s.waiting, c)
			c.where = inSequence
			q.waiting++
			q.mu.Unlock()
			return v.await(c)
		}
		s.busy = true
	}
	if n := len(q.free); n > 0 && q.head == nil && (delay == 0 || !v.plan.batch) {
		i := q.free[n-1]
		q.free = q.free[:n-1]
		i.batch = append(i.batch[:0], c)
		q.mu.Unlock()
		return v.fly(i, c)
	}
	if q.waiting >= v.config.MaxQueue {
		if c.seq != nil {
			c.seq.busy = false // nothing of the sequence can have come in between
		}
		q.mu.Unlock()
		return fail(Overloaded, "the queue is full: %d requests wait", v.config.MaxQueue)
	}
	q.push(c)
	q.waiting++
	if delay > 0 {
		c.latest = c.begin.Add(delay)
		if d, ok := c.ctx.Deadline(); ok {
			// A request that must be answered soon does not wait for company: half of its time is
			// left for the run.
			if soon := c.begin.Add(d.Sub(c.begin) / 2); soon.Before(c.latest) {
				c.latest = soon
			}
		}
		q.dispatch()
	}
	q.mu.Unlock()
	return v.await(c)
}

// fly runs the batch of an instance that holds c alone: here, where the caller cannot leave or
// would not be kept long, and otherwise on the instance's goroutine.
func (v *version) fly(i *instance, c *call) error {
	v.refs.Add(1)
	if i.ask = v.shared(c.rows); c.ctx.Done() != nil && !v.brief(c.rows) {
		i.work <- struct{}{}
		return v.wait(c)
	}
	i.company()
	i.run()
	if v.queue.next(i) {
		i.work <- struct{}{}
	}
	return <-c.done
}

// await waits for the answer or the end of the context.
func (v *version) await(c *call) error {
	if timeout := v.config.QueueTimeout; timeout > 0 {
		stop := v.model.server.clock.AfterFunc(timeout, func() {
			if v.queue.remove(c) {
				c.done <- fail(Overloaded, "no instance was free within %v", timeout)
			}
		})
		err := v.wait(c)
		if !stop() {
			// The timer's goroutine may still look at the call, so its memory is not used again.
			c.mu.Lock()
			c.gone = true
			c.mu.Unlock()
		}
		return err
	}
	return v.wait(c)
}

func (v *version) wait(c *call) error {
	if c.ctx.Done() == nil {
		return <-c.done
	}
	select {
	case err := <-c.done:
		return err
	case <-c.ctx.Done():
	}
	if v.queue.remove(c) {
		return ended(c.ctx)
	}
	c.mu.Lock()
	if c.delivered {
		c.mu.Unlock()
		return <-c.done
	}
	c.gone = true
	if c.flight != nil {
		c.flight.leave()
	}
	c.mu.Unlock()
	return ended(c.ctx)
}

func (q *queue) push(c *call) {
	c.where = inQueue
	c.prev, c.next = q.tail, nil
	if q.tail != nil {
		q.tail.next = c
	} else {
		q.head = c
	}
	q.tail = c
	q.rows += c.rows
}

func (q *queue) unlink(c *call) {
	if c.prev != nil {
		c.prev.next = c.next
	} else {
		q.head = c.next
	}
	if c.next != nil {
		c.next.prev = c.prev
	} else {
		q.tail = c.prev
	}
	c.prev, c.next, c.where = nil, nil, nowhere
	q.rows -= c.rows
}

// remove takes a call out that still waits; it reports whether it did.
func (q *queue) remove(c *call) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	switch c.where {
	case inQueue:
		q.unlink(c)
		q.waiting--
		if c.seq != nil {
			q.proceed(c.seq)
		}
		return true
	case inSequence:
		k := slices.Index(c.seq.waiting, c)
		c.seq.waiting = slices.Delete(c.seq.waiting, k, k+1)
		c.where = nowhere
		q.waiting--
		return true
	}
	return false
}

// next gives an instance that has finished its batch another one, or takes it back.
func (q *queue) next(i *instance) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if wait := q.form(i); wait >= 0 {
		q.free = append(q.free, i)
		q.arm(wait)
		return false
	}
	return true
}

// join adds what waits to an instance's batch, as far as it fits.
func (q *queue) join(i *instance) {
	q.mu.Lock()
	defer q.mu.Unlock()
	p, rows := q.v.plan, i.batch[0].rows
	for c := q.head; c != nil && rows+c.rows <= p.maxBatch && p.fits(i.batch[0], c); c = q.head {
		q.unlink(c)
		q.waiting--
		rows += c.rows
		i.batch = append(i.batch, c)
	}
}

// dispatch hands free instances to whatever need not wait longer. The caller holds mu.
func (q *queue) dispatch() {
	for len(q.free) > 0 && q.head != nil {
		i := q.free[len(q.free)-1]
		if wait := q.form(i); wait >= 0 {
			q.arm(wait)
			return
		}
		q.free = q.free[:len(q.free)-1]
		i.work <- struct{}{}
	}
}

// arm sees to it that dispatch is called after a while; 0 is never.
func (q *queue) arm(wait time.Duration) {
	if wait == 0 {
		return
	}
	clock := q.v.model.server.clock
	due := clock.Now().Add(wait)
	if q.timer != nil {
		if !due.Before(q.timerFor) {
			return
		}
		q.timer()
	}
	q.timerFor = due
	q.timer = clock.AfterFunc(wait, func() {
		q.mu.Lock()
		defer q.mu.Unlock()
		q.timer = nil
		q.dispatch()
	})
}

// form moves what runs next from the queue to the instance's batch and returns -1; otherwise it
// returns how long to wait, 0 where there is nothing to wait for. The oldest call runs with as many
// directly behind it as fit, so calls start in the order of arrival.
func (q *queue) form(i *instance) time.Duration {
	v := q.v
	i.batch = i.batch[:0]
	if q.head == nil {
		return 0
	}
	limit, rows, cut := v.plan.maxBatch, 0, 0
	latest := q.head.latest
	full := !v.plan.batch
	for c := q.head; c != nil; c = c.next {
		if len(i.batch) > 0 && (rows+c.rows > limit || !v.plan.fits(q.head, c)) {
			full = true
			break
		}
		i.batch = append(i.batch, c)
		rows += c.rows
		if slices.Contains(v.config.Batching.Preferred, rows) {
			cut = len(i.batch)
		}
		if c.latest.Before(latest) {
			latest = c.latest
		}
	}
	full = full || rows >= limit
	if !full && !latest.IsZero() {
		if cut > 0 {
			i.batch = i.batch[:cut]
		} else if wait := latest.Sub(v.model.server.clock.Now()); wait > 0 {
			i.batch = i.batch[:0]
			return wait
		}
	}
	for _, c := range i.batch {
		q.unlink(c)
		q.waiting--
	}
	v.refs.Add(1) // each call holds one, so the version is not closing
	return -1
}

// proceed lets the next step of a sequence into the queue. The caller holds mu.
func (q *queue) proceed(s *sequence) {
	s.busy = false
	for len(s.waiting) > 0 {
		c := s.waiting[0]
		s.waiting = slices.Delete(s.waiting, 0, 1)
		if (s.state == nil || s.ended) && !c.start {
			c.where = nowhere
			q.waiting--
			c.done <- invalid("sequence %q has no state: its first step failed, or a step before this one was its last", s.key.id)
			continue
		}
		s.busy = true
		q.push(c)
		q.dispatch()
		return
	}
}

// answer ends a call that has run.
func (v *version) answer(c *call, err error) {
	if s := c.seq; s != nil {
		v.queue.mu.Lock()
		v.queue.proceed(s)
		v.queue.mu.Unlock()
	}
	c.done <- err
}
