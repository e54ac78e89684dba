package serve

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/onnxrl/onnxrl/runtime/engine"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// call is one request on its way through a version. Its memory is reused.
type call struct {
	ctx  context.Context
	resp *Response
	in   []*tensor.Tensor // in the order of the session, nil where the sequence's state goes
	seen []*tensor.Tensor // room for what is compared with the published observations
	want []int            // outputs in the order of the response
	rows int
	seq  *sequence
	// start and end are the request's marks of the sequence.
	start, end bool
	begin      time.Time
	latest     time.Time // when a batch must have been formed, zero if that does not matter

	// prev and next link the queue; where says whether the call is in it. Guarded by the queue's
	// mutex.
	prev, next *call
	where      waitingIn

	// mu guards the tensors of request and response against a caller that leaves: after gone is set
	// nobody touches them, after delivered the caller stays for the answer.
	mu        sync.Mutex
	gone      bool
	delivered bool
	timing    Timing
	flight    *flight
	done      chan error
}

// waitingIn says where a call waits.
type waitingIn uint8

const (
	nowhere waitingIn = iota
	inQueue
	inSequence
)

// flight is a run that stops when nobody waits for it.
type flight struct {
	waiting atomic.Int64
	cancel  context.CancelFunc
}

func (f *flight) leave() {
	if f.waiting.Add(-1) == 0 {
		f.cancel()
	}
}

var calls = sync.Pool{New: func() any { return &call{done: make(chan error, 1)} }}

func (c *call) recycle() {
	clear(c.in)
	c.ctx, c.resp, c.seq, c.flight = nil, nil, nil, nil
	c.prev, c.next, c.where = nil, nil, nowhere
	c.in, c.want, c.rows = c.in[:0], c.want[:0], 0
	c.start, c.end, c.gone, c.delivered = false, false, false, false
	c.latest, c.timing = time.Time{}, Timing{}
	calls.Put(c)
}

// take checks a request against the plan and puts its tensors in order. sequence says that the
// server holds the state.
func (p *plan) take(c *call, req *Request, sequence bool) error {
	if len(req.Inputs) > len(p.in) {
		return invalid("%d inputs, expected %s", len(req.Inputs), portNames(p.in))
	}
	c.in = slices.Grow(c.in[:0], len(p.in))[:len(p.in)]
	clear(c.in)
	c.rows = 1
	first := -1
	for k := range req.Inputs {
		name, t := req.Inputs[k].Name, req.Inputs[k].Value
		i, ok := p.find(k, name)
		if !ok {
			return invalid("unknown input %q, expected %s", name, portNames(p.in))
		}
		if c.in[i] != nil {
			return invalid("input %q is given twice", name)
		}
		if p.inControl[i] >= 0 {
			return invalid("input %q says where in its sequence a request is, which the server fills in", name)
		}
		if sequence && p.inState[i] >= 0 {
			return invalid("input %q is the state of the sequence, which the server keeps", name)
		}
		t, err := p.accept(i, t)
		if err != nil {
			return err
		}
		c.in[i] = t
		if p.batch {
			rows := t.Shape()[0]
			if first < 0 {
				first, c.rows = i, rows
			}
			if rows != c.rows {
				return invalid("input %q has %d rows and input %q has %d, expected as many", p.in[first].Name, c.rows, name, rows)
			}
		}
		if err := p.checkInput(i, req.Inputs[k].Value); err != nil {
			return err
		}
	}
	if err := p.takeControls(c, sequence); err != nil {
		return err
	}
	for i, t := range c.in {
		if t == nil && !(sequence && p.inState[i] >= 0) {
			if p.inState[i] >= 0 {
				return invalid("input %q is missing; it carries state, so either it is given or the request belongs to a sequence", p.in[i].Name)
			}
			return invalid("input %q is missing, expected %s", p.in[i].Name, portNames(p.in))
		}
	}
	switch {
	case p.batch && c.rows < 1:
		return invalid("%d rows, expected at least 1", c.rows)
	case c.rows > p.limit:
		return invalid("%d rows, expected at most %d", c.rows, p.limit)
	case sequence && c.rows != 1:
		return invalid("%d rows in one step of a sequence, expected 1", c.rows)
	}
	return p.choose(c, req.Outputs, sequence)
}

func (p *plan) choose(c *call, names []string, sequence bool) error {
	if len(names) == 0 {
		if sequence {
			c.want = append(c.want[:0], p.visible...)
		} else {
			c.want = append(c.want[:0], p.every...)
		}
		return nil
	}
	c.want = c.want[:0]
	for _, name := range names {
		i, ok := p.outAt[name]
		if !ok {
			return invalid("unknown output %q, expected %s", name, portNames(p.out))
		}
		if slices.Contains(c.want, i) {
			return invalid("output %q is asked for twice", name)
		}
		c.want = append(c.want, i)
	}
	return nil
}

// find looks an input up by name, first where it is when inputs come in the model's order.
func (p *plan) find(k int, name string) (int, bool) {
	if p.in[k].Name == name {
		return k, true
	}
	i, ok := p.inAt[name]
	return i, ok
}

// accepts is engine.Port.Accepts in the words of a request.
func accepts(p engine.Port, t *tensor.Tensor) error {
	if t == nil {
		return invalid("input %q has no value", p.Name)
	}
	ok := (p.DType == tensor.Undefined || t.DType() == p.DType) && (p.Shape == nil || t.Rank() == len(p.Shape))
	if ok {
		for i, d := range p.Shape {
			ok = ok && (d < 0 || d == t.Shape()[i])
		}
	}
	if !ok {
		return invalid("input %q is %v%v, expected %v%v", p.Name, t.DType(), t.Shape(), p.DType, p.Shape)
	}
	return nil
}

func portNames(ports []engine.Port) string {
	list := make([]string, len(ports))
	for i, p := range ports {
		list[i] = fmt.Sprintf("%q %v%v", p.Name, p.DType, p.Shape)
	}
	return strings.Join(list, ", ")
}

// fits reports whether two calls can be rows of one run: all extents but the batch are equal.
func (p *plan) fits(a, b *call) bool {
	if !p.batch {
		return false
	}
	if p.fixed {
		return true
	}
	for i := range p.in {
		x, y := p.value(a, i), p.value(b, i)
		if x.DType() != y.DType() || !slices.Equal(x.Shape()[1:], y.Shape()[1:]) {
			return false
		}
	}
	return true
}

// value is what a call has for an input: its own, or the state of its sequence, which nothing else
// changes while the call is queued or runs.
func (p *plan) value(c *call, i int) *tensor.Tensor {
	if t := c.in[i]; t != nil {
		return t
	}
	if c.start || c.seq.state == nil {
		return p.state[p.inState[i]].initial
	}
	return c.seq.state[p.inState[i]]
}

// put gives the response's k-th tensor the type of a value and a shape, with the given rows,
// reusing what is there.
func put(to *Tensor, d tensor.DType, shape []int, rows int, batch bool) *tensor.Tensor {
	if t := to.Value; t != nil && t.DType() == d && t.Rank() == len(shape) {
		same := true
		for i, d := range shape {
			if i == 0 && batch {
				d = rows
			}
			same = same && t.Shape()[i] == d
		}
		if same {
			return t
		}
	}
	shape = slices.Clone(shape)
	if batch {
		shape[0] = rows
	}
	to.Value = tensor.New(d, shape...)
	return to.Value
}

// maxDelta is the largest |Δ| of two tensors of one floating-point type; equal infinities and two
// NaN differ by 0, a NaN and a number by +Inf.
func maxDelta[T float32 | float64](a, b []T) float64 {
	worst := 0.0
	for i := range a {
		d := math.Abs(float64(a[i]) - float64(b[i]))
		switch {
		case a[i] == b[i] || a[i] != a[i] && b[i] != b[i]:
		case math.IsNaN(d):
			worst = math.Inf(1)
		default:
			worst = max(worst, d)
		}
	}
	return worst
}
