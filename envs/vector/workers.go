package vector

import (
	"math"
	"runtime"
	"time"

	"github.com/onnxrl/onnxrl/runtime/pool"
)

// workers run a function over ranges of environments, on goroutines that live as long as the vector
// and sleep between steps: the cores are the policy's then.
type workers struct {
	pool *pool.Pool
	job  func(k int)
	errs []error
}

func newWorkers(work func(from, to int) error, n, size int) *workers {
	size = min(size, n)
	w := &workers{pool: pool.New(size, 0), errs: make([]error, size)}
	w.job = func(k int) { w.errs[k] = work(k*n/size, (k+1)*n/size) }
	return w
}

// run returns the error of the first range that has one, which belongs to the first environment
// that failed.
func (w *workers) run() error {
	w.pool.Run(w.job)
	for _, err := range w.errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// trial decides from the first steps whether further goroutines pay.
type trial struct {
	left, processors int
	best             time.Duration
}

// worthwhile is the time of a step beyond which waking other goroutines, a few microseconds each,
// is small.
const worthwhile = 40 * time.Microsecond

func newTrial() trial {
	t := trial{left: 32, processors: runtime.GOMAXPROCS(0), best: math.MaxInt64}
	if t.processors == 1 {
		t.left = 0
	}
	return t
}

func (t *trial) running() bool { return t.left > 0 }

// time executes one step of the trial. pays is true at most once, after the last of them.
func (t *trial) time(step func() error) (pays bool, err error) {
	start := time.Now()
	err = step()
	t.best = min(t.best, time.Since(start))
	t.left--
	return t.left == 0 && t.best > worthwhile, err
}

// crew advances environments by one step: alone, or by workers from when they turn out to pay.
type crew struct {
	advance func(from, to int) error
	n       int
	trial   trial
	// workers is nil as long as the caller steps alone.
	workers *workers
}

// newCrew returns what steps n environments as Options.Workers says. advance steps those of a
// range, up to the first that fails.
func newCrew(advance func(from, to int) error, n, size int) crew {
	c := crew{advance: advance, n: n}
	switch {
	case size > 1:
		c.workers = newWorkers(advance, n, size)
	case size == 0:
		c.trial = newTrial()
	}
	return c
}

// all advances every environment.
func (c *crew) all() error {
	if c.workers != nil {
		return c.workers.run()
	}
	if !c.trial.running() {
		return c.advance(0, c.n)
	}
	pays, err := c.trial.time(func() error { return c.advance(0, c.n) })
	if pays {
		c.workers = newWorkers(c.advance, c.n, c.trial.processors)
	}
	return err
}

func (c *crew) close() {
	if c.workers != nil {
		c.workers.pool.Close()
	}
}
