package train

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/onnxrl/onnxrl/agents"
	"github.com/onnxrl/onnxrl/agents/actors"
	"github.com/onnxrl/onnxrl/envs/wrap"
	"github.com/onnxrl/onnxrl/models"
)

// Evaluator evaluates the agent's present policy on the validation split and returns metrics by
// name, such as sharpe or mean_reward; higher is better for the one that Config.Validation.Metric
// names. It has environments and randomness of its own, makes its own greedy actor from the agent,
// and closes it; it changes nothing that training depends on. When ctx ends it returns ctx's error.
type Evaluator func(ctx context.Context, a agents.Agent, envSteps int64) (map[string]float64, error)

// Publisher keeps a policy for use outside the run. Publishing the same policy again, as a run does
// that was killed before its next checkpoint, gives the same reference.
type Publisher interface {
	// Publish is called for every policy that is better than all before it; in a run that is never
	// validated, for the one at its end. The reference names what was published; without one it is
	// left for later, as it should be when ctx ends. An error ends the run, whose checkpoints stay.
	Publish(ctx context.Context, p Policy) (ref string, err error)
}

// Policy is a policy to be published.
type Policy struct {
	// Network is the network that acts, as agents.Learner.Policy describes it, and Params are its
	// parameters. They are the learner's: they do not change during the call and must not be kept.
	Network *models.Network
	Params  *models.Params
	// Normalizers are how observations reach the network, by field; none where they do as the
	// environment shows them. What is exported takes raw observations, so these belong into it.
	Normalizers []wrap.Normalizer
	// EnvSteps and LearnerSteps say how much it was trained.
	EnvSteps, LearnerSteps int64
	// Metric names the metric that it was chosen by, Score is its value, and Metrics are all of
	// them on the validation split. Metric is empty and Metrics nil when the run is never
	// validated.
	Metric  string
	Score   float64
	Metrics map[string]float64
	// Evaluations is the number of validations of a trained policy up to then, from which it was
	// chosen; 0 where it was not.
	Evaluations int64
}

// defined reports whether there is a score. An undefined one, such as the Sharpe ratio of a policy
// that never trades, is worse than any.
func (e *Evaluation) defined() bool { return e.Score-e.Score == 0 }

// Hooks connect a run to the outside. All are optional.
type Hooks struct {
	Log *slog.Logger
	// Metrics is called with values under TensorBoard-style tags at the given number of env steps.
	// The map is used again and must not be kept. Tags that begin with time/ may differ between
	// equal runs, all others may not.
	Metrics func(envSteps int64, values map[string]float64)
	// Progress is called after every learner step and, with a clock, ten times a second within a
	// long one and between rounds.
	Progress func(Progress)
	// Save is called when the state should be saved; the trainer is a checkpoint.Stater. score is
	// set when the policy was evaluated at this very step. An error ends the run.
	Save func(envSteps int64, score *float64) error
	// Evaluate measures the policy; without it the run is never validated.
	Evaluate Evaluator
	// Publish keeps the best policy.
	Publish Publisher
	// Every lists what else is done at intervals.
	Every []Callback
	// Actors reaches the actors of a run whose actors are processes of their own (Config.Actors).
	Actors *actors.Remote
	// Patience is how long Run waits for environments that do not answer once ctx has ended; 0 is
	// five seconds.
	Patience time.Duration
	// Now is the clock behind time/fps and time/time_elapsed, which are not recorded without it.
	Now func() time.Time
}

// Callback is something that a program does during a run.
type Callback struct {
	// Steps is the number of env steps between two calls: Do is called at the first learner step at
	// or after each multiple.
	Steps int64
	// Do may look at the agent and at everything that the trainer tells, and may change nothing
	// that training depends on, or resuming is not the same as going on. [ErrStop] ends the run as
	// an early stop does; any other error ends it with that error. When a run is stopped and
	// continued at a multiple it is not called again there.
	Do func(ctx context.Context, t *Trainer) error
}

// ErrStop is what a [Callback] returns to end a run.
var ErrStop = errors.New("stop the run")
