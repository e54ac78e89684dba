package serve

import (
	"context"
	"fmt"
	"runtime"
	"time"

	"github.com/onnxrl/onnxrl/runtime/engine"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// maxViews bounds the numbers of rows that an instance keeps a binding for.
const maxViews = 64

// instance is one session of a version, with the buffers of its runs. One goroutine at a time uses
// it: the queue hands it out.
type instance struct {
	v       *version
	session engine.Session
	// work tells the instance's goroutine that batch is to be run.
	work  chan struct{}
	batch []*call
	errs  []error
	// ask says that the batch is one request that found the instance free, and that others may join
	// it.
	ask bool

	// in and out hold capacity rows; views are their first rows, bound.
	capacity int
	in, out  []*tensor.Tensor
	views    map[int]*view
	clock    uint64
}

// view is a binding on the first rows of the buffers.
type view struct {
	in, out []*tensor.Tensor
	binding engine.Binding
	used    uint64
}

// loop runs batches until the version is closed.
func (i *instance) loop() {
	defer i.v.workers.Done()
	for range i.work {
		i.company()
		for more := true; more; more = i.v.queue.next(i) {
			i.run()
		}
	}
}

// company lets goroutines that are ready to run go first. Many callers may come at once, as they
// do when the last batch has been answered: then those that are about to ask share the run with
// the one that was a little faster. Where nobody is ready it takes no time.
func (i *instance) company() {
	if !i.ask {
		return
	}
	i.ask = false
	runtime.Gosched()
	i.v.queue.join(i)
}

// view returns the buffers for a number of rows.
func (i *instance) view(rows int) (*view, error) {
	i.clock++
	if w := i.views[rows]; w != nil {
		w.used = i.clock
		return w, nil
	}
	if rows > i.capacity {
		if err := i.grow(rows); err != nil {
			return nil, err
		}
	}
	if len(i.views) >= maxViews {
		oldest := 0
		for n, w := range i.views {
			if oldest == 0 || w.used < i.views[oldest].used {
				oldest = n
			}
		}
		if err := i.views[oldest].binding.Close(); err != nil {
			return nil, err
		}
		delete(i.views, oldest)
	}
	w := &view{used: i.clock}
	cut := func(list []*tensor.Tensor) []*tensor.Tensor {
		rowsOf := make([]*tensor.Tensor, len(list))
		for k, t := range list {
			rowsOf[k] = t
			if i.v.plan.batch {
				rowsOf[k] = t.Rows(0, rows)
			}
		}
		return rowsOf
	}
	w.in, w.out = cut(i.in), cut(i.out)
	var err error
	if w.binding, err = i.session.Bind(w.out, w.in); err != nil {
		return nil, err
	}
	i.views[rows] = w
	return w, nil
}

// grow makes buffers for at least that many rows. What was bound to the smaller ones is given back.
func (i *instance) grow(rows int) error {
	if err := i.unbind(); err != nil {
		return err
	}
	p := i.v.plan
	n := 1
	for n < rows {
		n *= 2
	}
	n = max(min(n, p.maxBatch), rows)
	buffers := func(ports []engine.Port) []*tensor.Tensor {
		list := make([]*tensor.Tensor, len(ports))
		for k, port := range ports {
			shape, _ := p.row(port)
			if p.batch {
				shape[0] = n
			}
			list[k] = tensor.New(port.DType, shape...)
		}
		return list
	}
	i.in, i.out, i.capacity = buffers(p.in), buffers(p.out), n
	return nil
}

func (i *instance) unbind() error {
	for n, w := range i.views {
		if err := w.binding.Close(); err != nil {
			return err
		}
		delete(i.views, n)
	}
	return nil
}

// run executes the batch and answers its calls. When a run of several calls fails each is run by
// itself, so that one bad request fails alone.
func (i *instance) run() {
	batch := i.batch
	err := i.execute(batch)
	if err != nil && len(batch) > 1 {
		for k := range batch {
			if e := i.execute(batch[k : k+1]); e != nil {
				i.v.answer(batch[k], e)
			}
		}
	} else if err != nil {
		for _, c := range batch {
			i.v.answer(c, err)
		}
	}
	clear(i.batch)
	i.batch = i.batch[:0]
	i.v.release()
}

// execute runs calls as one and answers them unless it returns an error, in which case none was
// answered.
func (i *instance) execute(batch []*call) error {
	p, clock := i.v.plan, i.v.model.server.clock
	start := clock.Now()
	rows := 0
	for _, c := range batch {
		rows += c.rows
	}
	if !p.batch {
		rows = 1
	}
	var w *view
	var in, out []*tensor.Tensor
	var err error
	bound := p.fixed && rows <= max(p.maxBatch, 1)
	if bound {
		if w, err = i.view(rows); err != nil {
			return fail(Internal, "bind buffers: %w", err)
		}
		in, out = w.in, w.out
	} else {
		in, out = i.fresh(batch, rows)
	}
	if err := i.gather(batch, in); err != nil {
		return err
	}
	gathered := clock.Now()
	var ctx context.Context
	var stop context.CancelFunc
	if !bound || !i.v.brief(rows) {
		ctx, stop = flightOf(batch)
	}
	if bound && ctx == nil {
		err = w.binding.Run()
	} else {
		if ctx == nil {
			ctx = context.Background()
		}
		err = i.session.Run(ctx, out, in)
	}
	if stop != nil {
		stop()
	}
	if err != nil {
		return &Error{Code: CodeOf(err), Err: err}
	}
	ran := clock.Now()
	i.v.took(ran.Sub(gathered), rows)
	if err := i.check(out, rows); err != nil {
		return err
	}
	timing := Timing{Input: gathered.Sub(start), Infer: ran.Sub(gathered), Rows: rows}
	i.scatter(batch, out, start, timing, ran, clock)
	return nil
}

// flightOf makes the context of a run that ends when all of its callers have left; nil where one of
// them cannot.
func flightOf(batch []*call) (context.Context, context.CancelFunc) {
	for _, c := range batch {
		if c.ctx.Done() == nil {
			return nil, nil
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	f := &flight{cancel: cancel}
	f.waiting.Store(int64(len(batch)))
	for _, c := range batch {
		c.mu.Lock()
		if c.flight = f; c.gone {
			f.leave()
		}
		c.mu.Unlock()
	}
	return ctx, cancel
}

// fresh makes the buffers of a run whose shapes are not known in advance; outputs that the engine
// has to size are nil.
func (i *instance) fresh(batch []*call, rows int) (in, out []*tensor.Tensor) {
	p := i.v.plan
	in, out = make([]*tensor.Tensor, len(p.in)), make([]*tensor.Tensor, len(p.out))
	for k := range in {
		like := p.value(batch[0], k)
		shape := append([]int(nil), like.Shape()...)
		if p.batch {
			shape[0] = rows
		}
		in[k] = tensor.New(like.DType(), shape...)
	}
	return in, out
}

// gather copies the calls' inputs, and the states of their sequences, into the run's.
func (i *instance) gather(batch []*call, in []*tensor.Tensor) error {
	p := i.v.plan
	row := 0
	for _, c := range batch {
		c.mu.Lock()
		for k, to := range in {
			if c.gone {
				continue // its rows hold what was there; nobody reads what they give
			}
			if err := copyRows(to, row, p.value(c, k), 0, c.rows, p.batch); err != nil {
				c.mu.Unlock()
				return fail(Internal, "input %q: %w", p.in[k].Name, err)
			}
		}
		c.mu.Unlock()
		row += c.rows
	}
	return nil
}

// copyRows copies rows along the first axis, or everything where that is no batch.
func copyRows(to *tensor.Tensor, at int, from *tensor.Tensor, first, rows int, batch bool) error {
	if to.DType() == tensor.String {
		dst, src := to.Strings(), from.Strings()
		if batch {
			n, m := to.Len()/max(to.Shape()[0], 1), from.Len()/max(from.Shape()[0], 1)
			dst, src = dst[at*n:(at+rows)*n], src[first*m:(first+rows)*m]
		}
		if len(dst) != len(src) {
			return fmt.Errorf("%v does not fit %v", from, to)
		}
		copy(dst, src)
		return nil
	}
	dst, src := to.Bytes(), from.Bytes()
	if batch {
		n, m := len(dst)/max(to.Shape()[0], 1), len(src)/max(from.Shape()[0], 1)
		dst, src = dst[at*n:(at+rows)*n], src[first*m:(first+rows)*m]
	}
	if len(dst) != len(src) {
		return fmt.Errorf("%v does not fit %v", from, to)
	}
	copy(dst, src)
	return nil
}

// check makes sure that outputs can be split.
func (i *instance) check(out []*tensor.Tensor, rows int) error {
	if !i.v.plan.batch {
		return nil
	}
	for k, t := range out {
		if t.Rank() == 0 || t.Shape()[0] != rows {
			return fail(Internal, "output %q is %v for %d rows", i.v.plan.out[k].Name, t, rows)
		}
	}
	return nil
}

// scatter copies the rows of the outputs to the calls, moves their sequences on, and answers them.
func (i *instance) scatter(batch []*call, out []*tensor.Tensor, start time.Time, timing Timing, ran time.Time, clock Clock) {
	p := i.v.plan
	row := 0
	errs := append(i.errs[:0], make([]error, len(batch))...)
	i.errs = errs
	for k, c := range batch {
		c.mu.Lock()
		if !c.gone {
			errs[k] = i.deliver(c, out, row)
			c.delivered = true
			c.timing = timing
			c.timing.Queue = start.Sub(c.begin)
		}
		c.mu.Unlock()
		row += c.rows
	}
	timing.Output = clock.Now().Sub(ran)
	rows := timing.Rows
	if !p.batch {
		rows = 1
	}
	i.v.stats.ran(rows, timing.Input, timing.Infer, timing.Output)
	for k, c := range batch {
		if c.delivered {
			c.timing.Output = timing.Output
		}
		i.v.answer(c, errs[k])
	}
}

// deliver gives a call its rows.
func (i *instance) deliver(c *call, out []*tensor.Tensor, row int) error {
	p := i.v.plan
	resp := c.resp
	if cap(resp.Outputs) < len(c.want) {
		resp.Outputs = append(resp.Outputs[:cap(resp.Outputs)], make([]Tensor, len(c.want)-cap(resp.Outputs))...)
	}
	resp.Outputs = resp.Outputs[:len(c.want)]
	for k, o := range c.want {
		shape := out[o].Shape()
		if p.outer[o] != nil {
			shape = p.answers[o].Shape
		}
		to := put(&resp.Outputs[k], out[o].DType(), shape, c.rows, p.batch)
		resp.Outputs[k].Name = p.out[o].Name
		if err := copyRows(to, 0, out[o], row, c.rows, p.batch); err != nil {
			return fail(Internal, "output %q: %w", p.out[o].Name, err)
		}
		if p.checkOut && !finite(to) {
			return fail(Internal, "output %q holds NaN or an infinity, which this model must not give", p.out[o].Name)
		}
	}
	if c.seq == nil {
		return nil
	}
	return c.seq.advance(p, out, row, c.end)
}
