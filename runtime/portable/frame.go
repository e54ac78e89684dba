package portable

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"strings"
	"unsafe"

	"github.com/onnxrl/onnxrl/runtime/engine"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// frame is the memory of one run of a program: the value of each slot, the registers behind them,
// and what kernels keep between runs. A frame is used by one run at a time and reused by the next,
// which is why repeated runs of equal shapes allocate nothing.
type frame struct {
	prog   *program
	rt     *shared
	vals   []*tensor.Tensor
	seqs   []*sequence
	regs   []register
	bound  []*tensor.Tensor // per output: the caller's tensor, or nil for one to be made
	calls  []call
	at     int // the step being executed
	done   <-chan struct{}
	ctx    context.Context
	outer  *frame
	buffer [scratchBuffers][]byte
	gemm   gemmState
}

// shared is what all frames of a session share.
type shared struct {
	workers *workers
}

// register is a block of memory that values with disjoint lifetimes take turns in.
type register struct {
	mem []byte
	gen int // counts reallocations, so that headers over the old block are noticed
}

// maxValueBytes bounds one value, so that a shape computed from bad data is an error instead of the
// end of the process.
const maxValueBytes = 1 << 31

func newFrame(p *program, rt *shared, outer *frame) *frame {
	f := &frame{prog: p, rt: rt, outer: outer, vals: make([]*tensor.Tensor, p.slots), seqs: make([]*sequence, p.slots),
		regs: make([]register, p.regs), bound: make([]*tensor.Tensor, len(p.outputs)), calls: make([]call, len(p.steps))}
	for _, c := range p.consts {
		f.vals[c.slot] = c.value
	}
	for i := range p.steps {
		s := &p.steps[i]
		f.calls[i] = call{step: s, f: f, args: make([]*tensor.Tensor, len(s.node.Input)), head: make([]header, len(s.out))}
	}
	return f
}

// run executes the steps. Inputs and bound outputs are set by the caller.
func (f *frame) run(ctx context.Context) (err error) {
	f.ctx, f.done, f.at = ctx, ctx.Done(), 0
	defer func() {
		if r := recover(); r != nil {
			err = f.fail(recovered(r))
		}
	}()
	for _, c := range f.prog.captures {
		f.vals[c.inner], f.seqs[c.inner] = f.outer.vals[c.outer], f.outer.seqs[c.outer]
	}
	for i := range f.calls {
		if f.done != nil {
			select {
			case <-f.done:
				return ctx.Err()
			default:
			}
		}
		f.at = i
		if err := f.calls[i].exec(); err != nil {
			return f.fail(err)
		}
	}
	return nil
}

// failure is a panic with which a helper leaves a kernel. Kernels themselves return errors.
type failure struct{ err error }

func recovered(r any) error {
	switch x := r.(type) {
	case failure:
		return x.err
	case error:
		// Integer division by zero is the one run-time error that kernels leave to the processor.
		if strings.HasSuffix(x.Error(), "integer divide by zero") {
			return engine.ErrDivideByZero
		}
		return &panicError{x.Error(), string(debug.Stack())}
	}
	return &panicError{fmt.Sprint(r), string(debug.Stack())}
}

// panicError is a recovered panic. Its stack is for who looks for it; the message stays short.
type panicError struct{ msg, stack string }

func (e *panicError) Error() string { return "internal error: " + e.msg }

// badData is a [engine.DataError].
func badData(format string, args ...any) error {
	return engine.DataError(fmt.Sprintf(format, args...))
}

// fail names the step that an error comes from, once.
func (f *frame) fail(err error) error {
	var re *engine.RunError
	if errors.As(err, &re) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	n := f.prog.steps[f.at].node
	var u *engine.UnsupportedError
	if errors.As(err, &u) {
		if u.Node != "" {
			return u
		}
		return &engine.UnsupportedError{Engine: Name, Node: n.Describe(), Op: opName(n), Reason: u.Reason}
	}
	return &engine.RunError{Engine: Name, Node: n.Describe(), Err: err}
}

// alignedBytes returns n zeroed bytes on a 64-byte boundary.
func alignedBytes(n int) []byte {
	buf := make([]byte, n+tensor.Align-1)
	off := int(-uintptr(unsafe.Pointer(unsafe.SliceData(buf))) & (tensor.Align - 1))
	return buf[off : off+n : off+n]
}

func (f *frame) grow(reg, n int) *register {
	r := &f.regs[reg]
	if len(r.mem) < n {
		r.mem = alignedBytes(n)
		r.gen++
	}
	return r
}
