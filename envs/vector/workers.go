package vector

import (
	"math"
	"runtime"
	"sync"
	"time"
)

// crew runs a function over ranges of environments in goroutines that live as long as the vector.
// The caller's goroutine takes the first range.
type crew struct {
	work   func(from, to int) error
	ranges [][2]int
	errs   []error
	start  []chan struct{}
	done   sync.WaitGroup
}

func newCrew(work func(from, to int) error, n, workers int) *crew {
	workers = min(workers, n)
	c := &crew{work: work, errs: make([]error, workers), start: make([]chan struct{}, workers)}
	for w := range workers {
		c.ranges = append(c.ranges, [2]int{w * n / workers, (w + 1) * n / workers})
	}
	for w := 1; w < workers; w++ {
		c.start[w] = make(chan struct{}, 1)
		go func() {
			for range c.start[w] {
				c.errs[w] = work(c.ranges[w][0], c.ranges[w][1])
				c.done.Done()
			}
		}()
	}
	return c
}

// run returns the error of the first range that has one, which belongs to the first environment
// that failed.
func (c *crew) run() error {
	c.done.Add(len(c.ranges) - 1)
	for _, start := range c.start[1:] {
		start <- struct{}{}
	}
	c.errs[0] = c.work(c.ranges[0][0], c.ranges[0][1])
	c.done.Wait()
	for _, err := range c.errs {
		if err != nil {
			return err
		}
	}
	return nil
}

func (c *crew) close() {
	for _, start := range c.start[1:] {
		close(start)
	}
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
