package optim

import (
	"runtime"

	"github.com/onnxrl/onnxrl/runtime/pool"
)

const (
	// poolMin is the number of elements from which a step is split over a pool that is given.
	poolMin = 1 << 14
	// ownMin is the number from which an optimiser without one starts its own, and workerMin the
	// least that each of its workers has: they sleep between steps, and below it waking them costs
	// more than it saves.
	ownMin    = 1 << 20
	workerMin = 1 << 17
)

// parallel splits one step over the workers of a pool. Updates are element-wise, so the split
// cannot change a bit.
type parallel struct {
	owner  *stepper
	pool   *pool.Pool
	part   func(k int)
	total  int
	groups []Group
}

// plan counts the elements of l.
func (p *parallel) plan(l layout) {
	p.total = 0
	for _, s := range l.spans {
		p.total += s.n
	}
	if p.pool != nil || p.total < ownMin {
		return
	}
	workers := p.owner.workers
	if workers <= 0 {
		workers = runtime.GOMAXPROCS(0)
	}
	if workers = min(workers, p.total/workerMin); workers > 1 {
		p.pool = pool.New(workers, 0)
		runtime.AddCleanup(p.owner, (*pool.Pool).Close, p.pool)
	}
}

// run updates all groups, or reports that they are too small to be split.
func (p *parallel) run(groups []Group) bool {
	if p.total < poolMin || p.pool.Size() == 1 {
		return false
	}
	p.groups = groups
	p.pool.Run(p.part)
	p.groups = nil
	return true
}

// share updates the k-th of equal shares of every group. Each worker has the same share in every
// step, so that it finds its part of the state in the cache of its core.
func (p *parallel) share(k int) {
	for i := range p.groups {
		if lo, hi := pool.Share(len(p.groups[i].Params), k, p.pool.Size()); lo < hi {
			p.owner.apply(p.groups, i, lo, hi)
		}
	}
}
