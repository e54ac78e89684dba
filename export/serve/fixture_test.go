package serve

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/onnxrl/onnxrl/models/artifact"
	"github.com/onnxrl/onnxrl/runtime/engine"
	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/portable"
	"github.com/onnxrl/onnxrl/runtime/sorted"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

func batchOf(d tensor.DType, dims ...onnx.Dim) onnx.TensorType {
	return onnx.TensorType{DType: d, Ranked: true, Dims: append([]onnx.Dim{onnx.Symbol("batch")}, dims...)}
}

func built(b *onnx.Builder) *onnx.Model {
	m, err := b.Model()
	if err != nil {
		panic(err)
	}
	return m
}

// scale gives y = k·x for x [batch, 2], and tag = k in every row, so that a mixture of two versions
// shows.
func scale(k float32) *onnx.Model {
	b := onnx.NewBuilder("scale", onnx.DefaultOpset)
	x := b.Input("x", batchOf(tensor.Float32, onnx.Known(2)))
	b.Output(b.Rename(b.Op("Mul", []onnx.Value{x, b.Float(k)}), "y"), batchOf(tensor.Float32, onnx.Known(2)))
	zero := b.Op("MatMul", []onnx.Value{x, b.Const(tensor.New(tensor.Float32, 2, 1))})
	b.Output(b.Rename(b.Op("Add", []onnx.Value{zero, b.Float(k)}), "tag"), batchOf(tensor.Float32, onnx.Known(1)))
	return built(b)
}

// wide gives y = 2·x for x [batch, width] of any width.
func wide() *onnx.Model {
	b := onnx.NewBuilder("wide", onnx.DefaultOpset)
	x := b.Input("x", batchOf(tensor.Float32, onnx.Symbol("width")))
	b.Output(b.Rename(b.Op("Mul", []onnx.Value{x, b.Float(2)}), "y"), batchOf(tensor.Float32, onnx.Symbol("width")))
	return built(b)
}

// counter is recurrent: y = s' = s + k·x, with x and s [batch, 1], beginning at 100.
func counter(k float32) *onnx.Model {
	b := onnx.NewBuilder("counter", onnx.DefaultOpset)
	one := batchOf(tensor.Float32, onnx.Known(1))
	x, s := b.Input("x", one), b.Input("s", one)
	sum := b.Op("Add", []onnx.Value{s, b.Op("Mul", []onnx.Value{x, b.Float(k)})})
	b.Output(b.Rename(sum, "y"), one)
	b.Output(b.Rename(sum, "s_next"), one)
	m := built(b)
	state := `[{"input": "s", "output": "s_next", "shape": [1], "initial": [100]}]`
	m.MetadataProps = append(m.MetadataProps, &onnx.MetadataProp{Key: StateKey, Value: state})
	return m
}

// golden are inputs of scale and its outputs for a factor.
func golden(k float32) *artifact.Golden {
	return &artifact.Golden{
		Inputs:  map[string]*tensor.Tensor{"x": tensor.Of([]float32{1, 2, 3, 4}, 2, 2)},
		Outputs: map[string]*tensor.Tensor{"y": tensor.Of([]float32{k, 2 * k, 3 * k, 4 * k}, 2, 2)},
	}
}

// shelf is a source in memory.
type shelf struct {
	mu   sync.Mutex
	list []Listing
}

func (s *shelf) Scan(context.Context) ([]Listing, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.list), nil
}

// put replaces a model.
func (s *shelf) put(l Listing) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.list = append(slices.DeleteFunc(slices.Clone(s.list), func(o Listing) bool { return o.Name == l.Name }), l)
}

// remove lists a model no more.
func (s *shelf) remove(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.list = slices.DeleteFunc(slices.Clone(s.list), func(o Listing) bool { return o.Name == name })
}

// one lists a model with versions 1, 2, … .
func one(name string, c Config, models ...*onnx.Model) Listing {
	l := Listing{Name: name, Config: c}
	for i, m := range models {
		l.Versions = append(l.Versions, candidate(strconv.Itoa(i+1), m, nil))
	}
	return l
}

func candidate(name string, m *onnx.Model, g *artifact.Golden) Candidate {
	return Candidate{Name: name, Stamp: fmt.Sprintf("%p", m), Open: func(context.Context) (*Content, error) {
		if m == nil {
			return nil, errors.New("the file is damaged")
		}
		return &Content{Model: m, Golden: g}, nil
	}}
}

// probe is an engine around another one: it counts what is open and lets a test look at every run.
type probe struct {
	engine.Compiler
	sessions, bindings, runs atomic.Int64
	// before is called at the begin of every run with the number of rows; the run fails with its
	// error.
	before atomic.Pointer[func(ctx context.Context, in []*tensor.Tensor) error]
}

type probedSession struct {
	engine.Session
	p *probe
}

type probedBinding struct {
	engine.Binding
	p  *probe
	in []*tensor.Tensor
}

func (p *probe) Compile(m *onnx.Model, o engine.Options) (engine.Session, error) {
	s, err := p.Compiler.Compile(m, o)
	if err != nil {
		return nil, err
	}
	p.sessions.Add(1)
	return &probedSession{s, p}, nil
}

func (p *probe) onRun(f func(ctx context.Context, in []*tensor.Tensor) error) { p.before.Store(&f) }

func (p *probe) enter(ctx context.Context, in []*tensor.Tensor) error {
	p.runs.Add(1)
	if f := p.before.Load(); f != nil {
		return (*f)(ctx, in)
	}
	return nil
}

func (s *probedSession) Run(ctx context.Context, out, in []*tensor.Tensor) error {
	if err := s.p.enter(ctx, in); err != nil {
		return err
	}
	return s.Session.Run(ctx, out, in)
}

func (s *probedSession) Bind(out, in []*tensor.Tensor) (engine.Binding, error) {
	b, err := s.Session.Bind(out, in)
	if err != nil {
		return nil, err
	}
	s.p.bindings.Add(1)
	return &probedBinding{b, s.p, in}, nil
}

func (s *probedSession) Close() error {
	err := s.Session.Close()
	if err == nil {
		s.p.sessions.Add(-1)
	}
	return err
}

func (b *probedBinding) Run() error {
	if err := b.p.enter(context.Background(), b.in); err != nil {
		return err
	}
	return b.Binding.Run()
}

func (b *probedBinding) Close() error {
	err := b.Binding.Close()
	if err == nil {
		b.p.bindings.Add(-1)
	}
	return err
}

// start serves what a shelf lists with the portable engine; at the end of the test everything must
// be closed again.
func start(t testing.TB, o Options, listings ...Listing) (*Server, *shelf, *probe) {
	t.Helper()
	p := &probe{Compiler: portable.New()}
	o.Compiler = p
	src := &shelf{list: listings}
	s, err := New(o, src)
	if err != nil {
		t.Fatal(err)
	}
	before := runtime.NumGoroutine()
	if err := s.Poll(t.Context()); err != nil {
		t.Fatal(err)
	}
	if c, ok := o.Clock.(*hand); ok {
		for len(c.armed) > 0 {
			<-c.armed // the limits on loading
		}
	}
	t.Cleanup(func() {
		if err := s.Close(context.Background()); err != nil {
			t.Errorf("close: %v", err)
		}
		if n, m := p.sessions.Load(), p.bindings.Load(); n != 0 || m != 0 {
			t.Errorf("%d sessions and %d bindings are left", n, m)
		}
		for end := time.Now().Add(patience); time.Now().Before(end); { // goroutines end shortly after what they waited for
			if runtime.NumGoroutine() <= before {
				return
			}
			runtime.Gosched()
		}
		buf := make([]byte, 1<<16)
		t.Errorf("%d goroutines, %d at the start\n%s", runtime.NumGoroutine(), before, buf[:runtime.Stack(buf, true)])
	})
	return s, src, p
}

func ask(model string, x ...float32) *Request {
	return &Request{Model: model, Inputs: []Tensor{{"x", tensor.Of(x, len(x)/2, 2)}}}
}

func step(model, id string, x float32, start, end bool) *Request {
	return &Request{Model: model, Inputs: []Tensor{{"x", tensor.Of([]float32{x}, 1, 1)}}, Sequence: Sequence{ID: id, Start: start, End: end}}
}

func wantCode(t testing.TB, err error, c Code) {
	t.Helper()
	if err == nil || CodeOf(err) != c {
		t.Errorf("got %v, expected %v", err, c)
	}
}

// hand is a clock that is moved by hand.
type hand struct {
	mu     sync.Mutex
	now    time.Time
	timers map[*handTimer]struct{}
	armed  chan struct{} // one for each timer that was set
}

type handTimer struct {
	at time.Time
	f  func()
}

func newHand() *hand {
	return &hand{now: time.Unix(1000, 0), timers: map[*handTimer]struct{}{}, armed: make(chan struct{}, 1024)}
}

func (h *hand) Now() time.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.now
}

func (h *hand) AfterFunc(d time.Duration, f func()) func() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	timer := &handTimer{h.now.Add(d), f}
	h.timers[timer] = struct{}{}
	h.armed <- struct{}{}
	return func() bool {
		h.mu.Lock()
		defer h.mu.Unlock()
		_, ok := h.timers[timer]
		delete(h.timers, timer)
		return ok
	}
}

// move advances the clock and runs what is due.
func (h *hand) move(d time.Duration) {
	h.mu.Lock()
	h.now = h.now.Add(d)
	var due []func()
	for timer := range sorted.Func(h.timers, func(a, b *handTimer) int { return a.at.Compare(b.at) }) {
		if !timer.at.After(h.now) {
			due = append(due, timer.f)
			delete(h.timers, timer)
		}
	}
	h.mu.Unlock()
	for _, f := range due {
		f()
	}
}

// patience is how long tests wait for what should come at once, on a machine that is busy with
// other things.
const patience = 2 * time.Minute

// until waits for a condition that other goroutines bring about.
func until(t testing.TB, what string, ok func() bool) {
	t.Helper()
	deadline := time.Now().Add(patience)
	for !ok() {
		if time.Now().After(deadline) {
			t.Fatalf("waited in vain: %s", what)
		}
		runtime.Gosched()
	}
}
