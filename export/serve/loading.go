package serve

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/onnxrl/onnxrl/runtime/engine"
	"github.com/onnxrl/onnxrl/runtime/onnx/shape"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// loading is a version on its way to be ready.
type loading struct {
	m    *model
	name string
	// free gives back the place among those that are read and compiled.
	free func()
}

// at says how far it is, for the index and for the error where it takes too long.
func (l *loading) at(stage string) {
	l.m.mu.Lock()
	defer l.m.mu.Unlock()
	l.m.loading[l.name] = stage
}

// slot waits for a place among the versions that are read and compiled at once.
func (s *Server) slot(ctx context.Context) (free func(), err error) {
	select {
	case s.slots <- struct{}{}:
		return sync.OnceFunc(func() { <-s.slots }), nil
	case <-ctx.Done():
		return nil, ended(ctx)
	}
}

// errAbandoned refuses loads while too many abandoned ones are still running.
var errAbandoned = errors.New("nothing more is loaded")

// room is nil as long as there may be another load. An abandoned one keeps a thread and memory,
// because an engine's call cannot be cancelled: without a limit, a load that hangs would exhaust
// the process, one attempt after the other.
func (s *Server) room() error {
	if n := s.AbandonedLoads(); n >= s.options.MaxAbandonedLoads {
		return &Error{Code: Overloaded, Err: fmt.Errorf("%w: %d abandoned loads still running; restart to load more", errAbandoned, n)}
	}
	return nil
}

// AbandonedLoads implements [Service].
func (s *Server) AbandonedLoads() int { return int(s.abandoned.Load()) }

// loadInTime loads a version, and abandons the load when it exceeds its timeout or ctx ends: a file
// system that does not answer, a compiler or a golden run that never ends keep nobody waiting. An
// abandoned load is closed when it ends.
func (m *model) loadInTime(ctx context.Context, c Candidate, config Config, stamp string) (*version, error) {
	s := m.server
	free, err := s.slot(ctx)
	if err != nil {
		return nil, err
	}
	defer free()
	l := &loading{m: m, name: c.Name, free: free}
	l.at("reading")
	inner, cancel := context.WithCancel(ctx)
	defer cancel()
	late := make(chan struct{})
	stop := s.clock.AfterFunc(s.options.LoadTimeout, func() {
		close(late)
		cancel()
	})
	type outcome struct {
		v   *version
		err error
	}
	done := make(chan outcome, 1)
	s.alive.Add(1)
	go func() {
		v, err := m.load(inner, l, c, config, stamp)
		if err != nil {
			s.alive.Done()
		}
		done <- outcome{v, err}
	}()
	var got outcome
	select {
	case got = <-done:
	case <-inner.Done():
		got.err = inner.Err()
		s.abandoned.Add(1)
		go func() {
			if o := <-done; o.err == nil {
				o.v.release()
			}
			s.abandoned.Add(-1)
		}()
	}
	stop()
	m.mu.Lock()
	stage := m.loading[c.Name]
	delete(m.loading, c.Name)
	m.mu.Unlock()
	select {
	case <-late:
		if got.err != nil && ctx.Err() == nil {
			got.err = fmt.Errorf("%s takes too long: not ready after %v", stage, s.options.LoadTimeout)
		}
	default:
	}
	return got.v, got.err
}

// load reads, compiles and tries a version. It returns with one reference.
func (m *model) load(ctx context.Context, l *loading, c Candidate, config Config, stamp string) (*version, error) {
	content, err := c.Open(ctx)
	if err != nil {
		return nil, fmt.Errorf("read: %w", err)
	}
	v := &version{model: m, name: c.Name, stamp: stamp, config: config, content: content, info: map[string]string{}, callers: map[*Caller]struct{}{}}
	v.queue.v = v
	v.refs.Store(1)
	if err := v.compile(ctx, l); err != nil {
		return nil, errors.Join(err, v.shut())
	}
	for _, e := range content.Model.GetMetadataProps() {
		v.info[e.GetKey()] = e.GetValue()
	}
	if err := v.watchDrift(); err != nil {
		return nil, errors.Join(err, v.shut())
	}
	v.bounded = !repeats(content.Model)
	content.Model = nil // the engine has what it needs
	v.stats = m.counters(c.Name)
	for _, i := range v.instances {
		v.workers.Add(1)
		go i.loop()
		v.queue.free = append(v.queue.free, i)
	}
	return v, nil
}

// compile makes the version's instances and tries them.
func (v *version) compile(ctx context.Context, l *loading) error {
	s := v.model.server
	options := s.options.Engine
	options.Threads, options.BaseDir = v.config.Threads, v.content.BaseDir
	if err := v.prove(ctx, l, options); err != nil {
		return err
	}
	// Where inference fails, the engine says why.
	if env, err := shape.Infer(v.content.Model, nil); err == nil && env.Note() != "" {
		s.log(ModelStatus{Name: v.model.name, Version: v.name, State: Loading, Reason: env.Note()})
	}
	l.at("compiling")
	for range v.config.Instances {
		session, err := s.options.Compiler.Compile(v.content.Model, options)
		if err != nil {
			return fmt.Errorf("compile: %w", err)
		}
		v.instances = append(v.instances, &instance{v: v, session: session, work: make(chan struct{}, 1), views: map[int]*view{}})
		if ctx.Err() != nil {
			return ended(ctx)
		}
	}
	l.free()
	session := v.instances[0].session
	var err error
	if v.plan, err = newPlan(session, v.content, v.config, s.options.MaxBatch); err != nil {
		return err
	}
	l.at("replaying golden inputs")
	if err := replay(ctx, session, v.content.Golden); err != nil {
		return err
	}
	if verify := s.options.Verify; verify != nil {
		l.at("verifying")
		if err := verify(ctx, v.content); err != nil {
			return fmt.Errorf("verify: %w", err)
		}
	}
	l.at("warming up")
	if err := v.warm(ctx); err != nil {
		return err
	}
	return v.checkRows(ctx, l, options)
}

// checkRows makes requests run one by one where a row's answer may depend on the rows beside it.
func (v *version) checkRows(ctx context.Context, l *loading, o engine.Options) error {
	if !v.plan.batch || v.plan.maxBatch < 2 {
		return nil
	}
	l.at("comparing rows that run together with rows that run alone")
	var given map[string]*tensor.Tensor
	if g := v.content.Golden; g != nil {
		given = g.Inputs
	}
	err := engine.CheckRows(ctx, v.instances[0].session, given, v.model.server.options.Compiler, v.content.Model, o)
	if err == nil || ctx.Err() != nil {
		return ctx.Err()
	}
	v.plan.maxBatch = 1
	v.config.Batching = Batching{Off: true}
	v.model.server.log(ModelStatus{Name: v.model.name, Version: v.name, State: Loading, Reason: "requests run one by one, batching is off: " + err.Error()})
	return nil
}
