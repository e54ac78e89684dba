package corebench

import (
	"context"
	"fmt"
	"math"
	"runtime"
	"slices"
	"time"

	"github.com/onnxrl/onnxrl/cmd/internal/benchmark"
)

// duel is the outcome of alternate: medians and raw figures of both sides, in nanoseconds per call,
// and the median of the rounds' ratios a/b.
type duel struct {
	a, b, ratio *benchmark.Summary
}

// sampler executes n calls and appends what each took, or what they took on average, in
// nanoseconds.
type sampler func(n int, ns []float64) ([]float64, error)

// mean measures calls that are too short for a clock around each, or whose single durations do not
// matter: one sample, the average of the n calls.
func mean(call func() error) sampler {
	return func(n int, ns []float64) ([]float64, error) {
		start := time.Now()
		for range n {
			if err := call(); err != nil {
				return ns, err
			}
		}
		return append(ns, float64(time.Since(start).Nanoseconds())/float64(n)), nil
	}
}

// each measures every call by itself, reading the clock included.
func each(call func() error) sampler {
	return func(n int, ns []float64) ([]float64, error) {
		base := time.Now()
		ns = slices.Grow(ns, n)
		last := time.Since(base)
		for range n {
			if err := call(); err != nil {
				return ns, err
			}
			now := time.Since(base)
			ns = append(ns, float64(now-last))
			last = now
		}
		return ns, nil
	}
}

// pace says how long to measure.
type pace struct {
	rounds int
	// each is the time that one side gets in one round.
	each time.Duration
	solo bool
}

func (p pace) alone(ctx context.Context, a sampler, n int) (*duel, error) {
	var as []float64
	for range p.rounds {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		var err error
		if as, err = a(n, as); err != nil {
			return nil, err
		}
	}
	return &duel{a: benchmark.Summarize(as)}, nil
}

// alternate lets a and b take turns for the paced number of rounds. Who begins changes from round
// to round. With solo, only a is measured.
func (p pace) alternate(ctx context.Context, a, b sampler) (*duel, error) {
	na, err := p.calls(a)
	if err != nil {
		return nil, err
	}
	if p.solo {
		return p.alone(ctx, a, na)
	}
	nb, err := p.calls(b)
	if err != nil {
		return nil, err
	}
	var as, bs, ratios []float64
	for r := range p.rounds {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		ia, ib := len(as), len(bs)
		first, second := func() error { as, err = a(na, as); return err }, func() error { bs, err = b(nb, bs); return err }
		if r%2 == 1 {
			first, second = second, first
		}
		if err := first(); err != nil {
			return nil, err
		}
		if err := second(); err != nil {
			return nil, err
		}
		ratios = append(ratios, benchmark.Median(as[ia:])/benchmark.Median(bs[ib:]))
	}
	return &duel{a: benchmark.Summarize(as), b: benchmark.Summarize(bs), ratio: benchmark.Summarize(ratios)}, nil
}

// calls warms s up and returns how many calls fill a round.
func (p pace) calls(s sampler) (int, error) {
	n := 1
	for {
		start := time.Now()
		if _, err := s(n, nil); err != nil {
			return 0, err
		}
		took := time.Since(start)
		if took >= p.each/2 {
			return max(1, int(float64(n)*float64(p.each)/float64(took))), nil
		}
		n = max(2*n, int(math.Min(float64(n)*float64(p.each)/float64(took+1), 100*float64(n))))
	}
}

// allocations returns the Go heap allocations per call, rounded down, so that what the run time
// itself allocates now and then does not count.
func allocations(call func() error) (float64, error) {
	start := time.Now()
	if err := call(); err != nil {
		return 0, err
	}
	calls := int(max(20, min(2000, 100*time.Millisecond/max(1, time.Since(start)))))
	// The counter is the whole program's: of three rounds the one counts that the least else ran
	// in.
	least := math.Inf(1)
	for range 3 {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		for range calls {
			if err := call(); err != nil {
				return 0, err
			}
		}
		runtime.ReadMemStats(&after)
		least = min(least, math.Floor(float64(after.Mallocs-before.Mallocs)/float64(calls)))
	}
	return least, nil
}

// duelRow makes a row of times per call in microseconds.
func duelRow(name, measures, against string, d *duel, t *benchmark.Target) benchmark.Row {
	r := benchmark.Row{Name: name, Measures: measures, Unit: "µs", Value: d.a.P50 / 1e3, Samples: d.a}
	if d.b != nil {
		r.Against, r.Reference, r.Ratio, r.Target = against, d.b.P50/1e3, d.ratio.P50, t
		r.ReferenceSamples, r.Ratios = d.b, d.ratio
	}
	return r
}

func rate(us float64) string { return fmt.Sprintf("%.0f steps/s", 1e6/us) }
