package agents

import (
	"context"
	"io"

	"github.com/onnxrl/onnxrl/envs/vector"
	"github.com/onnxrl/onnxrl/models"
	"github.com/onnxrl/onnxrl/models/checkpoint"
)

// Actor is a policy that follows a learner's parameters.
type Actor interface {
	vector.Policy
	// Sync makes the actor use the learner's present parameters. An actor that reads them where
	// they are learnt has nothing to do.
	Sync(ctx context.Context) error
}

// Recorder keeps what happens for a learner. Begin and End alternate; anything else is an error. Of
// rows that are absent when a round begins (vector.Batch.Present) it keeps nothing.
type Recorder interface {
	// Begin keeps what a decision was taken on, and the decision, before the environments take it.
	// It copies.
	Begin(b *vector.Batch, d *vector.Decision) error
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
	// call. When ctx ends, the error is ctx's, and Step has stopped between two gradient steps. The
	// learner is ready still, and its state can be saved. The next Step, of this learner or of one
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
// draws them as Explore does but is not learnt from. It has nothing of what only training has, such
// as dropout.
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
