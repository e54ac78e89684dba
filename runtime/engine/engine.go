package engine

import (
	"context"
	"errors"
	"fmt"

	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// Options select how a model is compiled. The zero value is what training and low-latency acting
// want: one thread, no spinning, all graph optimisations.
type Options struct {
	// Threads is the number of threads within one run. 0 means 1.
	Threads int
	// Spin lets idle worker threads burn a core while they wait for work. It only matters with more
	// than one thread.
	Spin bool
	// Optimize is the level of graph optimisation.
	Optimize OptLevel
	// Training says that the graph is a gradient, for which an engine may have kernels that give
	// the same bits sooner. In other graphs they may keep it from joining nodes with others.
	Training bool
	// NoMemoryPattern disables planning all intermediate buffers as one block. Planning needs
	// static shapes to pay off.
	NoMemoryPattern bool
	// Profile, where the engine supports it, is the path prefix of a profile written when the
	// session is closed.
	Profile string
	// Optimized, where the engine supports it, is the path that the graph is written to as the
	// engine has optimised it.
	Optimized string
	// BaseDir is the folder that external data paths are relative to. Models from memory leave it
	// empty.
	BaseDir string
}

// OptLevel is a level of graph optimisation.
type OptLevel int

// The levels of ONNX Runtime; an engine without such levels maps all but OptNone to its own full
// effort.
const (
	OptAll OptLevel = iota
	OptNone
	OptBasic
	OptExtended
)

// Port is one input or output of a session: its name, element type and shape, where an extent of -1
// is free.
type Port struct {
	Name  string
	DType tensor.DType
	Shape []int
}

// String prints for instance "obs float32[-1 17]".
func (p Port) String() string { return fmt.Sprintf("%s %v%v", p.Name, p.DType, p.Shape) }

// Accepts reports whether t may be passed for the port, as an error naming the port and both types.
func (p Port) Accepts(t *tensor.Tensor) error {
	ok := t != nil && t.DType() == p.DType && (p.Shape == nil || t.Rank() == len(p.Shape))
	if ok {
		for i, d := range p.Shape {
			ok = ok && (d < 0 || t.Shape()[i] == d)
		}
	}
	if !ok {
		return &InputError{Port: p, Got: fmt.Sprint(t)}
	}
	return nil
}

// Compiler makes sessions. It is safe for concurrent use.
type Compiler interface {
	// Name is the engine's short name, as --engine takes it.
	Name() string
	// Compile prepares a model. The model is not changed and may be dropped afterwards. Initializer
	// memory may be kept until the session is closed.
	Compile(m *onnx.Model, o Options) (Session, error)
	Close() error
}

// Session is a compiled model.
type Session interface {
	// Inputs lists the inputs that must be given, in graph order, without those that an initializer
	// gives a default to.
	Inputs() []Port
	// Outputs lists the outputs in graph order.
	Outputs() []Port
	// Run executes the model once. in and out follow Inputs and Outputs. A non-nil out[i] must have
	// the output's exact type and shape and is written in place; a nil out[i] is replaced by a new
	// tensor. Run is safe for concurrent use with different out tensors. When ctx ends, the run is
	// stopped where the engine can, and ctx's error is returned.
	Run(ctx context.Context, out, in []*tensor.Tensor) error
	// Bind fixes all buffers. The tensors' memory is used directly by every run until the binding
	// is closed; heap tensors are pinned, arenas retained.
	Bind(out, in []*tensor.Tensor) (Binding, error)
	// Close frees the session. Bindings must be closed first; otherwise an error says how many are
	// left and nothing is freed.
	Close() error
}

// Run executes the model once, on tensors that follow Inputs, and returns new ones that follow Outputs.
func Run(ctx context.Context, s Session, in ...*tensor.Tensor) ([]*tensor.Tensor, error) {
	out := make([]*tensor.Tensor, len(s.Outputs()))
	return out, s.Run(ctx, out, in)
}

// Binding is a session with fixed buffers. It is not safe for concurrent use; make one binding per
// goroutine.
type Binding interface {
	// Run executes the model on the bound buffers without allocating.
	Run() error
	Close() error
}

// ErrClosed is returned by every call on a closed compiler, session or binding.
var ErrClosed = errors.New("it is closed")

// DataError is wrapped by the [RunError] of an operator that cannot work with the numbers it got,
// such as an index beyond its table. They come from the caller's data as far as an engine can tell:
// what is wrong with the constants of a model is found when it is compiled, or in its first run.
type DataError string

func (e DataError) Error() string { return string(e) }

const (
	// ErrDivideByZero is that of an integer division by zero.
	ErrDivideByZero DataError = "integer division by zero"
	// ErrNoElements is that of an operator which needs elements and got none.
	ErrNoElements DataError = "it has no elements, at least one is needed on every axis"
	// ErrNotPositive is that of an operator which divides by a number that must be at least 1.
	ErrNotPositive DataError = "it is below 1, at least 1 is needed"
)

// InputError says that a tensor does not fit the port it was given for.
type InputError struct {
	Port Port
	Got  string
}

func (e *InputError) Error() string {
	return fmt.Sprintf("value %q: expected %v%v, got %s", e.Port.Name, e.Port.DType, e.Port.Shape, e.Got)
}

// ShapeError says that the shapes of a run's inputs, each of which fits its port, do not fit the
// model together, or do not fit a node within. Node describes that node; Inputs lists the shapes.
type ShapeError struct {
	Node, Inputs string
	Err          error
}

func (e *ShapeError) Error() string {
	at := ""
	if e.Node != "" {
		at = e.Node + ": "
	}
	return fmt.Sprintf("inputs %s do not fit the model: %s%v", e.Inputs, at, e.Err)
}

func (e *ShapeError) Unwrap() error { return e.Err }

// UnsupportedError says that the engine cannot execute a node. Node is the node's description; Op
// its operator with domain.
type UnsupportedError struct {
	Engine, Node, Op, Reason string
}

func (e *UnsupportedError) Error() string {
	return fmt.Sprintf("%s engine: %s: %s", e.Engine, e.Node, e.Reason)
}

// RunError says that executing a compiled model failed; Node is empty when the engine does not know
// which.
type RunError struct {
	Engine, Node string
	Err          error
}

func (e *RunError) Error() string {
	if e.Node == "" {
		return fmt.Sprintf("%s engine: run: %v", e.Engine, e.Err)
	}
	return fmt.Sprintf("%s engine: run %s: %v", e.Engine, e.Node, e.Err)
}

func (e *RunError) Unwrap() error { return e.Err }
