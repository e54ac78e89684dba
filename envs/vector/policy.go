package vector

import (
	"context"

	"github.com/onnxrl/onnxrl/runtime/rng"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// Policy decides for the rows of a [Batch]: an algorithm's actor, an exported model, or several of
// them acting as one. It is not safe for concurrent use; several policies of one model are
// independent of each other.
type Policy interface {
	// Act chooses an action for every row of the batch, which it does not change. All randomness
	// comes from key. A policy that remembers begins again in a row whose Type is not envs.Mid.
	// What it returns is valid until the next call; it allocates nothing.
	Act(ctx context.Context, key rng.Key, b *Batch) (*Decision, error)
	// Remembers reports whether decisions depend on steps before: then the policy has to see all
	// steps of an episode, one after the other.
	Remembers() bool
	// Close frees what the policy holds. The parameters stay.
	Close() error
}

// Decision is what a [Policy] chose for every row of a batch. The policy owns its memory and
// overwrites it with the next call of Act. What it has for rows that are absent (Batch.Present) has
// no meaning, and nobody looks at it.
type Decision struct {
	// Actions [B, …] are elements of the environments' action space.
	Actions *tensor.Tensor
	// Drawn [B, components] are actions in a Box as they were drawn, before they were clipped to
	// its bounds: what LogProb is of, and what a learner records. nil where they are Actions
	// themselves.
	Drawn *tensor.Tensor
	// LogProb [B] are the logarithms of the probabilities, or densities, with which the actions
	// were drawn: those of the policy that really acted, mask and squashing included. nil when
	// actions are not drawn.
	LogProb []float32
	// Value [B] are the critic's estimates for the observations; nil when the policy has none.
	Value []float32
	// CostValue [B, constraints] are the estimates of the critics of costs; nil without constraints
	// (package constraint).
	CostValue []float32
	// Logits [B, envs.MaskLen] are the masked log-probabilities of every action of every head, of
	// the policy that really acted; nil where it does not draw from a table of them.
	Logits *tensor.Tensor
	// Mean and LogStd [B, components] are those of a Gaussian policy before it is squashed and
	// rescaled; nil where there is none, or the policy does not say.
	Mean, LogStd []float32
	// Skill [B] or [B, k] is what the policy was conditioned on beside the observation; nil
	// without.
	Skill *tensor.Tensor
	// Dropout [B] are what the dropout masks of the network that decided were drawn from, 0 for
	// none; nil where the agent's networks have no dropout.
	Dropout []int64
	// Version counts the updates of the parameters that decided, as of the last Sync of an actor.
	Version int64
}
