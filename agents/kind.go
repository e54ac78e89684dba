package agents

import (
	"context"
	"errors"
	"log/slog"

	"github.com/onnxrl/onnxrl/configs"
	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/models"
	"github.com/onnxrl/onnxrl/models/encoder"
	"github.com/onnxrl/onnxrl/models/prefix"
	"github.com/onnxrl/onnxrl/models/program"
	"github.com/onnxrl/onnxrl/runtime/engine"
	"github.com/onnxrl/onnxrl/runtime/rng"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// Setup is what an algorithm is made for and with.
type Setup struct {
	// Spec describes one environment, Envs is the number of rows of the batch it learns from.
	Spec envs.Spec
	Envs int
	// TotalEnvSteps is the length of the run over all environments, for schedules that are relative
	// to it; 0 when it is not known, and such schedules then hold their first value.
	TotalEnvSteps int64
	// Engine compiles the graphs; Threads is how many cores the agent may keep busy.
	Engine  engine.Compiler
	Threads int
	// SplitFLOPs, unless 0, is the arithmetic of a run from which the agent splits it over cores,
	// instead of what its algorithm has; see [program.Split].
	SplitFLOPs float64
	// Encoders lists the encoders that a configuration can name.
	Encoders []encoder.Kind
	// Init, unless nil, may overwrite the freshly drawn parameters, by name, before anything is
	// made of them such as target networks. The agent calls it once.
	Init func(values map[string]*tensor.Tensor) error
	// Bases, unless nil, holds the encoders that adapters belong to, so that agents over the same
	// encoder have it once in memory. It outlives them.
	Bases *models.Bases
	// Prefixes, unless nil, holds what the parts of encoders that never change make of windows, so
	// that these run once for each row of a table. It outlives the agents.
	Prefixes *prefix.Caches
	// Replay, unless nil, is what an off-policy learner records into and samples, instead of a
	// replay of its own that it makes, saves and closes.
	Replay Replay
	// Key is where initial parameters and all of the learner's randomness descend from.
	Key rng.Key
	// Acting says that the agent is to act and to record alone, see [Unroller]: its learner takes
	// no steps and need not be able to.
	Acting bool
	// Profile, unless nil, receives from the learner where the time of its steps goes.
	Profile *Profile
	// Updating, unless nil, is called between the gradient steps of a learner step with how many
	// of how many are done; see Between.
	Updating func(done, of int)
	// Log may be nil.
	Log *slog.Logger
}

// Replay is a store of transitions that outlives a learner and that others may use: a replay.Store,
// whose package imports this one.
type Replay interface {
	// Identity names the store. It is what the learner's checkpoints have in the place of
	// transitions, and must be the same where they are restored.
	Identity() string
}

// Offline is implemented by a [Replay] that may hold all that there is to learn from, such as a
// data set. Where it does, no environment is stepped: rounds only count, for what is due after so
// many.
type Offline interface {
	Replay
	Offline() bool
}

// Offline reports whether the setup's replay holds all that there is to learn from.
func (s *Setup) Offline() bool {
	r, ok := s.Replay.(Offline)
	return ok && r.Offline()
}

// Split returns the rule by which batches are split over Threads, from so much arithmetic on.
func (s *Setup) Split(flops float64) program.Split {
	if s.SplitFLOPs > 0 {
		flops = s.SplitFLOPs
	}
	return program.Split{Threads: s.Threads, FLOPs: flops}
}

// Between is what a learner calls before each gradient step of one Step, of which so many are done.
// An error is ctx's, and the learner returns it.
func (s *Setup) Between(ctx context.Context, done, of int) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if s.Updating != nil {
		s.Updating(done, of)
	}
	return nil
}

// Validate reports what is missing.
func (s *Setup) Validate() error {
	var errs []error
	if err := s.Spec.Validate(); err != nil {
		errs = append(errs, err)
	}
	if s.Envs < 1 {
		errs = append(errs, errors.New("an agent needs at least one environment"))
	}
	if s.Engine == nil {
		errs = append(errs, errors.New("an agent needs an engine"))
	}
	return errors.Join(errs...)
}

// Kind is one row of a list of algorithms: the name that a configuration gives as kind, and how the
// other keys become an agent.
type Kind struct {
	Name string
	// Summary says in one line what the algorithm is, and for which actions.
	Summary string
	// Offline says that it is for data sets: documents of it have a section dataset.
	Offline bool
	// Defaults returns the parameters that Parse decodes over, a struct whose fields are the keys.
	Defaults func() any
	// Parse decodes the parameters strictly, over the kind's defaults, and returns what makes
	// agents of them.
	Parse func(params configs.Section) (Maker, error)
}

// FromData returns the kind as one for data sets.
func (k Kind) FromData() Kind {
	k.Offline = true
	return k
}

// Maker makes agents of one configuration.
type Maker interface {
	// Config returns the effective parameters, defaults included, for the record of the run.
	Config() any
	// New makes an agent. A configuration that does not fit the environment is an error that names
	// both sides.
	New(ctx context.Context, s Setup) (Agent, error)
}

// Parse finds the algorithm that a configuration names. The error for an unknown name is placed at
// the name.
func Parse(kinds []Kind, c configs.Kinded) (Maker, error) {
	names := make([]string, len(kinds))
	for i, k := range kinds {
		if k.Name == c.Kind {
			return k.Parse(c.Section)
		}
		names[i] = k.Name
	}
	return nil, c.Unknown(names)
}
