package servebench

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/onnxrl/onnxrl/cmd/internal/benchmark"
)

// caller sends one request and waits for its answer, again and again. It belongs to one goroutine.
type caller interface {
	call() error
	close() error
}

// dialer makes callers, each with a connection of its own.
type dialer func(ctx context.Context) (caller, error)

// Load is what a closed loop gave: each of Concurrency callers sends its next request when it has
// the answer to the last. The JSON keys are stable.
type Load struct {
	Transport   string `json:"transport"`
	Concurrency int    `json:"concurrency"`
	Requests    int    `json:"requests"`
	// Failures counts requests that were not answered well; they are not among the latencies.
	Failures int     `json:"failures"`
	Seconds  float64 `json:"seconds"`
	PerSec   float64 `json:"requests_per_s"`
	// Latency of single requests in microseconds.
	P50  float64 `json:"p50_us"`
	P99  float64 `json:"p99_us"`
	P999 float64 `json:"p99_9_us"`
	Max  float64 `json:"max_us"`
	// Allocs is the number of Go allocations of the whole process per request, that is of the
	// server and of the load generator; nil where the server is another process.
	Allocs *float64 `json:"allocs_per_request,omitempty"`
	// FirstFailure is the error of one of the failures.
	FirstFailure string `json:"first_failure,omitempty"`

	ns []float64
}

// crowd is a number of callers that are kept from one round to the next.
type crowd struct {
	transport string
	callers   []caller
}

func gather(ctx context.Context, transport string, dial dialer, n int) (*crowd, error) {
	c := &crowd{transport: transport}
	for range n {
		one, err := dial(ctx)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("%s: %w", transport, err), c.close())
		}
		c.callers = append(c.callers, one)
	}
	return c, nil
}

func (c *crowd) close() error {
	var errs []error
	for _, one := range c.callers {
		errs = append(errs, one.close())
	}
	return errors.Join(errs...)
}

// run keeps all callers busy for the duration.
func (c *crowd) run(ctx context.Context, d time.Duration) *Load {
	type share struct {
		ns       []float64
		failures int
		first    error
	}
	shares := make([]share, len(c.callers))
	for i := range shares {
		shares[i].ns = make([]float64, 0, 1<<14)
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	begin := time.Now()
	var wg sync.WaitGroup
	for i, one := range c.callers {
		wg.Go(func() {
			s := &shares[i]
			// At least one request, however busy the machine is.
			for last, n := time.Since(begin), 0; (n == 0 || last < d) && ctx.Err() == nil; n++ {
				err := one.call()
				now := time.Since(begin)
				if err != nil {
					if s.failures++; s.first == nil {
						s.first = err
					}
				} else {
					s.ns = append(s.ns, float64(now-last))
				}
				last = now
			}
		})
	}
	wg.Wait()
	took := time.Since(begin)
	runtime.ReadMemStats(&after)
	l := &Load{Transport: c.transport, Concurrency: len(c.callers), Seconds: took.Seconds()}
	for _, s := range shares {
		l.ns = append(l.ns, s.ns...)
		l.Failures += s.failures
		if s.first != nil {
			l.FirstFailure = s.first.Error()
		}
	}
	l.Requests = len(l.ns) + l.Failures
	allocs := float64(after.Mallocs-before.Mallocs) / float64(max(l.Requests, 1))
	l.Allocs = &allocs
	l.finish()
	return l
}

// finish computes what is printed from the durations.
func (l *Load) finish() {
	slices.Sort(l.ns)
	if len(l.ns) > 0 {
		l.P50, l.P99, l.P999, l.Max = benchmark.Quantile(l.ns, 0.5)/1e3, benchmark.Quantile(l.ns, 0.99)/1e3, benchmark.Quantile(l.ns, 0.999)/1e3, l.ns[len(l.ns)-1]/1e3
	}
	l.PerSec = float64(len(l.ns)) / l.Seconds
}

// join adds another round of the same load.
func (l *Load) join(m *Load) *Load {
	if l == nil {
		return m
	}
	if l.Allocs != nil && m.Allocs != nil {
		a := (*l.Allocs*float64(l.Requests) + *m.Allocs*float64(m.Requests)) / float64(max(l.Requests+m.Requests, 1))
		l.Allocs = &a
	}
	l.ns = append(l.ns, m.ns...)
	l.Requests += m.Requests
	l.Failures += m.Failures
	l.Seconds += m.Seconds
	if l.FirstFailure == "" {
		l.FirstFailure = m.FirstFailure
	}
	l.finish()
	return l
}

// failed is an error where a request failed.
func (l *Load) failed() error {
	if l.Failures > 0 {
		return fmt.Errorf("%s: %d of %d requests failed, for instance: %s", l.Transport, l.Failures, l.Requests, l.FirstFailure)
	}
	if len(l.ns) == 0 {
		return fmt.Errorf("%s: no request was answered in %.2f s", l.Transport, l.Seconds)
	}
	return nil
}
