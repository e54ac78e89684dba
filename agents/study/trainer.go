package study

import (
	"context"

	"github.com/onnxrl/onnxrl/agents/experiment"
	"github.com/onnxrl/onnxrl/agents/run"
	"github.com/onnxrl/onnxrl/agents/train"
)

// Trainer trains each run of a study as package run trains a document, and publishes nothing.
type Trainer struct {
	Kinds experiment.Kinds
	// Options are those of all runs: engine, program, hooks, and what parameters begin with. Where
	// a run is, it is told.
	Options run.Options
}

// Plan opens an experiment for a directory, to go on with what that holds. The caller closes it.
func (t Trainer) Plan(ctx context.Context, dir string, c experiment.Config, h run.Hooks) (*run.Plan, error) {
	o := t.Options
	o.NoPublish, o.Hooks = true, h
	if run.Holds(dir) {
		o.Resume, o.Init = dir, run.Init{}
	} else {
		o.Dir = dir
	}
	return run.New(ctx, t.Kinds, "", c, o)
}

// Rehearse finds out what refuses an experiment, as [run.Rehearse] does: that its policy can be
// published, too, unless the document publishes nothing.
func (t Trainer) Rehearse(ctx context.Context, c experiment.Config) error {
	return run.Rehearse(ctx, t.Kinds, "", c, t.Options, "")
}

// Train carries out an experiment in dir, or continues what dir holds of it, and returns the env
// steps taken in all, those of earlier processes included. It calls progress with this number at
// the start and as it grows. When ctx ends it saves its state and returns ctx's error. Training a
// run that has reached its end does nothing.
func (t Trainer) Train(ctx context.Context, dir string, c experiment.Config, progress func(envSteps int64)) (steps int64, err error) {
	h := t.Options.Hooks
	h.Progress = func(_ *run.Run, p train.Progress) { progress(p.EnvSteps) }
	from, err := run.Reached(dir)
	if err != nil {
		return 0, err
	}
	progress(from)
	o := t.Options
	o.NoPublish, o.Hooks = true, h
	r, err := run.Interval{Config: c, Dir: dir}.Train(ctx, t.Kinds, o)
	return r.EnvSteps, err
}
