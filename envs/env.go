package envs

import (
	"errors"
	"fmt"

	"github.com/onnxrl/onnxrl/runtime/rng"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// Env is a world that one decision maker acts in. It is not safe for concurrent use; different
// environments are independent of each other.
//
// The TimeStep passed to Reset and Step fits the Spec ([NewTimeStep] makes one). The environment
// overwrites all of it, and keeps no reference to it or to the action.
type Env interface {
	// Spec describes the environment. It is constant for the environment's life.
	Spec() Spec
	// Reset begins a new episode, whether or not the last one has ended, and writes its first step:
	// type [First], reward 0, discount 1. All randomness of the episode comes from key.
	Reset(key rng.Key, ts *TimeStep) error
	// Step takes an action, one element of Spec().Action, and writes what it leads to. An action
	// outside the space is an [*ActionError] and changes nothing. An action that the mask excludes
	// is none: the environment takes it for the nearest thing that is possible. Without a running
	// episode, that is before Reset and after a step of type [Last], it returns [ErrNoEpisode].
	Step(action *tensor.Tensor, ts *TimeStep) error
	// Close frees what the environment holds. Afterwards Reset and Step return [ErrClosed]; closing
	// again is no error.
	Close() error
}

// Saver is implemented by environments that can be saved in the middle of an episode.
type Saver interface {
	// SaveState returns everything that the rest of the episode depends on.
	SaveState() ([]byte, error)
	// LoadState continues, in an environment made with the same configuration and data, where
	// SaveState was called. It writes the current observation, mask and diagnostics into ts, with
	// reward 0, costs of 0 and discount 1. The step is of type First when no action had been
	// taken, and else Mid. After an error the environment needs a Reset.
	LoadState(state []byte, ts *TimeStep) error
}

// Trainee is implemented by environments that pay, where somebody is trained in them, for what was
// done in the episodes before as well.
type Trainee interface {
	// Train says, before the first Reset, that the environment is trained in. What goes on from
	// one episode to the next is part of what a [Saver] saves.
	Train()
}

// ErrCannotSave is returned when an environment, or one inside it, is not a [Saver].
var ErrCannotSave = errors.New("the environment cannot be saved in the middle of an episode")

// SaveState is the SaveState of e, or ErrCannotSave.
func SaveState(e Env) ([]byte, error) {
	if s, ok := e.(Saver); ok {
		return s.SaveState()
	}
	return nil, fmt.Errorf("save %s: %w", e.Spec().Name, ErrCannotSave)
}

// LoadState is the LoadState of e, or ErrCannotSave.
func LoadState(e Env, state []byte, ts *TimeStep) error {
	if s, ok := e.(Saver); ok {
		return s.LoadState(state, ts)
	}
	return fmt.Errorf("load %s: %w", e.Spec().Name, ErrCannotSave)
}

// ErrNoEpisode is returned by Step before Reset and after the last step of an episode.
var ErrNoEpisode = errors.New("no episode is running: call Reset")

// ErrClosed is returned by Reset and Step after Close.
var ErrClosed = errors.New("the environment is closed")

// ActionError says that an action does not belong to the action space.
type ActionError struct {
	Env   string
	Space Space
	Err   error
}

func (e *ActionError) Error() string {
	return fmt.Sprintf("step %s: action of %v: %v", e.Env, e.Space, e.Err)
}

func (e *ActionError) Unwrap() error { return e.Err }

// CheckAction returns an *ActionError unless the action lies in the space of s. It does not
// allocate when it does.
func CheckAction(s *Spec, action *tensor.Tensor) error {
	if err := s.Action.Check(action); err != nil {
		return &ActionError{Env: s.Name, Space: s.Action, Err: err}
	}
	return nil
}
