package serve

import (
	"context"
	"maps"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/onnxrl/onnxrl/models/artifact"
)

// Server serves models. It is safe for concurrent use.
type Server struct {
	options Options
	clock   Clock
	sources []Source

	models atomic.Pointer[map[string]*model] // replaced as a whole

	// change is held while sources are scanned and models are added or removed. looks counts these
	// occasions.
	change  sync.Mutex
	looks   uint64
	started atomic.Bool // the sources were scanned
	// slots bounds the versions that are read and compiled at once.
	slots chan struct{}
	// abandoned counts abandoned loads that are still running.
	abandoned atomic.Int64
	// crashes counts versions that would have ended the process.
	crashes atomic.Int64
	logMu   sync.Mutex
	// leaving says that requests are still answered, but should go elsewhere.
	leaving atomic.Bool
	// inflight counts requests; stopping refuses more, drained is closed when the last one is
	// answered after that.
	inflight atomic.Int64
	stopping atomic.Bool
	drained  chan struct{}
	drain    sync.Once
	alive    sync.WaitGroup // versions that load or are not closed
}

var _ Service = (*Server)(nil)

// New makes a server that serves nothing yet: call Poll, or Load. Close frees what it holds; the
// compiler and the sources are the caller's.
func New(o Options, sources ...Source) (*Server, error) {
	if o.Compiler == nil {
		return nil, fail(InvalidArgument, "new server: no compiler")
	}
	if o.MaxBatch < 0 || o.MaxConcurrent < 0 {
		return nil, fail(InvalidArgument, "new server: max batch %d and max concurrent %d, expected at least 0", o.MaxBatch, o.MaxConcurrent)
	}
	if o.MaxBatch == 0 {
		o.MaxBatch = DefaultMaxBatch
	}
	if o.LoadTimeout <= 0 {
		o.LoadTimeout = DefaultLoadTimeout
	}
	if o.MaxAbandonedLoads <= 0 {
		o.MaxAbandonedLoads = DefaultMaxAbandonedLoads
	}
	s := &Server{options: o, clock: o.Clock, sources: sources, drained: make(chan struct{}), slots: make(chan struct{}, runtime.GOMAXPROCS(0))}
	if s.clock == nil {
		s.clock = SystemClock{}
	}
	s.models.Store(&map[string]*model{})
	return s, nil
}

func (s *Server) log(status ModelStatus) {
	if s.options.Log != nil {
		s.logMu.Lock()
		defer s.logMu.Unlock()
		s.options.Log(status)
	}
}

// Infer implements [Service]: it answers a request, or says why not. The request's and response's
// tensors are not touched after it returns.
func (s *Server) Infer(ctx context.Context, req *Request, resp *Response) error {
	if err := s.enter(); err != nil {
		return err
	}
	defer s.leave()
	if err := req.bounded(); err != nil {
		return err
	}
	m := s.model(req.Model)
	if m == nil {
		return unknown(req.Model)
	}
	return m.infer(ctx, req, resp)
}

// enter counts a request in.
func (s *Server) enter() error {
	n := s.inflight.Add(1)
	if s.stopping.Load() {
		s.leave()
		return fail(NotReady, "the server is closing")
	}
	if limit := s.options.MaxConcurrent; limit > 0 && n > int64(limit) {
		s.leave()
		return fail(Overloaded, "the limit of %d concurrent requests is reached", limit)
	}
	return nil
}

func (s *Server) leave() {
	if s.inflight.Add(-1) == 0 && s.stopping.Load() {
		s.drain.Do(func() { close(s.drained) })
	}
}

func (s *Server) model(name string) *model { return (*s.models.Load())[name] }

func unknown(model string) error { return &Error{Code: NotFound, Err: UnknownModel(model)} }

// infer answers a request to the model.
func (m *model) infer(ctx context.Context, req *Request, resp *Response) error {
	s := m.server
	begin := s.clock.Now()
	c := calls.Get().(*call)
	c.ctx, c.resp, c.begin = ctx, resp, begin
	var v *version
	var t *table
	var err error
	if req.Sequence.ID != "" {
		c.seq, v, t, err = m.enterSequence(req, begin)
		c.start, c.end = req.Sequence.Start, req.Sequence.End
	} else {
		v, t, err = m.acquire(req)
	}
	if err != nil {
		c.recycle()
		return at(err, m.name, req.Version)
	}
	v.stats.pending.Add(1)
	err = v.plan.take(c, req, c.seq != nil)
	if o := v.observed; o != nil && err == nil {
		c.seen = slices.Grow(c.seen[:0], len(o.at))[:len(o.at)]
		err = v.see(c.in, c.seen, c.rows)
	}
	if err == nil {
		err = v.do(c)
	}
	now := s.clock.Now()
	if err == nil {
		resp.ID, resp.Model, resp.Version, resp.Digest, resp.Timing = req.ID, m.name, v.name, v.content.Digest, c.timing
		if len(t.shadows) > 0 {
			m.copyTo(t, v, c, req)
		}
	} else {
		err = at(err, m.name, v.name)
	}
	v.stats.pending.Add(-1)
	v.stats.answered(c.timing, now.Sub(begin), now, err)
	if o := s.options.Observer; o != nil {
		o.Observe(Observation{Model: m.name, Version: v.name, Rows: c.rows, Timing: c.timing, Total: now.Sub(begin), Err: err})
	}
	if c.seq != nil {
		m.leaveSequence(c.seq, now)
	}
	if !c.gone {
		c.recycle()
	}
	v.release()
	return err
}

// Live implements [Service].
func (s *Server) Live() bool { return true }

// Ready implements [Service].
func (s *Server) Ready() bool {
	if s.leaving.Load() || s.stopping.Load() || !s.started.Load() && s.options.Mode != Explicit {
		return false
	}
	serving, missing := 0, 0
	for _, m := range *s.models.Load() {
		switch {
		case !m.wanted.Load():
		case len(m.table.Load().versions) > 0:
			serving++
		case m.found.Load() && m.tried.Load():
			missing++
		default:
			return false
		}
	}
	return serving > 0 || missing == 0
}

// ModelReady implements [Service].
func (s *Server) ModelReady(name, version string) error {
	if s.leaving.Load() || s.stopping.Load() {
		return fail(NotReady, "the server is closing")
	}
	_, _, err := s.look(name, version)
	return err
}

// LameDuck has Ready and ModelReady say no from now on, so that those who divide requests send them
// elsewhere; what comes is still answered, until Close.
func (s *Server) LameDuck() { s.leaving.Store(true) }

// look finds a version without holding it: good for descriptions, which outlive it.
func (s *Server) look(name, version string) (*version, *table, error) {
	m := s.model(name)
	if m == nil {
		return nil, nil, unknown(name)
	}
	t := m.table.Load()
	if version == "" {
		if t.fallback == nil {
			return nil, nil, at(fail(NotReady, "%s", t.err), name, "")
		}
		return t.fallback, t, nil
	}
	v, err := t.find(version)
	return v, t, at(err, name, version)
}

// Metadata implements [Service].
func (s *Server) Metadata(name, version string) (Metadata, error) {
	v, t, err := s.look(name, version)
	if err != nil {
		return Metadata{}, err
	}
	d := Metadata{Name: name, Version: v.name, Aliases: t.aliasesOf(v), Inputs: v.ports(v.plan.given, v.plan.inState, v.plan.inControl), Outputs: v.ports(v.plan.answers, v.plan.outState), Info: maps.Clone(v.info), Manifest: v.content.Manifest, Digest: v.content.Digest}
	for _, w := range t.versions {
		d.Versions = append(d.Versions, w.name)
	}
	if v.plan.batch {
		d.MaxBatch = v.plan.limit
	}
	return d, nil
}

// Config implements [Service].
func (s *Server) Config(name, version string) (Config, error) {
	v, _, err := s.look(name, version)
	if err != nil {
		return Config{}, err
	}
	c := v.config
	if v.plan.batch {
		c.MaxBatch = v.plan.limit
	}
	c.State = slices.Clone(v.plan.states)
	return c, nil
}

// Golden implements [Service].
func (s *Server) Golden(name, version string) (*artifact.Golden, error) {
	v, _, err := s.look(name, version)
	if err != nil {
		return nil, err
	}
	return v.content.Golden, nil
}

// Index implements [Service].
func (s *Server) Index(ready bool) []ModelStatus {
	models := *s.models.Load()
	var list []ModelStatus
	for _, name := range slices.Sorted(maps.Keys(models)) {
		list = append(list, models[name].statuses(ready)...)
	}
	return list
}

// Statistics implements [Service].
func (s *Server) Statistics(name, version string) ([]Statistics, error) {
	if name == "" {
		var list []Statistics
		models := *s.models.Load()
		for _, n := range slices.Sorted(maps.Keys(models)) {
			list = append(list, models[n].statistics()...)
		}
		return list, nil
	}
	m := s.model(name)
	if m == nil {
		return nil, unknown(name)
	}
	if version == "" {
		return m.statistics(), nil
	}
	v, _, err := s.look(name, version)
	if err != nil {
		return nil, err
	}
	return []Statistics{v.statistics()}, nil
}

// statistics are those of the versions that serve, and then of those that did.
func (m *model) statistics() []Statistics {
	var list []Statistics
	seen := map[string]bool{}
	for _, v := range m.table.Load().versions {
		list = append(list, v.statistics())
		seen[v.name] = true
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(m.stats)) {
		if !seen[name] {
			list = append(list, m.stats[name].snapshot(m.name, name))
		}
	}
	return list
}

// Close refuses new requests, waits for those under way and frees all versions. When ctx ends
// first, it returns an error that says what is left; that goes on in the background.
func (s *Server) Close(ctx context.Context) error {
	s.stopping.Store(true)
	s.inflight.Add(1)
	s.leave() // closes drained where nothing is under way
	select {
	case <-s.drained:
	case <-ctx.Done():
		return fail(DeadlineExceeded, "close server: %d requests are still under way: %w", s.inflight.Load(), ctx.Err())
	}
	s.change.Lock()
	for name := range *s.models.Load() {
		s.remove(name, "the server is closing")
	}
	s.change.Unlock()
	closed := make(chan struct{})
	go func() {
		s.alive.Wait()
		close(closed)
	}()
	select {
	case <-closed:
		return nil
	case <-ctx.Done():
		return fail(DeadlineExceeded, "close server: runs that cannot be stopped are still under way: %w", ctx.Err())
	}
}
