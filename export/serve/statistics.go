package serve

import (
	"errors"
	"math/bits"
	"sync"
	"sync/atomic"
	"time"
)

// duration counts events and their time. Both parts only grow; a reader may see one event more in
// one than in the other.
type duration struct{ n, ns atomic.Uint64 }

func (d *duration) add(t time.Duration) {
	d.n.Add(1)
	d.ns.Add(uint64(max(t, 0)))
}

func (d *duration) load() Durations {
	return Durations{Count: d.n.Load(), Total: time.Duration(d.ns.Load())}
}

// maxBatchRows is the most rows that have a batch statistic of their own; larger runs count to it.
const maxBatchRows = 1024

// counters are a version's statistics while it serves.
type counters struct {
	success, failed             duration
	failures                    [len(codes)]atomic.Uint64
	nonFinite                   atomic.Uint64
	queue, input, infer, output duration
	rows, runs                  atomic.Uint64
	pending                     atomic.Int64
	last                        atomic.Int64 // Unix nanoseconds
	sequences                   atomic.Int64
	latency, inference          histogram
	batches                     [maxBatchRows + 1]atomic.Pointer[batchCounters]

	mu        sync.Mutex
	lastError string
	shadows   []*comparison
}

type batchCounters struct{ input, infer, output duration }

// ran records one run.
func (s *counters) ran(rows int, input, infer, output time.Duration) {
	s.runs.Add(1)
	s.rows.Add(uint64(rows))
	slot := &s.batches[min(rows, maxBatchRows)]
	b := slot.Load()
	if b == nil {
		slot.CompareAndSwap(nil, &batchCounters{})
		b = slot.Load()
	}
	b.input.add(input)
	b.infer.add(infer)
	s.inference.add(infer)
	b.output.add(output)
}

// answered records one request.
func (s *counters) answered(t Timing, total time.Duration, now time.Time, err error) {
	if err != nil {
		s.failed.add(total)
		s.failures[CodeOf(err)].Add(1)
		if number, choice := (*NonFiniteError)(nil), (*ChoiceError)(nil); errors.As(err, &number) || errors.As(err, &choice) {
			s.nonFinite.Add(1)
		}
		s.mu.Lock()
		s.lastError = err.Error()
		s.mu.Unlock()
		return
	}
	s.success.add(total)
	s.queue.add(t.Queue)
	s.input.add(t.Input)
	s.infer.add(t.Infer)
	s.output.add(t.Output)
	s.latency.add(total)
	s.last.Store(now.UnixNano())
}

func (s *counters) snapshot(model, version string) Statistics {
	out := Statistics{
		Model: model, Version: version, Failures: map[Code]uint64{}, NonFinite: s.nonFinite.Load(),
		Success: s.success.load(), Failed: s.failed.load(),
		Queue: s.queue.load(), Input: s.input.load(), Infer: s.infer.load(), Output: s.output.load(),
		Inferences: s.rows.Load(), Executions: s.runs.Load(),
		Pending: int(s.pending.Load()), Sequences: int(s.sequences.Load()),
		Latency: s.latency.load(), Inference: s.inference.load(),
	}
	for c := range s.failures {
		if n := s.failures[c].Load(); n > 0 {
			out.Failures[Code(c)] = n
		}
	}
	if ns := s.last.Load(); ns != 0 {
		out.LastInference = time.Unix(0, ns)
	}
	for rows := range s.batches {
		if b := s.batches[rows].Load(); b != nil {
			out.Batches = append(out.Batches, BatchStatistics{Rows: rows, Input: b.input.load(), Infer: b.infer.load(), Output: b.output.load()})
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	out.LastError = s.lastError
	for _, c := range s.shadows {
		out.Shadows = append(out.Shadows, c.load())
	}
	return out
}

// histogram counts durations in eight buckets per octave of nanoseconds, those below 8 ns in one
// each.
type histogram struct {
	buckets [8 * 62]atomic.Uint64
	max     atomic.Int64
}

func bucketOf(ns uint64) int {
	if ns < 8 {
		return int(ns)
	}
	octave := bits.Len64(ns) - 1 // at least 3
	return 8*(octave-2) + int(ns>>(octave-3))&7
}

// bucketBound is the largest duration in a bucket.
func bucketBound(i int) uint64 {
	if i < 8 {
		return uint64(i)
	}
	octave, eighth := i/8+2, uint64(i%8)
	return (8+eighth+1)<<(octave-3) - 1
}

func (h *histogram) add(d time.Duration) {
	ns := max(d, 0)
	h.buckets[bucketOf(uint64(ns))].Add(1)
	for {
		old := h.max.Load()
		if int64(ns) <= old || h.max.CompareAndSwap(old, int64(ns)) {
			return
		}
	}
}

func (h *histogram) load() Latency {
	l := Latency{Max: time.Duration(h.max.Load())}
	for i := range h.buckets {
		if n := h.buckets[i].Load(); n > 0 {
			l.Count += n
			l.Bounds = append(l.Bounds, time.Duration(bucketBound(i)))
			l.Counts = append(l.Counts, n)
		}
	}
	return l
}
