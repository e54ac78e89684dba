package servebench

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/onnxrl/onnxrl/cmd/internal/benchmark"
	"github.com/onnxrl/onnxrl/export/serve"
	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/processes"
)

// strained is the number of callers with which swaps and neighbours are measured.
const strained = 8

// swapper replaces the policy by another version again and again.
type swapper struct {
	lab      *lab
	policies [2]*onnx.Model
	version  int
}

func (l *lab) newSwapper() (*swapper, error) {
	s := &swapper{lab: l, version: 1}
	for i := range s.policies {
		var err error
		if s.policies[i], err = policy(uint64(1 + i)); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// swap makes the next version the only one.
func (s *swapper) swap(ctx context.Context) error {
	s.version++
	s.lab.shelf.put(policyName, strconv.Itoa(s.version), s.policies[(s.version+1)%2], serve.Config{})
	if err := s.lab.server.Poll(ctx); err != nil {
		return err
	}
	return s.lab.server.ModelReady(policyName, strconv.Itoa(s.version))
}

// during swaps every so often while f runs.
func (s *swapper) during(ctx context.Context, every time.Duration, f func() (*Load, error)) (*Load, error) {
	ctx, stop := context.WithCancel(ctx)
	var wg sync.WaitGroup
	var swapped error
	wg.Go(func() {
		tick := time.NewTicker(every)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			if err := s.swap(context.WithoutCancel(ctx)); err != nil {
				swapped = err
				return
			}
		}
	})
	load, err := f()
	stop()
	wg.Wait()
	if err := errors.Join(err, swapped); err != nil {
		return nil, err
	}
	return load, nil
}

// A round whose slowest hundredth is looked at has that many requests, unless it would take that
// many times as long as it should: the median of rounds is then over quantiles that each stand on
// twenty requests or more.
const (
	longRequests = 2000
	longTimes    = 10
)

// long is the side with rounds that have enough requests for a p99.
func (s side) long() side {
	return func(d time.Duration) (*Load, error) {
		var sum *Load
		for range longTimes {
			load, err := s(d)
			if err != nil {
				return nil, err
			}
			if sum = sum.join(load); sum.Requests >= longRequests {
				break
			}
		}
		return sum, nil
	}
}

// swap is what replacing a version again and again does to the slowest requests.
func (l *lab) swap(ctx context.Context, r *Report) error {
	s, err := l.newSwapper()
	if err != nil {
		return err
	}
	a, done, err := l.side(ctx, httpBinary, policyName, policyInputs, strained)
	if err != nil {
		return err
	}
	a = a.long()
	before := s.version
	swapping := func(round time.Duration) (*Load, error) {
		return s.during(ctx, l.SwapEvery, func() (*Load, error) { return a(round) })
	}
	rows, err := l.contest(contest{a: swapping, doneA: done, b: a, doneB: nothing, whole: true}, func(d *duel) []benchmark.Row {
		row := d.row("swap/p99", fmt.Sprintf("p99 of 2×64, %d callers, a swap every %v", strained, l.SwapEvery), "without", "µs", p99, benchmark.Target{AtMost: 2})
		row.Note = fmt.Sprintf("%d swaps, %d requests, none failed", s.version-before, d.a.Requests)
		return []benchmark.Row{row}
	})
	if err != nil {
		return err
	}
	r.add(rows...)
	return nil
}

func nothing() error { return nil }

// neighbour measures what a training run in another process does to the slowest requests of a
// server that shares its machine.
func (l *lab) neighbour(ctx context.Context, r *Report) error {
	defer processes.SpareProcessor()()
	a, done, err := l.side(ctx, httpBinary, policyName, policyInputs, strained)
	if err != nil {
		return err
	}
	a = a.long()
	beside := func(round time.Duration) (*Load, error) {
		stop, err := l.Neighbour(ctx, l.NeighbourNice)
		if err != nil {
			return nil, fmt.Errorf("start a training run: %w", err)
		}
		load, err := a(round)
		return load, errors.Join(err, stop())
	}
	rows, err := l.contest(contest{a: beside, doneA: done, b: a, doneB: nothing, whole: true}, func(d *duel) []benchmark.Row {
		row := d.row("neighbour/p99", fmt.Sprintf("p99 of 2×64, %d callers, beside a training run of niceness %d", strained, l.NeighbourNice), "without", "µs", p99, benchmark.Target{AtMost: 2})
		row.Note = fmt.Sprintf("%d requests against %d, %.0f/s against %.0f/s", d.a.Requests, d.b.Requests, d.a.PerSec, d.b.PerSec)
		return []benchmark.Row{row}
	})
	if err != nil {
		return err
	}
	r.add(rows...)
	return nil
}

// growth is the most that memory may grow over all requests or reloads.
const growth = 1.05

// memory is what is resident after many requests and many reloads, compared with what was after the
// first tenth of them.
func (l *lab) memory(ctx context.Context, r *Report) error {
	dial, err := l.dial(httpBinary, policyName, policyInputs)
	if err != nil {
		return err
	}
	c, err := gather(ctx, httpBinary, dial, strained)
	if err != nil {
		return err
	}
	requests, err := l.resident("memory/requests", "requests over HTTP", l.Requests, func(n int) error {
		for n > 0 && ctx.Err() == nil {
			load := c.run(ctx, min(l.Round, 250*time.Millisecond))
			if err := load.failed(); err != nil {
				return err
			}
			n -= load.Requests
		}
		return ctx.Err()
	})
	if err = errors.Join(err, c.close()); err != nil {
		return err
	}
	s, err := l.newSwapper()
	if err != nil {
		return err
	}
	// Other benchmarks may have swapped before; versions only have to differ from what is served.
	s.version = 1_000_000
	reloads, err := l.resident("memory/reloads", "versions loaded", l.Reloads, func(n int) error {
		for range n {
			if err := s.swap(ctx); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	r.add(requests, reloads)
	return nil
}

// resident compares what is resident after n times something with what was after a tenth of it.
func (l *lab) resident(name, what string, n int, f func(n int) error) (benchmark.Row, error) {
	first := max(1, n/10)
	if err := f(first); err != nil {
		return benchmark.Row{}, err
	}
	before, ok := residentBytes()
	if !ok {
		// Where the system does not tell, the heap does.
		before = int64(heapBytes())
	}
	if err := f(max(1, n-first)); err != nil {
		return benchmark.Row{}, err
	}
	after, ok := residentBytes()
	if !ok {
		after = int64(heapBytes())
	}
	row := benchmark.Row{
		Name: name, Measures: fmt.Sprintf("resident after %d %s", n, what), Value: float64(after) / 1e6, Against: fmt.Sprintf("after %d", first), Reference: float64(before) / 1e6, Unit: "MB",
		Ratio: float64(after) / float64(before), Target: &benchmark.Target{AtMost: growth},
	}
	row.Pass = met(*row.Target, row.Ratio)
	return row, nil
}
