package versus

import (
	"context"

	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/runtime/engine"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// Policy is a model that plays seats, of several games at once. It is not used concurrently.
type Policy interface {
	// Observe takes what the agent of a row sees, which it does not change.
	Observe(row int, ts *envs.TimeStep) error
	// Decide decides for all rows, those that were not observed anew included. What it returns is
	// valid until the next call.
	Decide() (Decision, error)
	// Remembers reports whether decisions depend on steps before.
	Remembers() bool
	// Close frees what the policy holds.
	Close() error
}

// Decision is what a policy would do, and how sure it is. The memory is the policy's.
type Decision struct {
	// Actions [rows, …] are the best ones.
	Actions *tensor.Tensor
	// LogProbs [rows·envs.MaskLen] are the logarithms of the probabilities of every action of every
	// head; nil for policies that have none.
	LogProbs []float32
	// Outputs are all outputs of floats, none of which may be NaN.
	Outputs []Output
}

// Output is an output of a model [rows, …].
type Output struct {
	Name   string
	Values []float32
}

// Opener opens the model of a file for agents of a factory's worlds, for so many rows. Compiler and
// factory outlive the policy.
type Opener func(ctx context.Context, path string, worlds envs.Factory, split envs.Split, c engine.Compiler, rows int) (Policy, error)
