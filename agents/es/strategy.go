package es

import (
	"context"

	"github.com/onnxrl/onnxrl/agents"
	"github.com/onnxrl/onnxrl/models/checkpoint"
)

// strategy is what differs between the kinds: who the members of a generation are, and what is
// learnt from their returns. It changes the centre, the trainable parameters of the policy.
type strategy interface {
	// members is how many a generation has.
	members() int
	// write makes dst, as long as the centre, the parameters of a member. Several goroutines may
	// write at once; scratch [block] is the caller's. It allocates nothing.
	write(member int, dst, scratch []float32)
	// step moves the centre by the returns of the members, [members], and begins the next
	// generation. envSteps are those taken so far. When ctx ends nothing has changed.
	step(ctx context.Context, returns []float64, envSteps int64, m agents.Metrics) error
	// save and load are of all that the strategy carries, without the centre.
	save(w *checkpoint.Writer) error
	load(r *checkpoint.Reader) error
	// edit is agents.Editor's.
	edit(config any, totalEnvSteps int64) error
	close() error
}

// block is how many parameters have their perturbations from one stream, so that they can be drawn
// in parallel and again.
const block = 4096
