package optim

import (
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/onnxrl/onnxrl/runtime/crew"
)

const (
	// parallelMin is the number of elements from which a step is split; below
	// it, waking a goroutine costs more than it saves.
	parallelMin = 1 << 20
	// chunkElems keeps chunk boundaries on cache lines and the parts small
	// enough that a core which lost its processor does not delay the others.
	chunkElems = 1 << 17
	// crewMin is the number of elements from which a step is split over a crew,
	// whose goroutines need no waking.
	crewMin = 1 << 14
)

// chunk is elements lo to hi of one group.
type chunk struct{ group, lo, hi int }

// parallel splits one step over goroutines. Updates are element-wise, so the
// split cannot change a bit. Goroutines start with the step and end with it,
// unless there is a crew.
type parallel struct {
	owner  *stepper
	crew   *crew.Crew
	part   func(k int) // the crew's work
	work   func()      // the goroutine, made once so that starting it allocates nothing
	chunks []chunk
	total  int

	groups []Group
	next   atomic.Int64
	wg     sync.WaitGroup
}

func (p *parallel) init(owner *stepper) {
	p.owner = owner
	p.work = func() {
		defer p.wg.Done()
		p.drain()
	}
	p.part = p.share
}

// plan lists the chunks of l.
func (p *parallel) plan(l layout) {
	p.chunks, p.total = p.chunks[:0], 0
	for i, s := range l.spans {
		p.total += s.n
		for lo := 0; lo < s.n; lo += chunkElems {
			p.chunks = append(p.chunks, chunk{i, lo, min(s.n, lo+chunkElems)})
		}
	}
}

// run updates all groups, or reports that they are too small to be split.
func (p *parallel) run(groups []Group) bool {
	if p.total >= crewMin && p.crew.Size() > 1 {
		p.groups = groups
		p.crew.Run(p.part)
		p.groups = nil
		return true
	}
	if p.total < parallelMin || p.owner.workers == 1 {
		return false
	}
	workers := p.owner.workers
	if workers <= 0 {
		workers = runtime.GOMAXPROCS(0)
	}
	if workers = min(workers, len(p.chunks)); workers == 1 {
		return false
	}
	p.groups = groups
	p.next.Store(0)
	p.wg.Add(workers - 1)
	for range workers - 1 {
		go p.work()
	}
	p.drain()
	p.wg.Wait()
	p.groups = nil
	return true
}

// share updates the k-th of equal shares of every group. Each goroutine has the
// same share in every step, so that it finds its part of the state in the cache
// of its core.
func (p *parallel) share(k int) {
	for i := range p.groups {
		lo, hi := crew.Share(len(p.groups[i].Params), k, p.crew.Size())
		if lo < hi {
			p.owner.apply(p.groups, i, lo, hi)
		}
	}
}

// drain takes chunks until none is left.
func (p *parallel) drain() {
	for {
		k := int(p.next.Add(1)) - 1
		if k >= len(p.chunks) {
			return
		}
		c := p.chunks[k]
		p.owner.apply(p.groups, c.group, c.lo, c.hi)
	}
}
