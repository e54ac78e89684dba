package meta

import (
	"context"

	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// Policy is an expert that acts in the environment inside. Every [Env] has its own; it is not used
// concurrently.
type Policy interface {
	// Act decides on a step of the environment inside, which it does not change. A step of type
	// envs.First begins an episode. What it returns is valid until the next call.
	Act(ctx context.Context, ts *envs.TimeStep) (Decision, error)
	// Remembers reports whether a decision depends on steps before: then it has to see all of them,
	// whether or not it is in charge, and cannot be saved in the middle of an episode.
	Remembers() bool
	// Close frees what the policy holds.
	Close() error
}

// Decision is what an expert would do, and how sure it is. The memory is the policy's.
type Decision struct {
	// Action is an element of the action space.
	Action *tensor.Tensor
	// Mean and LogStd [elements of the action] are those of a Gaussian policy before it is squashed
	// and rescaled; nil for others.
	Mean, LogStd []float32
	// LogProbs [envs.MaskLen] are the logarithms of the probabilities of every action of every
	// head; nil for policies that have none.
	LogProbs []float32
}
