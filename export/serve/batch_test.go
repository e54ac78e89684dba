package serve

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/onnxrl/onnxrl/runtime/engine/testengines"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// held blocks runs until it is released, and records how many rows each has.
type held struct {
	mu   sync.Mutex
	rows []int
	go_  chan struct{}
}

// hold makes every run of a probe wait; the first run's rows appear in rows before it waits.
func hold(p *probe) *held {
	h := &held{go_: make(chan struct{})}
	p.onRun(func(ctx context.Context, in []*tensor.Tensor) error {
		h.mu.Lock()
		h.rows = append(h.rows, in[0].Shape()[0])
		h.mu.Unlock()
		select {
		case <-h.go_:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	})
	return h
}

func (h *held) seen() []int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.rows)
}

func (s *Server) pending(model string) int {
	n := 0
	stats, _ := s.Statistics(model, "")
	for _, v := range stats {
		n += v.Pending
	}
	return n
}

// waiting is how many requests are in a model's queue.
func (s *Server) waiting(model string) int {
	v := s.model(model).table.Load().fallback
	v.queue.mu.Lock()
	defer v.queue.mu.Unlock()
	return v.queue.waiting
}

// unbounded makes the server believe that runs of a model may hang, as those of a model with loops
// may.
func (s *Server) unbounded(model string) { s.model(model).table.Load().fallback.bounded = false }

// send infers in a goroutine; requests sent one after another queue in this order.
func send(t testing.TB, s *Server, ctx context.Context, req *Request, resp *Response) <-chan error {
	t.Helper()
	before := s.waiting(req.Model)
	done := make(chan error, 1)
	go func() { done <- s.Infer(ctx, req, resp) }()
	until(t, "the request queues", func() bool { return s.waiting(req.Model) > before })
	return done
}

// occupy sends a request that holds the only instance.
func occupy(t testing.TB, s *Server, h *held, req *Request) <-chan error {
	t.Helper()
	done := make(chan error, 1)
	go func() { done <- s.Infer(context.Background(), req, &Response{}) }()
	until(t, "the instance is busy", func() bool { return len(h.seen()) > 0 })
	return done
}

func TestWaitingRequestsBecomeOneRun(t *testing.T) {
	cases := []struct {
		name   string
		config Config
		rows   []int
		want   []int // rows of the runs after the first
	}{
		{"all fit", Config{MaxBatch: 8}, []int{1, 2, 3}, []int{6}},
		{"full batches, in order", Config{MaxBatch: 4}, []int{1, 2, 3, 1, 1}, []int{3, 4, 1}},
		{"off", Config{MaxBatch: 4, Batching: Batching{Off: true}}, []int{1, 2, 3}, []int{1, 2, 3}},
		{"larger than a batch", Config{}, []int{1, 100, 1}, []int{1, 100, 1}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			s, _, p := start(t, Options{MaxBatch: 64}, one("m", c.config, scale(2)))
			h := hold(p)
			first := occupy(t, s, h, ask("m", 1, 2))
			var done []<-chan error
			resps := make([]Response, len(c.rows))
			for i, n := range c.rows {
				x := make([]float32, 2*n)
				for k := range x {
					x[k] = float32(100*i + k)
				}
				done = append(done, send(t, s, context.Background(), ask("m", x...), &resps[i]))
			}
			close(h.go_)
			for i, d := range append(done, first) {
				if err := <-d; err != nil {
					t.Errorf("request %d: %v", i, err)
				}
			}
			for i, r := range resps {
				for k, y := range r.Outputs[0].Value.Float32s() {
					if y != float32(2*(100*i+k)) {
						t.Fatalf("request %d: y[%d] = %v", i, k, y)
					}
				}
			}
			if got := h.seen()[1:]; !slices.Equal(got, c.want) {
				t.Errorf("runs of %v rows, expected %v", got, c.want)
			}
		})
	}
}

func TestOtherShapesAreNotCombined(t *testing.T) {
	s, _, p := start(t, Options{}, one("w", Config{}, wide()))
	h := hold(p)
	in := func(rows, width int) *Request {
		x := tensor.New(tensor.Float32, rows, width)
		for i := range x.Float32s() {
			x.Float32s()[i] = float32(i)
		}
		return &Request{Model: "w", Inputs: []Tensor{{"x", x}}}
	}
	first := occupy(t, s, h, in(1, 3))
	var done []<-chan error
	resps := make([]Response, 5)
	for i, width := range []int{3, 3, 5, 3, 3} {
		done = append(done, send(t, s, context.Background(), in(i+1, width), &resps[i]))
	}
	close(h.go_)
	for i, d := range append(done, first) {
		if err := <-d; err != nil {
			t.Error(i, err)
		}
	}
	for i, r := range resps {
		y := r.Outputs[0].Value
		if y.Shape()[0] != i+1 || y.Float32s()[y.Len()-1] != float32(2*(y.Len()-1)) {
			t.Errorf("request %d: %v", i, y)
		}
	}
	if got := h.seen()[1:]; !slices.Equal(got, []int{3, 3, 9}) {
		t.Errorf("runs of %v rows", got)
	}
}

func TestDelayAndPreferredSizes(t *testing.T) {
	clock := newHand()
	s, _, p := start(t, Options{Clock: clock}, one("m", Config{MaxBatch: 8, Batching: Batching{MaxDelay: time.Second, Preferred: []int{4}}}, scale(2)))
	h := hold(p)
	close(h.go_)
	var done []<-chan error
	go4 := func(n int) {
		for range n {
			ch := make(chan error, 1)
			before := s.pending("m")
			go func() { ch <- s.Infer(context.Background(), ask("m", 1, 2), &Response{}) }()
			done = append(done, ch)
			until(t, "the request arrives", func() bool { return s.pending("m") > before || len(h.seen()) > 0 })
		}
	}
	go4(3)
	<-clock.armed
	if n := len(h.seen()); n != 0 {
		t.Fatalf("%d runs before the delay is over", n)
	}
	until(t, "three wait", func() bool { return s.waiting("m") == 3 })
	go4(1) // the fourth makes the preferred size
	for _, d := range done {
		if err := <-d; err != nil {
			t.Error(err)
		}
	}
	done = nil
	if got := h.seen(); !slices.Equal(got, []int{4}) {
		t.Errorf("runs of %v rows", got)
	}
	for i := range 2 {
		done = append(done, send(t, s, context.Background(), ask("m", 1, float32(i)), &Response{}))
	}
	clock.move(2 * time.Second)
	for _, d := range done {
		if err := <-d; err != nil {
			t.Error(err)
		}
	}
	if got := h.seen(); !slices.Equal(got, []int{4, 2}) {
		t.Errorf("runs of %v rows", got)
	}
	// One that must be answered in a moment does not wait for company as long: half its time is
	// left for the run.
	ctx := due{context.Background(), clock.Now().Add(500 * time.Millisecond)}
	s2 := s.model("m").table.Load().fallback
	c := &call{ctx: ctx, begin: clock.Now(), done: make(chan error, 1), resp: &Response{}}
	if err := s2.plan.take(c, ask("m", 1, 2), false); err != nil {
		t.Fatal(err)
	}
	answered := make(chan error, 1)
	go func() { answered <- s2.do(c) }()
	until(t, "it waits", func() bool { return s.waiting("m") == 1 })
	clock.move(250 * time.Millisecond)
	if err := <-answered; err != nil {
		t.Error(err)
	}
}

// due is a context with a deadline by the test's clock.
type due struct {
	context.Context
	at time.Time
}

func (d due) Deadline() (time.Time, bool) { return d.at, true }

func TestOverload(t *testing.T) {
	clock := newHand()
	s, _, p := start(t, Options{Clock: clock}, one("m", Config{MaxQueue: 3, QueueTimeout: time.Second}, scale(2)))
	h := hold(p)
	first := occupy(t, s, h, ask("m", 1, 2))
	var done []<-chan error
	for range 3 {
		done = append(done, send(t, s, context.Background(), ask("m", 1, 2), &Response{}))
	}
	for range 100 {
		wantCode(t, s.Infer(t.Context(), ask("m", 1, 2), &Response{}), Overloaded)
	}
	for range 3 {
		<-clock.armed
	}
	clock.move(2 * time.Second)
	for _, d := range done {
		wantCode(t, <-d, Overloaded)
	}
	if n := s.waiting("m"); n != 0 {
		t.Errorf("%d wait", n)
	}
	last := send(t, s, context.Background(), ask("m", 1, 2), &Response{})
	close(h.go_)
	if err := errors.Join(<-first, <-last); err != nil {
		t.Error(err)
	}
	stats, _ := s.Statistics("m", "")
	if stats[0].Failures[Overloaded] != 103 || stats[0].Success.Count != 2 {
		t.Errorf("%+v", stats[0])
	}
}

func TestConcurrencyIsLimited(t *testing.T) {
	s, _, p := start(t, Options{MaxConcurrent: 2}, one("m", Config{}, scale(2)))
	h := hold(p)
	first := occupy(t, s, h, ask("m", 1, 2))
	second := send(t, s, context.Background(), ask("m", 1, 2), &Response{})
	wantCode(t, s.Infer(t.Context(), ask("m", 1, 2), &Response{}), Overloaded)
	close(h.go_)
	if err := errors.Join(<-first, <-second); err != nil {
		t.Error(err)
	}
}

func TestCallersThatLeave(t *testing.T) {
	s, _, p := start(t, Options{}, one("m", Config{}, scale(2)))
	s.unbounded("m")
	// One that waits is taken out.
	h := hold(p)
	first := occupy(t, s, h, ask("m", 1, 2))
	ctx, cancel := context.WithCancel(t.Context())
	queued := send(t, s, ctx, ask("m", 1, 2), &Response{})
	cancel()
	wantCode(t, <-queued, Canceled)
	if n := s.waiting("m"); n != 0 {
		t.Errorf("%d wait", n)
	}
	close(h.go_)
	if err := <-first; err != nil {
		t.Error(err)
	}
	// A run that hangs is stopped when the last one who waits for it has left.
	h = hold(p)
	late := expiring{t.Context(), make(chan struct{})}
	answered := make(chan error, 1)
	go func() { answered <- s.Infer(late, ask("m", 1, 2), &Response{}) }()
	until(t, "the run has begun", func() bool { return len(h.seen()) > 0 })
	close(late.over)
	wantCode(t, <-answered, DeadlineExceeded)
	p.onRun(func(context.Context, []*tensor.Tensor) error { return nil })
	if err := s.Infer(t.Context(), ask("m", 1, 2), &Response{}); err != nil {
		t.Errorf("the instance is lost: %v", err)
	}
	// A run that cannot be stopped does not keep its caller.
	begun, stuck := make(chan struct{}), make(chan struct{})
	p.onRun(func(context.Context, []*tensor.Tensor) error { close(begun); <-stuck; return nil })
	late = expiring{t.Context(), make(chan struct{})}
	resp := Response{Outputs: []Tensor{{"y", tensor.New(tensor.Float32, 1, 2)}}}
	y := resp.Outputs[0].Value
	go func() { answered <- s.Infer(late, ask("m", 1, 2), &resp) }()
	<-begun
	close(late.over)
	wantCode(t, <-answered, DeadlineExceeded)
	closing, stop := context.WithTimeout(t.Context(), time.Millisecond)
	defer stop()
	wantCode(t, s.Close(closing), DeadlineExceeded)
	close(stuck)
	if err := s.Close(t.Context()); err != nil {
		t.Error(err)
	}
	if v := y.Float32s(); v[0] != 0 || v[1] != 0 {
		t.Errorf("the response was written after its caller had left: %v", v)
	}
	ctx, cancel = context.WithCancel(t.Context())
	cancel()
	wantCode(t, s.Infer(ctx, ask("m", 1, 2), &Response{}), NotReady)
}

// expiring is a context whose deadline has passed when over is closed.
type expiring struct {
	context.Context
	over chan struct{}
}

func (e expiring) Done() <-chan struct{} { return e.over }

func (e expiring) Err() error {
	select {
	case <-e.over:
		return context.DeadlineExceeded
	default:
		return nil
	}
}

func TestOneBadRequestFailsAlone(t *testing.T) {
	s, _, p := start(t, Options{}, one("m", Config{}, scale(2)))
	h := hold(p)
	first := occupy(t, s, h, ask("m", 1, 2))
	var done []<-chan error
	resps := make([]Response, 5)
	for i := range resps {
		done = append(done, send(t, s, t.Context(), ask("m", float32(i), 13), &resps[i]))
	}
	p.onRun(func(_ context.Context, in []*tensor.Tensor) error {
		for i := 0; i < in[0].Len(); i += 2 {
			if in[0].Float32s()[i] == 3 {
				return errors.New("the model cannot take 3")
			}
		}
		return nil
	})
	close(h.go_)
	if err := <-first; err != nil {
		t.Error(err)
	}
	for i, d := range done {
		err := <-d
		if i == 3 {
			wantCode(t, err, Internal)
		} else if err != nil || resps[i].Outputs[0].Value.Float32s()[0] != float32(2*i) {
			t.Errorf("request %d: %v", i, err)
		}
	}
}

func TestBatchedEqualsUnbatched(t *testing.T) {
	compared := 0
	for _, c := range testengines.All(t) {
		for _, config := range []Config{{Instances: 2}, {Instances: 1, MaxBatch: 16}, {Batching: Batching{Off: true}}, {Batching: Batching{MaxDelay: time.Microsecond}}} {
			s, err := New(Options{Compiler: c}, &shelf{list: []Listing{one("m", config, scale(1.7)), one("w", config, wide())}})
			if err != nil {
				t.Fatal(err)
			}
			if err := s.Poll(t.Context()); err != nil {
				t.Fatal(err)
			}
			var wg sync.WaitGroup
			var mu sync.Mutex
			for g := range 16 {
				wg.Go(func() {
					ctx := context.Background()
					if g%2 == 0 {
						ctx = t.Context()
					}
					var resp Response
					n := 0
					for i := range 100 {
						rows := 1 + (g+i)%5
						x := make([]float32, 2*rows)
						for k := range x {
							x[k] = float32(g*1000+i*10) + float32(k)/7
						}
						req, k := ask("m", x...), float32(1.7)
						if i%3 == 0 {
							req.Model, k = "w", 2
						}
						if err := s.Infer(ctx, req, &resp); err != nil {
							t.Error(err)
							return
						}
						for j, y := range resp.Outputs[0].Value.Float32s() {
							if y != k*x[j] {
								t.Errorf("%s %+v: y = %v for x = %v", c.Name(), config, y, x[j])
								return
							}
							n++
						}
					}
					mu.Lock()
					compared += n
					mu.Unlock()
				})
			}
			wg.Wait()
			if err := s.Close(t.Context()); err != nil {
				t.Error(err)
			}
		}
	}
	if compared < 30000 {
		t.Errorf("%d values compared", compared)
	}
}

func TestStatistics(t *testing.T) {
	var seen sync.Map
	s, _, _ := start(t, Options{Observer: observerFunc(func(o Observation) { seen.Store(fmt.Sprint(o.Model, o.Rows, o.Err == nil), true) })}, one("m", Config{}, scale(2)))
	for range 10 {
		if err := s.Infer(t.Context(), ask("m", 1, 2, 3, 4), &Response{}); err != nil {
			t.Fatal(err)
		}
	}
	wantCode(t, s.Infer(t.Context(), &Request{Model: "m"}, &Response{}), InvalidArgument)
	all, err := s.Statistics("", "")
	if err != nil || len(all) != 1 {
		t.Fatal(all, err)
	}
	st := all[0]
	if st.Success.Count != 10 || st.Failed.Count != 1 || st.Inferences != 20 || st.Executions != 10 || len(st.Batches) != 1 || st.Batches[0].Rows != 2 || st.Batches[0].Infer.Count != 10 || st.Latency.Count != 10 || st.Inference.Count != 10 || st.Inference.Max > st.Batches[0].Infer.Total || st.LastInference.IsZero() {
		t.Errorf("%+v", st)
	}
	if q := st.Latency.Quantile(0.5); q <= 0 || q > st.Latency.Max || st.Latency.Quantile(1) != st.Latency.Max {
		t.Errorf("median %v of at most %v", q, st.Latency.Max)
	}
	for _, key := range []string{"m2 true", "m1 false"} {
		if _, ok := seen.Load(key); !ok {
			t.Errorf("%s was not observed", key)
		}
	}
	if _, err := s.Statistics("q", ""); CodeOf(err) != NotFound {
		t.Error(err)
	}
}

type observerFunc func(Observation)

func (f observerFunc) Observe(o Observation) { f(o) }

func TestBucketsOfLatency(t *testing.T) {
	last := -1
	for ns := uint64(0); ns < 1<<62; ns += 1 + ns/9 {
		i := bucketOf(ns)
		if i < last || bucketBound(i) < ns || i > 0 && bucketBound(i-1) >= ns || float64(bucketBound(i)) > 1.125*float64(ns)+1 {
			t.Fatalf("%d ns in bucket %d up to %d", ns, i, bucketBound(i))
		}
		last = i
	}
	if last < 400 {
		t.Errorf("%d buckets", last)
	}
}
