package worker

import (
	"context"
	"errors"
	"fmt"

	"github.com/onnxrl/onnxrl/agents/experiment"
	"github.com/onnxrl/onnxrl/agents/run"
	"github.com/onnxrl/onnxrl/configs"
	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/models/prefix"
	"github.com/onnxrl/onnxrl/runtime/engine"
)

// keptSessions is how many sessions that no task uses wait for the next one.
const keptSessions = 32

// Tasks is the executor that carries out tasks in this process, one at a time, and keeps from one
// to the next what they have in common: the environment's data, sessions of networks, and what
// frozen layers make of windows.
type Tasks struct {
	kinds experiment.Kinds
	// options are those of every task.
	options  run.Options
	sessions *engine.Shared
	prefixes prefix.Caches
	// factory makes the environments of the section env with the text.
	factory envs.Factory
	text    string
}

// NewTasks returns what carries tasks out with an engine, which stays the caller's. Hooks of the
// options, such as Begin, are called as those of any run. Close it after use.
func NewTasks(kinds experiment.Kinds, o run.Options) *Tasks {
	t := &Tasks{kinds: kinds, options: o}
	t.sessions = engine.Share(o.Engine, keptSessions)
	t.options.Engine, t.options.Prefixes = t.sessions, &t.prefixes
	return t
}

// Do carries out a task; see run.Executor.
func (t *Tasks) Do(ctx context.Context, task run.Task, h run.TaskHooks) (run.IntervalResult, error) {
	o := t.options
	i, err := task.Interval(t.kinds)
	if err != nil {
		return run.IntervalResult{}, err
	}
	if o.Factory, err = t.environment(ctx, i.Config); err != nil {
		return run.IntervalResult{}, err
	}
	r, err := task.Train(ctx, t.kinds, i, o, h)
	if IsDiskFull(err) && !errors.Is(err, ErrDiskFull) {
		err = fmt.Errorf("%w: %w", ErrDiskFull, err)
	}
	return r, err
}

// Slots implements run.Executor: one task at a time.
func (t *Tasks) Slots() int { return 1 }

// environment returns the factory of a document's environments, which is opened anew where it is
// not that of the task before.
func (t *Tasks) environment(ctx context.Context, c experiment.Config) (envs.Factory, error) {
	text, err := configs.Marshal(c.Env)
	if err != nil {
		return nil, err
	}
	if t.factory != nil && t.text == string(text) {
		return t.kinds.Rewrap(t.factory, c.Wrappers)
	}
	if err := t.forget(); err != nil {
		return nil, err
	}
	_, factory, _, err := t.kinds.On(t.sessions).Open(ctx, c)
	if err != nil {
		return nil, err
	}
	t.factory, t.text = factory, string(text)
	return factory, nil
}

// forget closes the environment of the task before.
func (t *Tasks) forget() error {
	if t.factory == nil {
		return nil
	}
	f := t.factory
	t.factory, t.text = nil, ""
	return f.Close()
}

// Close frees what is kept.
func (t *Tasks) Close() error {
	return errors.Join(t.prefixes.Close(), t.forget(), t.sessions.Close())
}
