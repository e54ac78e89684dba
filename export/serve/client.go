package serve

import (
	"context"
	"slices"
	"sync"

	"github.com/onnxrl/onnxrl/runtime/engine"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// Client asks a server in the same process. It is safe for concurrent use.
type Client struct{ s *Server }

// Client returns a client of the server.
func (s *Server) Client() *Client { return &Client{s} }

// Infer answers a request as [Server.Infer] does: batched, bounded, in sequences, observed.
func (c *Client) Infer(ctx context.Context, req *Request, resp *Response) error {
	return c.s.Infer(ctx, req, resp)
}

// Caller runs one model on buffers of its own, without queue, batching or allocation: the path for
// the one that decides in a loop. It follows its model: when what it was made for means another
// version, the next run is that version's, on the same buffers. It is not safe for concurrent use.
//
// State is the caller's: state inputs and outputs are ordinary buffers, to be copied from one to
// the other between runs. A caller counts as one request to the model's routes, and is not
// shadowed.
type Caller struct {
	s              *Server
	model, version string
	rows           int
	in, out        []Tensor
	inputs         []*tensor.Tensor
	outputs        []*tensor.Tensor
	seen           []*tensor.Tensor // room for what is compared with the published observations

	// mu is held while running and while a retired version is let go of.
	mu      sync.Mutex
	closed  bool
	models  *map[string]*model // what m was found in
	m       *model
	table   *table // what v was found in
	v       *version
	binding engine.Binding
}

// Caller binds a model for runs of a fixed number of rows, which is 1 for models without a batch
// axis. All other extents must be known from the model.
func (c *Client) Caller(name, version string, rows int) (*Caller, error) {
	r := &Caller{s: c.s, model: name, version: version, rows: rows}
	if err := c.s.enter(); err != nil {
		return nil, err
	}
	defer c.s.leave()
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.follow(); err != nil {
		return nil, err
	}
	return r, nil
}

// Inputs are the buffers to fill before a run, in the model's order.
func (c *Caller) Inputs() []Tensor { return c.in }

// Outputs are the buffers that a run fills.
func (c *Caller) Outputs() []Tensor { return c.out }

// Version is the version that the last run used.
func (c *Caller) Version() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.v == nil {
		return ""
	}
	return c.v.name
}

// Run fills the outputs. It does not stop when ctx ends while the model runs.
func (c *Caller) Run(ctx context.Context) error {
	if err := c.s.enter(); err != nil {
		return err
	}
	err := c.run(ctx)
	c.s.leave()
	return err
}

func (c *Caller) run(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return at(err, c.model, c.version)
	}
	begin := c.s.clock.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.models != c.s.models.Load() || c.table != c.m.table.Load() || c.v == nil {
		if err := c.follow(); err != nil {
			return err
		}
	}
	v := c.v
	err := c.checkInputs(v.plan)
	if err == nil && v.observed != nil {
		err = v.see(c.inputs, c.seen, c.rows)
	}
	ran := begin
	if err == nil {
		if err = c.binding.Run(); err != nil {
			err = fail(Internal, "%w", err)
		} else {
			err = c.checkOutputs(v.plan)
		}
	}
	if ran = c.s.clock.Now(); err != nil {
		err = at(err, c.model, v.name)
	}
	timing := Timing{Infer: ran.Sub(begin), Rows: c.rows}
	if err == nil {
		v.stats.ran(c.rows, 0, timing.Infer, 0)
	}
	v.stats.answered(timing, timing.Infer, ran, err)
	if o := c.s.options.Observer; o != nil {
		o.Observe(Observation{Model: c.model, Version: v.name, Rows: c.rows, Timing: timing, Total: timing.Infer, Err: err})
	}
	return err
}

func (c *Caller) checkInputs(p *plan) error {
	for i, t := range c.in {
		if err := p.checkInput(i, t.Value); err != nil {
			return err
		}
	}
	return nil
}

func (c *Caller) checkOutputs(p *plan) error {
	if p.checkOut {
		for _, t := range c.out {
			if !finite(t.Value) {
				return fail(Internal, "output %q holds NaN or an infinity, which this model must not give", t.Name)
			}
		}
	}
	return nil
}

// follow binds the version that the caller's model and version mean now. It holds mu.
func (c *Caller) follow() error {
	if c.closed {
		return at(fail(NotReady, "the caller is closed"), c.model, c.version)
	}
	for {
		models := c.s.models.Load()
		m := (*models)[c.model]
		if m == nil {
			return unknown(c.model)
		}
		v, t, err := m.acquire(&Request{Version: c.version})
		if err != nil {
			return at(err, c.model, c.version)
		}
		bound := v == c.v
		if !bound {
			bound, err = c.bind(v)
		}
		v.release() // a bound version lives until its callers have let go of it
		if err != nil {
			return at(err, c.model, v.name)
		}
		if bound {
			c.models, c.m, c.table = models, m, t
			return nil
		}
	}
}

// bind leaves the version that was bound and binds another one. It does not where that has just
// been retired: there is a newer table then.
func (c *Caller) bind(v *version) (bool, error) {
	p := v.plan
	switch {
	case !p.fixed:
		return false, invalid("the model has free extents beside the batch, or strings; use Infer")
	case c.rows < 1 || c.rows > p.limit:
		return false, invalid("%d rows, expected 1 to %d", c.rows, p.limit)
	}
	in, out := c.buffers(p, p.in), c.buffers(p, p.out)
	if c.in == nil {
		c.in, c.out = in, out
		for _, t := range in {
			c.inputs = append(c.inputs, t.Value)
		}
		for _, t := range out {
			c.outputs = append(c.outputs, t.Value)
		}
	} else if !same(c.in, in) || !same(c.out, out) {
		return false, invalid("version %s has other inputs or outputs than the version that the caller was made for", v.name)
	}
	if err := c.unbind(); err != nil {
		return false, fail(Internal, "%w", err)
	}
	v.callersMu.Lock()
	defer v.callersMu.Unlock()
	if v.retired {
		return false, nil
	}
	binding, err := v.instances[len(v.callers)%len(v.instances)].session.Bind(c.outputs, c.inputs)
	if err != nil {
		return false, fail(Internal, "bind buffers: %w", err)
	}
	v.callers[c] = struct{}{}
	c.v, c.binding = v, binding
	if o := v.observed; o != nil && len(c.seen) != len(o.at) {
		c.seen = make([]*tensor.Tensor, len(o.at))
	}
	return true, nil
}

func (c *Caller) buffers(p *plan, ports []engine.Port) []Tensor {
	list := make([]Tensor, len(ports))
	for i, port := range ports {
		shape, _ := p.row(port)
		if p.batch {
			shape[0] = c.rows
		}
		list[i] = Tensor{port.Name, tensor.New(port.DType, shape...)}
	}
	return list
}

func same(a, b []Tensor) bool {
	return slices.EqualFunc(a, b, func(x, y Tensor) bool {
		return x.Name == y.Name && x.Value.DType() == y.Value.DType() && slices.Equal(x.Value.Shape(), y.Value.Shape())
	})
}

// unbind lets go of the bound version. It holds mu.
func (c *Caller) unbind() error {
	if c.binding == nil {
		return nil
	}
	err := c.binding.Close()
	c.v.callersMu.Lock()
	delete(c.v.callers, c)
	c.v.callersMu.Unlock()
	c.v, c.binding, c.table = nil, nil, nil
	return err
}

// letGo is called for a version that is retired.
func (c *Caller) letGo(v *version) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.v != v {
		return nil
	}
	return c.unbind()
}

// Close gives the buffers' binding back. Closing twice is no error.
func (c *Caller) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	return at(c.unbind(), c.model, c.version)
}
