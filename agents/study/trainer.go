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
	// Options are what all runs are trained with: engine, program and hooks. Init is what their
	// parameters begin with.
	Options run.Options
	Init    run.Init
}

// Plan opens an experiment for a directory, to go on with what that holds. The caller closes it.
func (t Trainer) Plan(ctx context.Context, dir string, c experiment.Config, h run.Hooks) (*run.Plan, error) {
	text, err := c.YAML()
	if err != nil {
		return nil, err
	}
	o, j := t.Options, run.Job{Config: text, NoPublish: true}
	o.Hooks = h
	if run.Holds(dir) {
		j.Resume = dir
	} else {
		j.Dir, j.Init = dir, t.Init
	}
	return run.New(ctx, t.Kinds, j, o)
}

// Rehearse finds out what refuses an experiment, as [run.Rehearse] does: that its policy can be
// published, too, unless the document publishes nothing.
func (t Trainer) Rehearse(ctx context.Context, c experiment.Config) error {
	text, err := c.YAML()
	if err != nil {
		return err
	}
	return run.Rehearse(ctx, t.Kinds, run.Job{Config: text, Init: t.Init}, t.Options, "")
}

// Train carries out an experiment in dir, or continues what dir holds of it, and returns the env
// steps taken in all, those of earlier processes included. It calls progress with this number at
// the start and as it grows. When ctx ends it saves its state and returns ctx's error. Training a
// run that has reached its end does nothing.
func (t Trainer) Train(ctx context.Context, dir string, c experiment.Config, progress func(envSteps int64)) (steps int64, err error) {
	from, err := run.Reached(dir)
	if err != nil {
		return 0, err
	}
	progress(from)
	text, err := c.YAML()
	if err != nil {
		return 0, err
	}
	o := t.Options
	o.Hooks.Progress = func(_ *run.Run, p train.Progress) { progress(p.EnvSteps) }
	r, err := run.Job{Config: text, Dir: dir, Init: t.Init, NoPublish: true}.Train(ctx, t.Kinds, o)
	return r.EnvSteps, err
}
