package agenttest

import (
	"context"
	"slices"

	"github.com/onnxrl/onnxrl/agents"
	"github.com/onnxrl/onnxrl/envs/vector"
	"github.com/onnxrl/onnxrl/runtime/rng"
)

// Stranger makes decisions look as if another policy had drawn them, whose log-probabilities are
// lower by Shift, at another version, without values.
type Stranger struct {
	agents.Actor
	Shift float32
}

// Act implements agents.Actor.
func (s Stranger) Act(ctx context.Context, key rng.Key, b *vector.Batch) (*vector.Decision, error) {
	d, err := s.Actor.Act(ctx, key, b)
	if err != nil {
		return nil, err
	}
	other := *d
	other.LogProb = slices.Clone(d.LogProb)
	for i := range other.LogProb {
		other.LogProb[i] -= s.Shift
	}
	other.Version, other.Value = 77, nil
	return &other, nil
}
