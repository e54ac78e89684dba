package capacity

// clock is the time of a simulation, in seconds, and what is to happen.
type clock struct {
	now float64
	// events are a binary heap: none is before its parent, at half its place.
	events []event
	n      uint64
}

// event is something to be done. Of two at the same time the one that was asked for first comes
// first.
type event struct {
	at float64
	n  uint64
	do func()
}

// before is the order of what happens.
func (e event) before(f event) bool { return e.at < f.at || e.at == f.at && e.n < f.n }

// after has something done in so many seconds.
func (c *clock) after(seconds float64, do func()) {
	c.n++
	e := event{c.now + seconds, c.n, do}
	i := len(c.events)
	c.events = append(c.events, e)
	for i > 0 && e.before(c.events[(i-1)/2]) {
		c.events[i] = c.events[(i-1)/2]
		i = (i - 1) / 2
	}
	c.events[i] = e
}

// next takes the event that comes first.
func (c *clock) next() event {
	first, last := c.events[0], len(c.events)-1
	e := c.events[last]
	c.events[last] = event{}
	c.events = c.events[:last]
	if last == 0 {
		return first
	}
	i := 0
	for {
		child := 2*i + 1
		if child >= last {
			break
		}
		if child+1 < last && c.events[child+1].before(c.events[child]) {
			child++
		}
		if !c.events[child].before(e) {
			break
		}
		c.events[i] = c.events[child]
		i = child
	}
	c.events[i] = e
	return first
}

// run does everything that is to happen until stop says so, or nothing is left.
func (c *clock) run(stop func() bool) {
	for len(c.events) > 0 && !stop() {
		e := c.next()
		c.now = e.at
		e.do()
	}
}
