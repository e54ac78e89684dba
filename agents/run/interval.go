package run

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/onnxrl/onnxrl/agents/evaluate"
	"github.com/onnxrl/onnxrl/agents/experiment"
	"github.com/onnxrl/onnxrl/agents/train"
	"github.com/onnxrl/onnxrl/models/checkpoint"
)

// Files of an [Interval]'s directory: what came of it, and what its policy does after the
// observations of a probe.
const (
	IntervalFile = "interval.json"
	ProbeFile    = "probe.json"
)

// Interval is a training interval: a document goes on from a checkpoint for some env steps. What
// comes of it depends on nothing else, see package train: not on the machine, and not on whether
// the member of a population that it is one of has lived in this process before.
type Interval struct {
	// Config is the document, whose train.total_env_steps are those of all intervals together:
	// schedules are relative to them. Name is what artefacts are called by.
	Config experiment.Config
	Name   string
	// Checkpoint is the directory of the checkpoint to go on from, of a run of a document that
	// differs in nothing but what train.Trainer.Edit can change; empty begins. It is only read.
	Checkpoint string
	// EnvSteps is how many env steps are taken, over all environments: the interval ends with the
	// first learner step at or after that many. 0 goes on to the end of the run.
	EnvSteps int64
	// Dir is the run directory of the interval. If it holds this interval already, that goes on
	// where it was interrupted; a finished one is only told again. Without one nothing is kept but
	// the metrics of the result.
	Dir string
	// Probe is after how many observations of the validation split what the policy does at the end
	// is written down in the directory, see evaluate.ProbeValid; 0 does not.
	Probe int
}

// IntervalResult is what comes of an interval; the JSON keys are stable.
type IntervalResult struct {
	// Checkpoint is the directory of the checkpoint that the interval has ended with, relative to
	// its own.
	Checkpoint string `json:"checkpoint"`
	// Until are the env steps of the run at which the interval was to end, 0 for its last.
	Until int64 `json:"until"`
	// RunSummary has the metrics and, as Published, the artefact that was published last. Stopped
	// is train.Paused where the run goes on with another interval.
	RunSummary
}

// Train trains the interval, or has Options.Executor train it. Of the options, where and what is
// trained is the interval's: Dir, Resume, Sets and Seeds are to be empty; what parameters begin
// with is looked at where the interval begins. When ctx ends the state is saved, and the error is
// ctx's.
func (i Interval) Train(ctx context.Context, kinds experiment.Kinds, o Options) (r IntervalResult, err error) {
	defer func() {
		if err != nil && i.Dir != "" {
			err = fmt.Errorf("interval %s: %w", i.Dir, err)
		}
	}()
	switch {
	case o.Dir != "" || o.Resume != "" || len(o.Sets)+len(o.Seeds) > 0 || i.EnvSteps < 0:
		return r, errors.New("an interval takes no negative EnvSteps, and no options Dir, Resume, Sets and Seeds")
	case len(i.Config.Seeds) > 0:
		return r, errors.New("seeds: an interval has one seed")
	}
	if o.Executor != nil {
		return i.elsewhere(ctx, kinds, o)
	}
	o.start, o.unkept = i.Checkpoint, i.Dir == ""
	o.NoPublish = o.NoPublish || o.unkept
	if o.Dir = i.Dir; i.Dir != "" && Holds(i.Dir) {
		o.Dir, o.Resume, o.Init = "", i.Dir, Init{}
	}
	if i.Probe > 0 && i.Dir != "" {
		o.Hooks.End = i.probed(ctx, o.Hooks.End)
	}
	if i.EnvSteps > 0 {
		from, _, err := stepOf(i.Checkpoint)
		if err != nil {
			return r, err
		}
		o.until = from + i.EnvSteps
	}
	p, err := New(ctx, kinds, cmp.Or(i.Name, experiment.Name(i.Dir)), i.Config, o)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, p.Close()) }()
	if o.Resume != "" {
		if err := p.unchanged(i.Checkpoint); err != nil {
			return r, err
		}
		switch err := ReadJSON(filepath.Join(i.Dir, IntervalFile), &r); {
		case err == nil && r.Until == o.until:
			return r, nil
		case err != nil && !errors.Is(err, os.ErrNotExist):
			return r, err
		}
	}
	sum, err := p.Train(ctx)
	if err != nil {
		return r, err
	}
	// It has not even begun where ctx had ended before.
	if len(sum.Runs) == 0 || sum.Runs[0].Stopped == train.Interrupted {
		return r, ctx.Err()
	}
	r = IntervalResult{Until: o.until, RunSummary: sum.Runs[0]}
	if o.unkept {
		return r, nil
	}
	list, err := checkpoint.List(filepath.Join(i.Dir, CheckpointDir))
	if err != nil {
		return r, err
	}
	r.Checkpoint = filepath.Join(CheckpointDir, filepath.Base(list[len(list)-1].Path))
	return r, WriteJSON(filepath.Join(i.Dir, IntervalFile), r)
}

// probed is a hook for the end of the run that writes the probe's file after another one. It comes
// before the interval is finished, so that one that is stopped here comes here again.
func (i Interval) probed(ctx context.Context, end func(*Run, train.Result) error) func(*Run, train.Result) error {
	return func(r *Run, res train.Result) error {
		if end != nil {
			if err := end(r, res); err != nil {
				return err
			}
		}
		if res.Stopped == train.Interrupted {
			return nil
		}
		actions, err := evaluate.ProbeValid(ctx, r.plan.factory, r.tr.Agent(), i.Probe, r.cfg.Eval.MaxEpisodeSteps)
		if err == nil {
			err = WriteJSON(filepath.Join(i.Dir, ProbeFile), actions)
		}
		if err != nil {
			return fmt.Errorf("the probe observations: %w", err)
		}
		return nil
	}
}
