package capacity

import "container/heap"

// clock is the time of a simulation, in seconds, and what is to happen.
type clock struct {
	now    float64
	events events
	n      uint64
}

// event is something to be done. Of two at the same time the one that was asked for first comes
// first.
type event struct {
	at float64
	n  uint64
	do func()
}

type events []event

func (e events) Len() int { return len(e) }
func (e events) Less(i, j int) bool {
	return e[i].at < e[j].at || e[i].at == e[j].at && e[i].n < e[j].n
}
func (e events) Swap(i, j int) { e[i], e[j] = e[j], e[i] }
func (e *events) Push(x any)   { *e = append(*e, x.(event)) }
func (e *events) Pop() any {
	last := len(*e) - 1
	x := (*e)[last]
	(*e)[last] = event{}
	*e = (*e)[:last]
	return x
}

// after has something done in so many seconds.
func (c *clock) after(seconds float64, do func()) {
	c.n++
	heap.Push(&c.events, event{c.now + seconds, c.n, do})
}

// run does everything that is to happen until stop says so, or nothing is left.
func (c *clock) run(stop func() bool) {
	for len(c.events) > 0 && !stop() {
		e := heap.Pop(&c.events).(event)
		c.now = e.at
		e.do()
	}
}
