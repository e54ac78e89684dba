package serve

import (
	"time"

	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// Tensor is a named value of a request or a response.
type Tensor struct {
	Name  string
	Value *tensor.Tensor
}

// Sequence places a request in a sequence. The zero value is a request on its own.
type Sequence struct {
	// ID identifies the sequence; clients that number them use the decimal number.
	ID string
	// Start begins the sequence with the model's initial state, End drops its state after this
	// request.
	Start, End bool
	// Outcome is what came of the request before, for logs of decisions.
	Outcome Outcome
}

// Outcome is what a client says of the action that the request before in its sequence has answered.
type Outcome struct {
	// Reward is what it earned, where Given says that it is known.
	Reward float64
	Given  bool
	// Terminated and Truncated say that the episode has ended with it, because it is over or
	// because it was cut off: this request shows its final observation.
	Terminated, Truncated bool
}

// Request asks for one run of a model. It is only read, and neither it nor its tensors are touched
// after Infer returns.
type Request struct {
	// ID is the client's; it is echoed and, where a model has routes, decides which version
	// answers.
	ID    string
	Model string
	// Version is a number, a digest or a prefix of it, or an alias; empty means what the model's
	// routes say, otherwise the newest.
	Version string
	Inputs  []Tensor
	// Outputs are the names of the wanted outputs in the wanted order; none means all that are not
	// state.
	Outputs  []string
	Sequence Sequence
}

// Response is what a run gave. A response that is passed again is reused: its Outputs' tensors are
// overwritten where type and shape fit, and replaced where they do not.
type Response struct {
	ID      string
	Model   string
	Version string
	// Digest is that of the version's artefact or file, as [Content].Digest.
	Digest  string
	Outputs []Tensor
	Timing  Timing
}

// Timing says where the time of a request went.
type Timing struct {
	// Queue is the wait for an instance, Input the gathering of a batch, Infer the run, Output the
	// splitting of it; Input and Infer are those of the whole batch.
	Queue, Input, Infer, Output time.Duration
	// Rows is the number of rows in the run that the request was part of.
	Rows int
}
