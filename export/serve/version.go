package serve

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/bits"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/onnxrl/onnxrl/runtime/engine"
	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// version is a compiled version of a model. It is closed when its last reference is released: the
// table of versions holds one, and so does each request, run, sequence and shadow job.
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
	// observed is nil where the model does not say what it was published on.
	observed *observed

	refs atomic.Int64

	// bounded says that no run can take forever: nothing in the graph repeats until the data says
	// so. times are moving averages of what runs take, in nanoseconds, by the bits of their number
	// of rows; 0 before the first.
	bounded bool
	times   [maxRowBits]atomic.Int64

	// callers are bound to the version and let go of it when it is retired.
	callersMu sync.Mutex
	retired   bool
	callers   map[*Caller]struct{}
}

const (
	// briefRun is what a caller that could leave puts up with: below it, watching the run would
	// take longer than what it saves.
	briefRun = 200 * time.Microsecond
	// sharedRun is the least run that is worth asking around for others to share it with.
	sharedRun = 50 * time.Microsecond
	// maxRowBits bounds the classes of runs that are timed.
	maxRowBits = 20
)

// brief reports whether a run of so many rows is over before it is worth stopping.
func (v *version) brief(rows int) bool {
	t := v.estimate(rows)
	return v.bounded && t > 0 && t < briefRun
}

// shared reports whether a run of so many rows takes so long that requests which arrive just now
// should be part of it.
func (v *version) shared(rows int) bool {
	t := v.estimate(rows)
	return v.plan.batch && rows < v.plan.maxBatch && (t == 0 || t >= sharedRun)
}

// estimate is about how long a run of so many rows takes, 0 where nothing is known. A row of many
// costs less than one alone, so runs of other sizes are asked only where there was none of this
// one.
func (v *version) estimate(rows int) time.Duration {
	at := min(bits.Len(uint(rows)), maxRowBits-1)
	for k := at; k < maxRowBits; k++ {
		if t := v.times[k].Load(); t > 0 {
			return time.Duration(t)
		}
	}
	for k := at - 1; k >= 0; k-- {
		if t := v.times[k].Load(); t > 0 {
			return time.Duration(t) << (at - k)
		}
	}
	return 0
}

// took adds a run to the averages.
func (v *version) took(infer time.Duration, rows int) {
	at := &v.times[min(bits.Len(uint(rows)), maxRowBits-1)]
	t := max(int64(infer), 1)
	if old := at.Load(); old > 0 {
		t = (7*old + t + 7) / 8
	}
	at.Store(t) // of two at once one may be lost
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

// warm runs what the configuration says on every instance and binds the buffers of a single row, so
// that the first request does not.
func (v *version) warm(ctx context.Context) error {
	for _, w := range v.config.WarmUps {
		in, err := v.plan.inputs(w, files{v.content.Files})
		if err != nil {
			return fmt.Errorf("warm-up %q: %w", w.Name, err)
		}
		for _, i := range v.instances {
			for range max(w.Count, 1) {
				if err := i.session.Run(ctx, make([]*tensor.Tensor, len(v.plan.out)), in); err != nil {
					return fmt.Errorf("warm-up %q: %w", w.Name, err)
				}
			}
		}
	}
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

// release gives a reference back; the last one closes the version, in the background because
// sessions take their time.
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

// retire is called when the version has left the table: its callers let go of it, each when its run
// is over, and then the table does.
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

// ports describes inputs or outputs. Those that are at 0 or more in one of the lists are implicit.
func (v *version) ports(list []engine.Port, implicit ...[]int) []Port {
	out := make([]Port, len(list))
	for i, p := range list {
		out[i] = Port{Name: p.Name, DType: p.DType, Shape: p.Shape, Implicit: slices.ContainsFunc(implicit, func(at []int) bool { return at[i] >= 0 })}
	}
	return out
}
