package servebench

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/onnxrl/onnxrl/cmd/internal/benchmark"
	"github.com/onnxrl/onnxrl/export/serve"
	"github.com/onnxrl/onnxrl/export/serve/grpcapi/inference"
	"github.com/onnxrl/onnxrl/runtime/rng"
	"github.com/onnxrl/onnxrl/runtime/sorted"
)

// SoakReport is what a soak saw. The JSON keys are stable.
type SoakReport struct {
	Machine benchmark.Machine `json:"machine"`
	Seconds float64           `json:"seconds"`
	// Good counts requests that must be answered, by transport; Failed those that were not, or not
	// with one version's answer.
	Good   map[string]int `json:"good"`
	Failed int            `json:"failed"`
	// Bad counts what must be refused or survived, by kind; Wrong those of it that got a good
	// answer or an error of the server's.
	Bad   map[string]int `json:"bad"`
	Wrong int            `json:"wrong"`
	Swaps int            `json:"swaps"`
	// Before and after the traffic, at rest.
	HeapBefore       uint64 `json:"heap_bytes_before"`
	HeapAfter        uint64 `json:"heap_bytes_after"`
	ResidentBefore   int64  `json:"resident_bytes_before"`
	ResidentAfter    int64  `json:"resident_bytes_after"`
	GoroutinesBefore int    `json:"goroutines_before"`
	GoroutinesAfter  int    `json:"goroutines_after"`
	FilesBefore      int    `json:"files_before"`
	FilesAfter       int    `json:"files_after"`
	// Problems is empty when the soak is passed.
	Problems []string `json:"problems"`
}

// Print writes what was seen.
func (r *SoakReport) Print(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintln(&b, r.Machine)
	fmt.Fprintf(&b, "%.0f s, %d swaps of the version\n", r.Seconds, r.Swaps)
	for _, list := range []struct {
		what   string
		counts map[string]int
	}{{"good", r.Good}, {"bad", r.Bad}} {
		for k, n := range sorted.All(list.counts) {
			fmt.Fprintf(&b, "%s  %-24s %d\n", list.what, k, n)
		}
	}
	fmt.Fprintf(&b, "good requests that failed: %d; bad ones with a wrong answer: %d\n", r.Failed, r.Wrong)
	fmt.Fprintf(&b, "heap %.1f -> %.1f MB, resident %.1f -> %.1f MB, goroutines %d -> %d, open files %d -> %d\n", float64(r.HeapBefore)/1e6, float64(r.HeapAfter)/1e6, float64(r.ResidentBefore)/1e6, float64(r.ResidentAfter)/1e6,
		r.GoroutinesBefore, r.GoroutinesAfter, r.FilesBefore, r.FilesAfter)
	for _, p := range r.Problems {
		fmt.Fprintln(&b, "PROBLEM:", p)
	}
	if len(r.Problems) == 0 {
		fmt.Fprintln(&b, "passed")
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// tally counts outcomes of one kind of traffic.
type tally struct {
	n, wrong atomic.Int64
	first    atomic.Pointer[string]
}

func (t *tally) add(err error) {
	t.n.Add(1)
	if err != nil {
		text := err.Error()
		t.first.CompareAndSwap(nil, &text)
		t.wrong.Add(1)
	}
}

// Soak mixes good and bad traffic for the duration.
func Soak(ctx context.Context, o Options, d time.Duration) (_ *SoakReport, err error) {
	l, err := newLab(ctx, o)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, l.close()) }()
	s, err := l.newSwapper()
	if err != nil {
		return nil, err
	}
	answers, err := l.answers(ctx, s)
	if err != nil {
		return nil, err
	}
	// Everything once, so that what is made on first use is there before memory is looked at.
	good, bad := map[string]*tally{}, map[string]*tally{}
	traffic := func(d time.Duration) error { return l.traffic(ctx, s, answers, d, good, bad) }
	if err := traffic(max(d/10, 200*time.Millisecond)); err != nil {
		return nil, err
	}
	if !settle(ctx, func() bool { return l.idle() }) {
		return nil, errors.New("the server still has requests after the traffic of the warm-up")
	}
	good, bad = map[string]*tally{}, map[string]*tally{}
	r := &SoakReport{Machine: benchmark.ThisMachine(), Good: map[string]int{}, Bad: map[string]int{}, Problems: []string{}}
	r.ResidentBefore, _ = residentBytes()
	r.HeapBefore, r.GoroutinesBefore = heapBytes(), runtime.NumGoroutine()
	r.FilesBefore, _ = openFiles()
	begin, swaps := time.Now(), s.version
	if err := traffic(d); err != nil {
		return nil, err
	}
	r.Seconds, r.Swaps = time.Since(begin).Seconds(), s.version-swaps
	// Connections that were left half open end when the server's limits do.
	settle(ctx, func() bool {
		n, ok := openFiles()
		return l.idle() && runtime.NumGoroutine() <= r.GoroutinesBefore && (!ok || n <= r.FilesBefore)
	})
	r.HeapAfter, r.GoroutinesAfter = heapBytes(), runtime.NumGoroutine()
	r.ResidentAfter, _ = residentBytes()
	r.FilesAfter, _ = openFiles()
	r.judge(good, bad)
	return r, ctx.Err()
}

func (r *SoakReport) judge(good, bad map[string]*tally) {
	problem := func(format string, args ...any) { r.Problems = append(r.Problems, fmt.Sprintf(format, args...)) }
	for _, list := range []struct {
		tallies map[string]*tally
		counts  map[string]int
		wrong   *int
		what    string
	}{{good, r.Good, &r.Failed, "good requests failed"}, {bad, r.Bad, &r.Wrong, "bad ones had a wrong answer"}} {
		for k, t := range sorted.All(list.tallies) {
			list.counts[k] = int(t.n.Load())
			*list.wrong += int(t.wrong.Load())
			if first := t.first.Load(); first != nil {
				problem("%s: %d of %d %s, for instance: %s", k, t.wrong.Load(), t.n.Load(), list.what, *first)
			}
			if t.n.Load() == 0 {
				problem("%s: nothing was sent", k)
			}
		}
	}
	if r.Swaps == 0 {
		problem("no version was swapped")
	}
	if limit := r.HeapBefore + r.HeapBefore/2 + 16<<20; r.HeapAfter > limit {
		problem("the heap grew from %d to %d bytes", r.HeapBefore, r.HeapAfter)
	}
	if limit := r.ResidentBefore + r.ResidentBefore/4 + 32<<20; r.ResidentAfter > limit {
		problem("resident memory grew from %d to %d bytes", r.ResidentBefore, r.ResidentAfter)
	}
	if r.GoroutinesAfter > r.GoroutinesBefore {
		problem("there were %d goroutines, and %d afterwards", r.GoroutinesBefore, r.GoroutinesAfter)
	}
	if r.FilesAfter > r.FilesBefore {
		problem("there were %d open files, and %d afterwards", r.FilesBefore, r.FilesAfter)
	}
}

// settle waits until a condition holds, for as long as the server's limits on slow clients and a
// little more.
func settle(ctx context.Context, ok func() bool) bool {
	deadline := time.Now().Add(time.Minute)
	for !ok() {
		if ctx.Err() != nil || time.Now().After(deadline) {
			return false
		}
		runtime.GC()
		time.Sleep(20 * time.Millisecond)
	}
	return true
}

// idle reports whether no request waits or runs.
func (l *lab) idle() bool {
	list, err := l.server.Statistics("", "")
	return err == nil && !slices.ContainsFunc(list, func(s serve.Statistics) bool { return s.Pending > 0 })
}

// answers are the outputs of the two versions that are swapped, as the binary extension has them.
func (l *lab) answers(ctx context.Context, s *swapper) ([2][]byte, error) {
	var list [2][]byte
	dial, err := l.dial(httpBinary, policyName, policyInputs)
	if err != nil {
		return list, err
	}
	c, err := dial(ctx)
	if err != nil {
		return list, err
	}
	defer c.close()
	for range list {
		if err := s.swap(ctx); err != nil {
			return list, err
		}
		if err := c.call(); err != nil {
			return list, err
		}
		list[(s.version+1)%2] = tail(c.(*httpCaller).body)
	}
	if len(list[0]) == 0 || bytes.Equal(list[0], list[1]) {
		return list, errors.New("the two versions give the same answer")
	}
	return list, nil
}

// outputs of the policy: six float32.
const outputBytes = 4 * 6

func tail(body []byte) []byte { return bytes.Clone(body[max(0, len(body)-outputBytes):]) }

// traffic sends everything at once for the duration and adds to the tallies.
func (l *lab) traffic(ctx context.Context, s *swapper, answers [2][]byte, d time.Duration, good, bad map[string]*tally) (err error) {
	ctx, stop := context.WithTimeout(ctx, d)
	defer stop()
	var crowds []*crowd
	defer func() {
		for _, c := range crowds {
			c.close()
		}
	}()
	var wg sync.WaitGroup
	again := func(t *tally, pause time.Duration, call func() error) {
		wg.Go(func() {
			for ctx.Err() == nil {
				t.add(call())
				if pause > 0 {
					select {
					case <-ctx.Done():
					case <-time.After(pause):
					}
				}
			}
		})
	}
	check := func(y []byte) error {
		if !bytes.Equal(y, answers[0]) && !bytes.Equal(y, answers[1]) {
			return fmt.Errorf("an answer that neither version gives: %x", y)
		}
		return nil
	}
	// The server in the process has no client that could be cut off: its context is that of the
	// soak.
	for _, transport := range l.transports() {
		dial, err := l.dial(transport, policyName, policyInputs)
		if err != nil {
			return err
		}
		c, err := gather(context.WithoutCancel(ctx), transport, dial, 2)
		if err != nil {
			return err
		}
		crowds = append(crowds, c)
		good[transport] = &tally{}
		for _, one := range c.callers {
			switch h := one.(type) {
			case *httpCaller:
				// In JSON the numbers are written otherwise.
				if transport == httpBinary {
					h.check = func(body []byte) error { return check(tail(body)) }
				}
			case *grpcCaller:
				h.check = func(m *inference.ModelInferResponse) error { return check(m.GetRawOutputContents()[0]) }
			case *directCaller:
				h.check = func(resp *serve.Response) error { return check(resp.Outputs[0].Value.Bytes()) }
			}
			var pause time.Duration
			if transport == inProcess {
				// Nothing of it waits for the network, and it would leave the others little of a
				// small machine.
				pause = 200 * time.Microsecond
			}
			again(good[transport], pause, one.call)
		}
	}
	list := hostilesHTTP(l.base)
	if l.front.GRPC != "" {
		rpc, dialed := hostilesGRPC(l.front.GRPC)
		if dialed != nil {
			return dialed
		}
		defer func() { err = errors.Join(err, rpc.close()) }()
		list = append(list, rpc.list...)
	}
	for i, h := range list {
		t := bad[h.name]
		if t == nil {
			t = &tally{}
			bad[h.name] = t
		}
		stream := rng.New(uint64(i)).Split(h.name).Stream()
		// New connections at a rate that the system has ports for.
		again(t, 20*time.Millisecond, func() error { return h.run(ctx, stream) })
	}
	var swapped error
	wg.Go(func() {
		tick := time.NewTicker(l.SwapEvery)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
				if swapped = s.swap(context.WithoutCancel(ctx)); swapped != nil {
					stop()
					return
				}
			}
		}
	})
	wg.Wait()
	return swapped
}
