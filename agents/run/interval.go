package run

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/onnxrl/onnxrl/agents/experiment"
	"github.com/onnxrl/onnxrl/agents/train"
	"github.com/onnxrl/onnxrl/models/checkpoint"
)

// IntervalFile is what came of an [Interval], in its directory.
const IntervalFile = "interval.json"

// Interval is a training interval: a document goes on from a checkpoint for some env steps. What
// comes of it depends on nothing else, see package train: not on the machine, and not on whether
// the member of a population that it is one of has lived in this process before.
type Interval struct {
	// Config is the document, whose train.total_env_steps are those of all intervals together:
	// schedules are relative to them. Name is what artefacts are called by.
	Config experiment.Config
	Name   string
	// Sets edit the document at key paths, such as agent.ent_coef=0.01.
	Sets []string
	// Seed replaces that of the document, unless nil.
	Seed *uint64
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

// Train trains the interval. Of the options, where and what is trained is the interval's: Dir,
// Resume, Sets and Seeds are to be empty. When ctx ends the state is saved, and the error is ctx's.
func (i Interval) Train(ctx context.Context, kinds experiment.Kinds, o Options) (r IntervalResult, err error) {
	defer func() {
		if err != nil && i.Dir != "" {
			err = fmt.Errorf("interval %s: %w", i.Dir, err)
		}
	}()
	if o.Dir != "" || o.Resume != "" || len(o.Sets)+len(o.Seeds) > 0 || i.EnvSteps < 0 {
		return r, errors.New("an interval takes no negative EnvSteps, and no options Dir, Resume, Sets and Seeds")
	}
	o.Sets, o.start, o.unkept = i.Sets, i.Checkpoint, i.Dir == ""
	o.NoPublish = o.NoPublish || o.unkept
	if o.Dir = i.Dir; i.Dir != "" && Holds(i.Dir) {
		o.Dir, o.Resume = "", i.Dir
	}
	c := i.Config
	if i.Seed != nil {
		c.Seed = *i.Seed
	}
	if len(c.Seeds) > 0 {
		return r, errors.New("seeds: an interval has one seed")
	}
	if i.EnvSteps > 0 {
		from, _, err := stepOf(i.Checkpoint)
		if err != nil {
			return r, err
		}
		o.until = from + i.EnvSteps
	}
	p, err := New(ctx, kinds, cmp.Or(i.Name, experiment.Name(i.Dir)), c, o)
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
