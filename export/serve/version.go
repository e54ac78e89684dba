package serve

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"onnxrl/runtime/engine"
	"onnxrl/runtime/onnx"
)

// version is a compiled version of a model. It is closed when its last reference is released: the table of versions holds one, and so does each request, run, sequence and shadow job.
type version struct {
	model  *model
	name   string
	stamp  string // of content and configuration
	config Config

	content   *Content
	plan      *plan
	instances []*instance
	queue     queue
	workers   sync.WaitGroup
	stats     *counters
	info      map[string]string

	refs atomic.Int64

	// bounded says that no run can take forever: nothing in the graph repeats until the data says so. perRow is the moving average of what a row takes, in nanoseconds, 0 before the first run.
	bounded bool
	perRow  atomic.Int64

	// callers are bound to the version and let go of it when it is retired.
	callersMu sync.Mutex
	retired   bool
	callers   map[*Caller]struct{}
}

// load reads, compiles and tries a version. It returns with one reference.
func (m *model) load(ctx context.Context, c Candidate, config Config, stamp string) (*version, error) {
	content, err := c.Open(ctx)
	if err != nil {
		return nil, fmt.Errorf("read: %w", err)
	}
	v := &version{model: m, name: c.Name, stamp: stamp, config: config, content: content, info: map[string]string{}, callers: map[*Caller]struct{}{}}
	v.queue.v = v
	v.refs.Store(1)
	if err := v.compile(ctx); err != nil {
		return nil, errors.Join(err, v.shut())
	}
	for _, e := range content.Model.GetMetadataProps() {
		v.info[e.GetKey()] = e.GetValue()
	}
	v.bounded = !repeats(content.Model)
	content.Model = nil // the engine has what it needs
	m.server.alive.Add(1)
	v.stats = m.counters(c.Name)
	for _, i := range v.instances {
		v.workers.Add(1)
		go i.loop()
		v.queue.free = append(v.queue.free, i)
	}
	return v, nil
}

func (v *version) compile(ctx context.Context) error {
	s := v.model.server
	options := s.options.Engine
	options.Threads, options.BaseDir = v.config.Threads, v.content.BaseDir
	for range v.config.Instances {
		session, err := s.options.Compiler.Compile(v.content.Model, options)
		if err != nil {
			return fmt.Errorf("compile: %w", err)
		}
		v.instances = append(v.instances, &instance{v: v, session: session, work: make(chan struct{}, 1), views: map[int]*view{}})
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
	session := v.instances[0].session
	var err error
	if v.plan, err = newPlan(session, v.content.Model, v.config, s.options.MaxBatch); err != nil {
		return err
	}
	if err := replay(ctx, session, v.content.Golden); err != nil {
		return err
	}
	return v.warm()
}

// briefRun is what a caller that could leave puts up with: below it, watching the run would take longer than what it saves.
const briefRun = 200 * time.Microsecond

// brief reports whether a run of so many rows is over before it is worth stopping.
func (v *version) brief(rows int) bool {
	each := v.perRow.Load()
	return v.bounded && each > 0 && each < int64(briefRun)/int64(rows)
}

// took adds a run to the average.
func (v *version) took(infer time.Duration, rows int) {
	each := max(int64(infer)/int64(rows), 1)
	if old := v.perRow.Load(); old > 0 {
		each = (7*old + each + 7) / 8
	}
	v.perRow.Store(each) // of two at once one may be lost
}

// repeats reports whether a model has loops, whose length only the data knows.
func repeats(m *onnx.Model) bool {
	found := false
	look := func(nodes []*onnx.Node) {
		for _, n := range nodes {
			found = found || n.GetOpType() == "Loop" || n.GetOpType() == "Scan"
		}
	}
	err := m.EachGraph(func(g *onnx.Graph) error {
		look(g.GetNode())
		return nil
	})
	for _, f := range m.GetFunctions() {
		look(f.GetNode())
	}
	return found || err != nil
}

// warm binds the buffers of a single row, so that the first request does not.
func (v *version) warm() error {
	if !v.plan.fixed {
		return nil
	}
	for _, i := range v.instances {
		if _, err := i.view(1); err != nil {
			return fmt.Errorf("bind: %w", err)
		}
	}
	return nil
}

// acquire takes a reference; it fails when the version is closed or about to be.
func (v *version) acquire() bool {
	for {
		n := v.refs.Load()
		if n == 0 {
			return false
		}
		if v.refs.CompareAndSwap(n, n+1) {
			return true
		}
	}
}

// release gives a reference back; the last one closes the version, in the background because sessions take their time.
func (v *version) release() {
	if v.refs.Add(-1) != 0 {
		return
	}
	go func() {
		err := v.shut()
		v.model.closed(v, err)
		v.model.server.alive.Done()
	}()
}

// retire is called when the version has left the table: its callers let go of it, each when its run is over, and then the table does.
func (v *version) retire() {
	v.callersMu.Lock()
	v.retired = true
	callers := slices.Collect(maps.Keys(v.callers))
	v.callersMu.Unlock()
	if len(callers) == 0 {
		v.release()
		return
	}
	go func() {
		for _, c := range callers {
			if err := c.letGo(v); err != nil {
				v.model.closed(v, err)
			}
		}
		v.release()
	}()
}

// shut frees everything. Nobody uses the version any more.
func (v *version) shut() error {
	v.queue.mu.Lock()
	if v.queue.timer != nil {
		v.queue.timer()
		v.queue.timer = nil
	}
	v.queue.mu.Unlock()
	for _, i := range v.instances {
		close(i.work)
	}
	v.workers.Wait()
	var errs []error
	for _, i := range v.instances {
		errs = append(errs, i.unbind(), i.session.Close())
	}
	if v.content.Release != nil {
		errs = append(errs, v.content.Release())
	}
	return errors.Join(errs...)
}

// ports describes inputs or outputs.
func (v *version) ports(list []engine.Port, state []int) []Port {
	out := make([]Port, len(list))
	for i, p := range list {
		out[i] = Port{Name: p.Name, DType: p.DType, Shape: p.Shape, State: state[i] >= 0}
	}
	return out
}
