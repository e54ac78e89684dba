package wrap

import (
	"encoding/json"
	"fmt"

	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/runtime/rng"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// TimeLimit truncates episodes after a number of steps. The last step keeps its observation and its
// discount, so that a learner bootstraps from it; an episode that comes to its end in that very
// step is terminated.
//
// It also keeps order, so that an environment inside that only has dynamics needs no more: Step
// without an episode is envs.ErrNoEpisode, and after Close everything is envs.ErrClosed.
type TimeLimit struct {
	envs.Env
	limit int
	steps int
	// ended says that no episode is running.
	ended  bool
	closed bool
}

var (
	_ envs.Env   = (*TimeLimit)(nil)
	_ envs.Saver = (*TimeLimit)(nil)
)

// NewTimeLimit returns e with a limit of at least one step.
func NewTimeLimit(e envs.Env, limit int) (*TimeLimit, error) {
	if limit < 1 {
		return nil, fmt.Errorf("time limit of %s: %d steps, expected at least 1", e.Spec().Name, limit)
	}
	return &TimeLimit{Env: e, limit: limit, ended: true}, nil
}

// Unwrap returns the environment inside.
func (w *TimeLimit) Unwrap() envs.Env { return w.Env }

// Spec implements envs.Env.
func (w *TimeLimit) Spec() envs.Spec {
	s := w.Env.Spec()
	if s.MaxSteps == 0 || s.MaxSteps > w.limit {
		s.MaxSteps = w.limit
	}
	return s
}

// Reset implements envs.Env.
func (w *TimeLimit) Reset(key rng.Key, ts *envs.TimeStep) error {
	if w.closed {
		return fmt.Errorf("reset %s: %w", w.Env.Spec().Name, envs.ErrClosed)
	}
	if err := w.Env.Reset(key, ts); err != nil {
		return err
	}
	w.steps, w.ended = 0, false
	return nil
}

// Step implements envs.Env.
func (w *TimeLimit) Step(action *tensor.Tensor, ts *envs.TimeStep) error {
	switch {
	case w.closed:
		return fmt.Errorf("step %s: %w", w.Env.Spec().Name, envs.ErrClosed)
	case w.ended:
		return fmt.Errorf("step %s: %w", w.Env.Spec().Name, envs.ErrNoEpisode)
	}
	if err := w.Env.Step(action, ts); err != nil {
		return err
	}
	w.steps++
	if w.steps == w.limit {
		ts.Type = envs.Last
	}
	w.ended = ts.Type == envs.Last
	return nil
}

// Close implements envs.Env.
func (w *TimeLimit) Close() error {
	if w.closed {
		return nil
	}
	w.closed, w.ended = true, true
	return w.Env.Close()
}

type limitState struct {
	Steps int    `json:"steps"`
	Env   []byte `json:"env"`
}

// SaveState implements envs.Saver.
func (w *TimeLimit) SaveState() ([]byte, error) {
	inner, err := envs.SaveState(w.Env)
	if err != nil {
		return nil, err
	}
	if w.ended {
		return nil, fmt.Errorf("save %s: %w", w.Env.Spec().Name, envs.ErrNoEpisode)
	}
	return json.Marshal(limitState{w.steps, inner})
}

// LoadState implements envs.Saver.
func (w *TimeLimit) LoadState(data []byte, ts *envs.TimeStep) error {
	var s limitState
	if err := json.Unmarshal(data, &s); err != nil {
		return fmt.Errorf("load time limit: %w", err)
	}
	if s.Steps < 0 || s.Steps >= w.limit {
		return fmt.Errorf("load time limit: %d steps of %d", s.Steps, w.limit)
	}
	if err := envs.LoadState(w.Env, s.Env, ts); err != nil {
		return err
	}
	w.steps, w.ended = s.Steps, false
	return nil
}
