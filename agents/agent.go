package agents

import (
	"context"
	"io"

	"github.com/onnxrl/onnxrl/envs/vector"
	"github.com/onnxrl/onnxrl/models"
	"github.com/onnxrl/onnxrl/models/checkpoint"
	"github.com/onnxrl/onnxrl/runtime/rng"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// Decision is what an actor chose for every row of a batch. The actor owns its memory and
// overwrites it with the next call of Act. What it has for rows that are absent
// (vector.Batch.Present) has no meaning, and nobody looks at it.
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
	// Value [B] are the critic's estimates for the observations; nil when the actor has none.
	Value []float32
	// CostValue [B, constraints] are the estimates of the critics of costs; nil without constraints
	// (package constraint).
	CostValue []float32
	// Logits [B, envs.MaskLen] are the masked log-probabilities of every action of every head, of
	// the policy that really acted; nil where it does not draw from a table of them.
	Logits *tensor.Tensor
	// Skill [B] or [B, k] is what the policy was conditioned on beside the observation; nil
	// without.
	Skill *tensor.Tensor
	// Dropout [B] are what the dropout masks of the network that decided were drawn from, 0 for
	// none; nil where the agent's networks have no dropout.
	Dropout []int64
	// Version counts the updates of the parameters that decided, as of the actor's last Sync.
	Version int64
}

// Actor chooses actions. It is not safe for concurrent use; several actors of one policy are
// independent of each other.
type Actor interface {
	// Act chooses an action for every row of the batch, which it does not change. All randomness
	// comes from key. What it returns is valid until the next call; it allocates nothing.
	Act(ctx context.Context, key rng.Key, b *vector.Batch) (*Decision, error)
	// Sync makes the actor use the learner's present parameters. An actor that reads them where
	// they are learnt has nothing to do.
	Sync(ctx context.Context) error
	// Close frees what the actor holds. The parameters stay.
	Close() error
}

// Recorder keeps what happens for a learner. Begin and End alternate; anything else is an error. Of
// rows that are absent when a round begins (vector.Batch.Present) it keeps nothing.
type Recorder interface {
	// Begin keeps what a decision was taken on, and the decision, before the environments take it.
	// It copies.
	Begin(b *vector.Batch, d *Decision) error
	// End keeps what the decision led to: b after the environments' step.
	End(b *vector.Batch) error
}

// A policy network's data inputs are the fields of the observation, by name, and the mask where the
// environment has one; every one has a symbolic batch in front. The first output is the greedy
// action. A stochastic policy over discrete actions also has the masked log-probabilities, a
// Gaussian one mean and log standard deviation, and one with a critic the value. The network is
// complete: what is exported is this graph with its parameters baked in.
const (
	// MaskInput is bool [batch, envs.MaskLen].
	MaskInput = "mask"
	// ActionOutput is [batch, …], an element of the action space.
	ActionOutput = "action"
	// LogProbsOutput is float32 [batch, envs.MaskLen]: the logarithm of the probability of every
	// action of every head.
	LogProbsOutput = "log_probs"
	// QValuesOutput is float32 [batch, actions]: the value of every action, invalid ones included.
	QValuesOutput = "q_values"
	// ValueOutput is float32 [batch].
	ValueOutput = "value"
	// CostValueOutput is float32 [batch, constraints], of a policy with critics of costs.
	CostValueOutput = "cost_value"
	// MeanOutput and LogStdOutput are float32 [batch, actions], the parameters of a Gaussian policy
	// before squashing and rescaling.
	MeanOutput   = "action_mean"
	LogStdOutput = "action_log_std"
)

// Learner changes a policy. It is not safe for concurrent use.
type Learner interface {
	// Ready reports whether enough has been recorded for Step.
	Ready() bool
	// Step updates the parameters from what was recorded. What it returns is valid until the next
	// call. When ctx ends, the error is ctx's, and Step has stopped between two gradient steps: the
	// learner is ready still, its state can be saved, and the next Step, of this learner or of one
	// that has loaded the state, goes on there and gives the same bits.
	Step(ctx context.Context) (Metrics, error)
	// Policy returns the network that acts, in the form described at MaskInput, and its parameters,
	// which the learner keeps changing.
	Policy() (*models.Network, *models.Params)
	// Stater saves and restores everything that later steps depend on: parameters, optimiser,
	// streams, what is recorded and not yet used, and how far a Step has come that ctx has stopped.
	// A round that has begun and not ended is left out.
	checkpoint.Stater
}

// Stepper is implemented by a [Learner] that takes a step after every so many rounds.
type Stepper interface{ StepRounds() int }

// Restarter is implemented by a [Learner] that may learn from whole episodes only, whose parameters
// a step changes: where Restart says so after a step, every environment is to begin a new episode.
// Without that it goes on all the same, and waits for the episodes to end.
type Restarter interface{ Restart() bool }

// Limited is implemented by a [Learner] that may keep limits on what episodes cost beside the
// reward. Excess is 0 where the policy keeps all of them, as far as is known, or there are none, and
// else by how much they are passed.
type Limited interface{ Excess() float64 }

// Replayer is implemented by a [Learner] that learns from a replay: Replayed is how many
// transitions it can draw.
type Replayer interface{ Replayed() int }

// Mode is how an actor uses a policy.
type Mode int

// The modes: Explore draws actions for training to learn from, Greedy takes the best, and Sample
// draws them as Explore does but is not learnt from: of what only training has, such as dropout, it
// has nothing.
const (
	Explore Mode = iota
	Greedy
	Sample
)

// Draws reports whether actions are drawn.
func (m Mode) Draws() bool { return m != Greedy }

// String returns "explore", "greedy" or "sample".
func (m Mode) String() string { return [...]string{"explore", "greedy", "sample"}[m] }

// Agent is everything that an algorithm made for one policy.
type Agent interface {
	// NewActor returns an actor for batches of n rows. The caller closes it, before the agent.
	NewActor(m Mode, n int) (Actor, error)
	// Recorder and Learner return the same ones every time.
	Recorder() Recorder
	Learner() Learner
	io.Closer
}
