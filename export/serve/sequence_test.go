package serve

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// y is the first output's first value.
func (r *Response) y() float32 { return r.Outputs[0].Value.Float32s()[0] }

func TestSequence(t *testing.T) {
	s, _, _ := start(t, Options{}, one("c", Config{}, counter(1)))
	steps := []struct {
		id         string
		x          float32
		start, end bool
		want       float32 // 0 for a refusal
	}{
		{"a", 1, true, false, 101},
		{"b", 5, true, false, 105},
		{"a", 2, false, false, 103},
		{"b", 5, false, false, 110},
		{"a", 3, false, true, 106},
		{"a", 3, false, false, 0},
		{"a", 1, true, false, 101}, // again
		{"b", 1, true, false, 101}, // a start drops what was there
		{"b", 1, false, true, 102},
		{"q", 7, true, true, 107}, // one step only
		{"q", 7, false, false, 0},
		{"a", 0, false, true, 101},
	}
	var resp Response
	for i, step_ := range steps {
		err := s.Infer(t.Context(), step("c", step_.id, step_.x, step_.start, step_.end), &resp)
		switch {
		case step_.want == 0:
			wantCode(t, err, InvalidArgument)
		case err != nil || resp.y() != step_.want || len(resp.Outputs) != 1:
			t.Errorf("step %d: %v, %v", i, err, resp.Outputs)
		}
	}
	st, err := s.Statistics("c", "")
	if err != nil || st[0].Sequences != 0 || st[0].Success.Count != 10 {
		t.Errorf("%+v %v", st, err)
	}
	if err := s.Infer(t.Context(), &Request{Model: "c", Outputs: []string{"s_next"}, Inputs: []Tensor{{"x", tensor.Of([]float32{1}, 1, 1)}}, Sequence: Sequence{ID: "z", Start: true, End: true}}, &resp); err != nil || resp.y() != 101 {
		t.Error("a state that is asked for is given", err)
	}
}

func TestSequencesAreBoundedAndExpire(t *testing.T) {
	clock := newHand()
	s, _, _ := start(t, Options{Clock: clock}, one("c", Config{Sequences: Sequences{Max: 3, Idle: time.Minute}}, counter(1)))
	infer := func(id string, start, end bool) error {
		return s.Infer(t.Context(), step("c", id, 1, start, end), &Response{})
	}
	if err := errors.Join(infer("1", true, false), infer("2", true, false), infer("3", true, false)); err != nil {
		t.Fatal(err)
	}
	wantCode(t, infer("4", true, false), Overloaded)
	clock.move(40 * time.Second)
	if err := infer("1", false, false); err != nil {
		t.Error(err)
	}
	clock.move(30 * time.Second)
	if err := infer("4", true, false); err != nil { // 2 and 3 make room
		t.Error(err)
	}
	wantCode(t, infer("2", false, false), InvalidArgument)
	if err := infer("1", false, true); err != nil {
		t.Error(err)
	}
	// Nobody polls and nobody asks: the others go by themselves, and no timer is left.
	clock.move(2 * time.Minute)
	if n := open(t, s, "c"); n != 0 || len(clock.timers) != 0 {
		t.Errorf("%d sequences and %d timers are left", n, len(clock.timers))
	}
	// A sequence that goes on stays, however long it takes altogether, and its version with it.
	if err := infer("5", true, false); err != nil {
		t.Error(err)
	}
	for range 20 {
		clock.move(50 * time.Second)
		if err := infer("5", false, false); err != nil {
			t.Error(err)
		}
	}
	clock.move(30 * time.Second)
	if n := open(t, s, "c"); n != 1 {
		t.Errorf("%d sequences are open, expected the one that goes on", n)
	}
	clock.move(40 * time.Second)
	if n := open(t, s, "c"); n != 0 || len(clock.timers) != 0 {
		t.Errorf("%d sequences and %d timers are left", n, len(clock.timers))
	}
}

// open is the number of a model's open sequences.
func open(t *testing.T, s *Server, model string) int {
	t.Helper()
	st, err := s.Statistics(model, "")
	if err != nil {
		t.Fatal(err)
	}
	return st[0].Sequences
}

// A sequence that was in use while its model was unloaded ends when it is idle: nothing of the
// model stays.
func TestSequencesOfUnloadedModelsExpire(t *testing.T) {
	clock := newHand()
	s, _, p := start(t, Options{Clock: clock, Mode: Explicit}, one("c", Config{Sequences: Sequences{Idle: time.Minute}}, counter(1)))
	if err := s.Load(t.Context(), "c", LoadOptions{}); err != nil {
		t.Fatal(err)
	}
	h := hold(p)
	done := make(chan error, 1)
	go func() { done <- s.Infer(t.Context(), step("c", "1", 1, true, false), &Response{}) }()
	until(t, "busy", func() bool { return len(h.seen()) == 1 })
	v := s.model("c").table.Load().versions[0]
	if err := s.Unload(t.Context(), "c"); err != nil {
		t.Fatal(err)
	}
	close(h.go_)
	if err := <-done; err != nil {
		t.Error(err)
	}
	// A run lets go of its version after it has answered.
	until(t, "one reference to the version, while its sequence is open", func() bool { return v.refs.Load() == 1 })
	clock.move(time.Minute)
	if n := v.refs.Load(); n != 0 || len(clock.timers) != 0 {
		t.Errorf("%d references and %d timers are left", n, len(clock.timers))
	}
}

func TestStepsOfSequencesShareRuns(t *testing.T) {
	s, _, p := start(t, Options{}, one("c", Config{}, counter(1)))
	h := hold(p)
	first := make(chan error, 1)
	go func() { first <- s.Infer(context.Background(), step("c", "first", 1, true, false), &Response{}) }()
	until(t, "busy", func() bool { return len(h.seen()) == 1 })
	resps := make([]Response, 9)
	var done []<-chan error
	for i := range resps { // three sequences of three steps, all sent before the first is answered
		done = append(done, send(t, s, t.Context(), step("c", fmt.Sprint(i%3), float32(1+i%3), i < 3, i >= 6), &resps[i]))
	}
	close(h.go_)
	for i, d := range done {
		if err := <-d; err != nil {
			t.Fatal(i, err)
		}
		if want := float32(100 + (i/3+1)*(1+i%3)); resps[i].y() != want {
			t.Errorf("step %d: %v, expected %v", i, resps[i].y(), want)
		}
	}
	if err := <-first; err != nil {
		t.Error(err)
	}
	rows := h.seen()
	if len(rows) < 4 || rows[1] != 3 {
		t.Errorf("runs of %v rows, expected the three sequences together", rows)
	}
}

func TestStepsThatFailLeaveTheState(t *testing.T) {
	s, _, p := start(t, Options{}, one("c", Config{}, counter(1)))
	s.unbounded("c")
	var resp Response
	infer := func(id string, start bool) error {
		return s.Infer(t.Context(), step("c", id, 1, start, false), &resp)
	}
	if err := infer("a", true); err != nil {
		t.Fatal(err)
	}
	p.onRun(func(context.Context, []*tensor.Tensor) error { return errors.New("broken") })
	wantCode(t, infer("a", false), Internal)
	wantCode(t, infer("b", true), Internal)
	h := hold(p)
	ctx, cancel := context.WithCancel(t.Context())
	left := make(chan error, 1)
	go func() { left <- s.Infer(ctx, step("c", "a", 50, false, false), &Response{}) }()
	until(t, "it runs", func() bool { return len(h.seen()) == 1 })
	cancel()
	wantCode(t, <-left, Canceled)
	p.onRun(func(context.Context, []*tensor.Tensor) error { return nil })
	if err := infer("a", false); err != nil || resp.y() != 102 {
		t.Errorf("%v, %v", resp.y(), err)
	}
	wantCode(t, infer("b", false), InvalidArgument) // it never began
	// Steps behind a first step that fails fail too.
	fail, running := make(chan error), make(chan struct{})
	p.onRun(func(context.Context, []*tensor.Tensor) error { close(running); return <-fail })
	one := make(chan error, 1)
	go func() { one <- s.Infer(t.Context(), step("c", "q", 1, true, false), &Response{}) }()
	<-running
	two := send(t, s, t.Context(), step("c", "q", 1, false, false), &Response{})
	three := send(t, s, t.Context(), step("c", "q", 1, true, false), &resp)
	p.onRun(func(_ context.Context, in []*tensor.Tensor) error { return nil })
	fail <- errors.New("broken")
	wantCode(t, <-one, Internal)
	wantCode(t, <-two, InvalidArgument)
	if err := <-three; err != nil || resp.y() != 101 {
		t.Errorf("a start begins again: %v", err)
	}
}

func TestASequenceStaysOnItsVersion(t *testing.T) {
	s, src, p := start(t, Options{}, one("c", Config{}, counter(1)))
	var resp Response
	infer := func(id string, start, end bool, want float32, version string) {
		t.Helper()
		if err := s.Infer(t.Context(), step("c", id, 1, start, end), &resp); err != nil || resp.y() != want || resp.Version != version {
			t.Errorf("%v on version %s, %v; expected %v on %s", resp.y(), resp.Version, err, want, version)
		}
	}
	infer("a", true, false, 101, "1")
	src.put(one("c", Config{}, counter(1), counter(10)))
	if err := s.Poll(t.Context()); err != nil {
		t.Fatal(err)
	}
	infer("b", true, false, 110, "2")
	infer("a", false, false, 102, "1")
	infer("b", false, false, 120, "2")
	if n := p.sessions.Load(); n != 2 {
		t.Errorf("%d sessions, expected both versions", n)
	}
	if index := s.Index(false); len(index) != 2 || index[0].State != Ready || index[1].State != Unloading || index[1].Version != "1" {
		t.Errorf("%+v", index)
	}
	infer("a", false, true, 103, "1")
	until(t, "the old version closes", func() bool { return p.sessions.Load() == 1 })
	infer("a", true, true, 110, "2")
}

func TestManySequencesAtOnce(t *testing.T) {
	s, src, _ := start(t, Options{}, one("c", Config{Instances: 2}, counter(1)))
	var wg sync.WaitGroup
	var mu sync.Mutex
	steps := 0
	for g := range 12 {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(1, uint64(g)))
			n := 0
			var resp Response
			for episode := range 20 {
				id := fmt.Sprintf("%d/%d", g, episode)
				sum, k := float32(100), float32(0)
				length := 1 + r.IntN(20)
				for i := range length {
					x := float32(r.IntN(9))
					ctx := context.Background()
					if i%2 == 0 {
						ctx = t.Context()
					}
					if err := s.Infer(ctx, step("c", id, x, i == 0, i == length-1), &resp); err != nil {
						t.Error(err)
						return
					}
					if i == 0 {
						k = map[string]float32{"1": 1, "2": 3}[resp.Version]
					}
					if sum += k * x; resp.y() != sum {
						t.Errorf("sequence %s step %d on version %s: %v, expected %v", id, i, resp.Version, resp.y(), sum)
						return
					}
					n++
				}
			}
			mu.Lock()
			steps += n
			mu.Unlock()
		})
	}
	models := []Listing{one("c", Config{}, counter(1)), one("c", Config{}, counter(1), counter(3))}
	for i := range 200 {
		src.put(models[i%2])
		if err := s.Poll(t.Context()); err != nil {
			t.Error(err)
		}
	}
	wg.Wait()
	if steps < 2000 {
		t.Errorf("%d steps", steps)
	}
}
