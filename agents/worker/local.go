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

// keptSessions is how many sessions that no job uses wait for the next one.
const keptSessions = 32

// Local is the executor that carries out jobs in this process, one at a time, and keeps from one to
// the next what they have in common: the environment's data, sessions of networks, and what frozen
// layers make of windows.
type Local struct {
	kinds experiment.Kinds
	// options are those of every job.
	options  run.Options
	sessions *engine.Shared
	prefixes prefix.Caches
	// factory makes the environments of the section env with the text.
	factory envs.Factory
	text    string
}

// NewLocal returns what carries jobs out with an engine, which stays the caller's. Hooks of the
// options, such as Begin, are called as those of any run. Close it after use.
func NewLocal(kinds experiment.Kinds, o run.Options) *Local {
	l := &Local{kinds: kinds, options: o}
	l.sessions = engine.Share(o.Engine, keptSessions)
	l.options.Engine, l.options.Prefixes = l.sessions, &l.prefixes
	return l
}

// Do carries out a job; see run.Executor.
func (l *Local) Do(ctx context.Context, j run.Job, h run.Hooks) (r run.Result, err error) {
	o := l.options
	if o.Factory, err = l.environment(ctx, j); err != nil {
		return r, err
	}
	if h.Note != nil {
		o.Hooks.Note = h.Note
	}
	if h.Progress != nil {
		o.Hooks.Progress = h.Progress
	}
	if j.Evaluations {
		o.Hooks.Evaluated = h.Evaluated
	}
	r, err = j.Train(ctx, l.kinds, o)
	if IsDiskFull(err) && !errors.Is(err, ErrDiskFull) {
		err = fmt.Errorf("%w: %w", ErrDiskFull, err)
	}
	return r, err
}

// Slots implements run.Executor: one job at a time.
func (l *Local) Slots() int { return 1 }

// environment returns the factory of a job's environments, which is opened again where it is not that
// of the job before.
func (l *Local) environment(ctx context.Context, j run.Job) (envs.Factory, error) {
	doc, err := configs.Parse(run.ConfigFile, []byte(j.Config))
	if err == nil {
		err = doc.Set(j.Sets...)
	}
	if err != nil {
		return nil, err
	}
	section, _ := doc.Lookup("env")
	text, err := configs.Marshal(section)
	if err != nil {
		return nil, err
	}
	if l.factory != nil && l.text == string(text) {
		return l.factory, nil
	}
	if err := l.forget(); err != nil {
		return nil, err
	}
	c, err := l.kinds.Decode(doc)
	if err != nil {
		return nil, err
	}
	_, factory, _, err := l.kinds.On(l.sessions).Open(ctx, c)
	if err != nil {
		return nil, err
	}
	l.factory, l.text = factory, string(text)
	return factory, nil
}

// forget closes the environment of the job before.
func (l *Local) forget() error {
	if l.factory == nil {
		return nil
	}
	f := l.factory
	l.factory, l.text = nil, ""
	return f.Close()
}

// Close frees what is kept.
func (l *Local) Close() error {
	return errors.Join(l.prefixes.Close(), l.forget(), l.sessions.Close())
}
