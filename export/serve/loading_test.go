package serve

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/onnxrl/onnxrl/runtime/portable"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

func TestModelsLoadSideBySide(t *testing.T) {
	const models = 5
	var all sync.WaitGroup
	all.Add(models)
	var list []Listing
	for i := range models {
		list = append(list, one(fmt.Sprint("m", i), Config{}, scale(float32(i+1))))
	}
	// None is ready before all are about to be.
	s, _, _ := start(t, Options{Verify: func(context.Context, *Content) error {
		all.Done()
		all.Wait()
		return nil
	}}, list...)
	for i := range models {
		var resp Response
		if err := s.Infer(t.Context(), ask(fmt.Sprint("m", i), 1, 1), &resp); err != nil || resp.y() != float32(i+1) {
			t.Error(err)
		}
	}
}

func TestVerification(t *testing.T) {
	var refuse error
	seen := 0
	s, src, _ := start(t, Options{Verify: func(_ context.Context, c *Content) error {
		if c.Model == nil || c.Golden == nil {
			t.Errorf("%+v", c)
		}
		seen++
		return refuse
	}}, Listing{Name: "m", Versions: []Candidate{candidate("1", scale(2), golden(2))}})
	refuse = errors.New("the bars give other features")
	src.put(Listing{Name: "m", Versions: []Candidate{candidate("1", scale(2), golden(2)), candidate("2", scale(3), golden(3))}})
	if err := s.Poll(t.Context()); err == nil || !strings.Contains(err.Error(), "verify: the bars give other features") {
		t.Error(err)
	}
	var resp Response
	if err := s.Infer(t.Context(), ask("m", 1, 1), &resp); err != nil || resp.y() != 2 || resp.Version != "1" || seen != 3 {
		t.Error(resp.Version, seen, err)
	}
	if err := s.ModelReady("m", "2"); err == nil || !strings.Contains(err.Error(), "the bars give other features") {
		t.Error(err)
	}
}

// hang makes golden runs of scale(k) wait; stubborn ones do not even end with their context.
func hang(p *probe, stubborn bool) (begun <-chan struct{}, let func()) {
	entered, wait := make(chan struct{}, 8), make(chan struct{})
	p.onRun(func(ctx context.Context, in []*tensor.Tensor) error {
		if in[0].Shape()[0] != 2 { // golden inputs have two rows
			return nil
		}
		entered <- struct{}{}
		if stubborn {
			<-wait
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-wait:
			return nil
		}
	})
	return entered, sync.OnceFunc(func() { close(wait) })
}

func TestAVersionThatHangsIsGivenUp(t *testing.T) {
	for _, stubborn := range []bool{false, true} {
		clock := newHand()
		s, src, p := start(t, Options{Clock: clock, LoadTimeout: time.Minute}, one("m", Config{}, scale(2)), one("n", Config{}, scale(2)))
		begun, let := hang(p, stubborn)
		defer let()
		one := candidate("1", scale(2), nil)
		src.put(Listing{Name: "m", Versions: []Candidate{one, candidate("2", scale(3), golden(3))}})
		polled := make(chan error)
		go func() { polled <- s.Poll(context.Background()) }()
		<-begun
		if !slices.ContainsFunc(s.Index(false), func(st ModelStatus) bool {
			return st.Name == "m" && st.Version == "2" && st.State == Loading && st.Reason == "replaying golden inputs"
		}) {
			t.Errorf("%+v", s.Index(false))
		}
		// Others are looked at meanwhile, once with Watch.
		src.put(Listing{Name: "n", Versions: []Candidate{candidate("2", scale(5), nil)}})
		ticks := make(chan time.Time, 3)
		s.model("m").busy.Store(true) // as an earlier tick would
		for range cap(ticks) {
			ticks <- time.Time{}
		}
		close(ticks)
		s.Watch(t.Context(), ticks, func(err error) { t.Error(err) })
		s.model("m").busy.Store(false)
		serves := func(model, version string, k float32) {
			t.Helper()
			var resp Response
			if err := s.Infer(t.Context(), ask(model, 1, 1), &resp); err != nil || resp.Version != version || resp.y() != k {
				t.Error(resp.Version, err)
			}
		}
		serves("m", "1", 2)
		serves("n", "2", 5)
		clock.move(2 * time.Minute)
		const say = "replaying golden inputs takes too long: not ready after 1m0s"
		if err := <-polled; err == nil || !strings.Contains(err.Error(), say) {
			t.Error(err)
		}
		serves("m", "1", 2)
		if err := s.ModelReady("m", "2"); CodeOf(err) != NotReady || !strings.Contains(err.Error(), say) {
			t.Error(err)
		}
		if err := s.Poll(t.Context()); err == nil || len(begun) > 0 { // not tried again
			t.Error(err)
		}
		let()
		until(t, "what was given up is closed", func() bool { return p.sessions.Load() == 2 })
	}
}

func TestUnloadGivesUpWhatLoads(t *testing.T) {
	src := Listing{Name: "m", Versions: []Candidate{candidate("1", scale(2), golden(2))}}
	s, _, p := start(t, Options{Mode: Explicit}, src)
	begun, let := hang(p, true)
	loaded := make(chan error, 2)
	for range 2 { // one of them waits for its turn
		go func() { loaded <- s.Load(context.Background(), "m", LoadOptions{}) }()
	}
	<-begun
	until(t, "both look", func() bool {
		s.change.Lock()
		defer s.change.Unlock()
		return s.looks == 3
	})
	if err := s.Unload(t.Context(), "m"); err != nil {
		t.Error(err)
	}
	for range 2 {
		wantCode(t, <-loaded, NotReady)
	}
	if s.model("m").wanted.Load() || len(begun) > 0 {
		t.Error("it was loaded nevertheless")
	}
	let()
	until(t, "what was given up is closed", func() bool { return p.sessions.Load() == 0 })
	if err := s.Load(t.Context(), "m", LoadOptions{}); err != nil {
		t.Error(err)
	}
	if err := s.Infer(t.Context(), ask("m", 1, 1), &Response{}); err != nil {
		t.Error(err)
	}
}

func TestCloseWaitsForWhatWasGivenUp(t *testing.T) {
	p := &probe{Compiler: portable.New()}
	s, err := New(Options{Compiler: p}, &shelf{list: []Listing{{Name: "m", Versions: []Candidate{candidate("1", scale(2), golden(2))}}}})
	if err != nil {
		t.Fatal(err)
	}
	begun, let := hang(p, true)
	polled := make(chan error)
	go func() { polled <- s.Poll(context.Background()) }()
	<-begun
	ctx, cancel := context.WithCancel(t.Context())
	closed := make(chan error)
	go func() { closed <- s.Close(ctx) }()
	wantCode(t, <-polled, NotReady)
	cancel()
	wantCode(t, <-closed, DeadlineExceeded)
	let()
	if err := s.Close(t.Context()); err != nil || p.sessions.Load() != 0 {
		t.Error(p.sessions.Load(), err)
	}
}

// A load that was given up keeps a thread, so with too many of them nothing more is loaded until
// some have ended; models that serve go on, and those that waited are loaded without being asked
// for again.
func TestTooMuchWasGivenUp(t *testing.T) {
	s, src, p := start(t, Options{MaxAbandonedLoads: 2}, one("m", Config{}, scale(2)))
	begun, let := hang(p, true)
	defer let()
	for i := range 2 {
		src.put(Listing{Name: fmt.Sprint("hangs", i), Versions: []Candidate{candidate("1", scale(3), golden(3))}})
		ctx, cancel := context.WithCancel(t.Context())
		polled := make(chan error)
		go func() { polled <- s.Poll(ctx) }()
		<-begun
		cancel()
		if err := <-polled; err == nil {
			t.Error("a poll that was cancelled succeeds")
		}
		if n := s.AbandonedLoads(); n != i+1 {
			t.Errorf("%d abandoned loads, expected %d", n, i+1)
		}
		src.remove(fmt.Sprint("hangs", i))
	}
	src.put(Listing{Name: "m", Versions: []Candidate{candidate("2", scale(5), nil)}})
	for range 2 {
		err := s.Poll(t.Context())
		wantCode(t, err, Overloaded)
		if err == nil || !strings.Contains(err.Error(), "2 abandoned loads still running; restart to load more") {
			t.Error(err)
		}
	}
	var resp Response
	if err := s.Infer(t.Context(), ask("m", 1, 1), &resp); err != nil || resp.Version != "1" {
		t.Error(resp.Version, err)
	}
	let()
	until(t, "what was given up has ended", func() bool { return s.AbandonedLoads() == 0 })
	if err := s.Poll(t.Context()); err != nil {
		t.Error(err)
	}
	if err := s.Infer(t.Context(), ask("m", 1, 1), &resp); err != nil || resp.Version != "2" || resp.y() != 5 {
		t.Error(resp.Version, err)
	}
}
