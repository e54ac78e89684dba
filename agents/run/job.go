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

// Files of an interval's directory: what came of it, and what its policy does after the
// observations of a probe.
const (
	IntervalFile = "interval.json"
	ProbeFile    = "probe.json"
)

// Job is what is trained, as a value: a run, several seeds of one, or with [Job.Train] an interval
// of a run, in which it goes on from a checkpoint for some env steps. A strategy makes jobs, and
// the same job goes to a goroutine, to a process or to another machine, see [Executor]; what they
// are trained with is in [Options]. What comes of a job depends on nothing else, see package train:
// not on the machine, and not on whether a member of a population has lived in this process before.
// The JSON keys are stable.
type Job struct {
	// ID says which job it is among those that go on at once, and is what a watcher calls its run.
	// Empty is the label of its directory, see [Label], or without one Name.
	ID string `json:"id,omitempty"`
	// Group is the directory of what the job is a part of, such as a search; empty is that which Dir
	// is in. Root is the directory below which digests of documents call files by their place in it,
	// as it is that of a population, of which a search is a part; empty is Group, and without that
	// files are called by their paths.
	Group string `json:"group,omitempty"`
	Root  string `json:"root,omitempty"`
	// Config is the document, as YAML. It is decoded where the job is trained. Its
	// train.total_env_steps are those of all intervals together: schedules are relative to them.
	Config string `json:"config"`
	// Name is what artefacts are called by.
	Name string `json:"name,omitempty"`
	// Sets edit the document, such as agent.gamma=0.9. In a run that is resumed only what does not
	// change its results may differ, and train.total_env_steps may grow.
	Sets []string `json:"sets,omitempty"`
	// Seeds replace those of the document: one run for each, in seed-N.
	Seeds []uint64 `json:"seeds,omitempty"`
	// Dir is a run directory. A plan's is new; without one it is the first of runs/NAME-1,
	// runs/NAME-2 … that does not exist. If an interval's holds it already, that goes on where it
	// was interrupted, and a finished one is only told again; without one nothing is kept but the
	// metrics of the result.
	Dir string `json:"dir,omitempty"`
	// Resume is the directory of a run, or of several seeds, to continue bit for bit, or a
	// checkpoint of a run to go on from. With Dir the latter goes on in a new directory; without,
	// the run goes back, and what came after the checkpoint is removed. In a new directory the
	// document may change as far as train.Trainer.Edit goes.
	Resume string `json:"resume,omitempty"`
	// Checkpoint is the directory of the checkpoint that an interval goes on from, of a run of a
	// document that differs in nothing but what train.Trainer.Edit can change; empty begins. It is
	// only read. Lineage calls it Continues; empty is its path.
	Checkpoint string `json:"checkpoint,omitempty"`
	Continues  string `json:"continues,omitempty"`
	// EnvSteps is how many env steps an interval takes, over all environments: it ends with the
	// first learner step at or after that many. 0 goes on to the end of the run. [Rehearse] refuses
	// fewer than a learner step takes.
	EnvSteps int64 `json:"env_steps,omitempty"`
	// Probe is after how many observations of the validation split an interval writes down what its
	// policy does at the end, see evaluate.ProbeValid; 0 does not.
	Probe int `json:"probe,omitempty"`
	// Init is what parameters begin with, where its Ref is set: the directory of a run, a
	// checkpoint, an ONNX file, or an artefact of the store in the directory InitStore. Of it Ref,
	// Partial and Rename are read.
	Init      Init   `json:"init,omitzero"`
	InitStore string `json:"init_store,omitempty"`
	// NoPublish publishes nothing, whatever the document says.
	NoPublish bool `json:"no_publish,omitempty"`
	// Share is the directory of an artefact store that publications are copied into, under Alias;
	// empty copies none, and without Alias they have the name of the directory.
	Share string `json:"share,omitempty"`
	Alias string `json:"alias,omitempty"`
	// Runs is how many runs it is one of, from which the policy is chosen; 0 is those of Seeds.
	Runs int `json:"runs,omitempty"`
	// Evaluations says that who has handed it to an executor wants to be told of evaluations, and
	// may end it then.
	Evaluations bool `json:"evaluations,omitempty"`
}

// root is Job.Root, or Group.
func (j *Job) root() string { return cmp.Or(j.Root, j.Group) }

// Result is what comes of a job of one seed; the JSON keys are stable.
type Result struct {
	// Checkpoint is the directory of the checkpoint that an interval has ended with, relative to
	// its own.
	Checkpoint string `json:"checkpoint"`
	// Until are the env steps of the run at which the interval was to end, 0 for its last.
	Until int64 `json:"until"`
	// RunSummary has the metrics and, as Published, the artefact that was published last. Stopped
	// is train.Paused where the run goes on with another interval.
	RunSummary
}

// Train trains the job as an interval, or has Options.Executor train it: Resume and Seeds are to be
// empty, and what parameters begin with is looked at where the interval begins. When ctx ends
// the state is saved, and the error is ctx's.
func (j Job) Train(ctx context.Context, kinds experiment.Kinds, o Options) (r Result, err error) {
	dir := j.Dir
	defer func() {
		if err != nil && dir != "" {
			err = fmt.Errorf("interval %s: %w", dir, err)
		}
	}()
	if j.Resume != "" || len(j.Seeds) > 0 || j.EnvSteps < 0 {
		return r, errors.New("an interval takes no negative EnvSteps, and neither Resume nor Seeds")
	}
	if o.Executor != nil {
		return j.elsewhere(ctx, kinds, o)
	}
	interval := &interval{}
	if j.EnvSteps > 0 {
		from, _, err := stepOf(j.Checkpoint)
		if err != nil {
			return r, err
		}
		interval.until = from + j.EnvSteps
	}
	j.NoPublish = j.NoPublish || dir == ""
	if dir != "" && Holds(dir) {
		j.Dir, j.Resume, j.Init = "", dir, Init{}
	}
	if j.Probe > 0 && dir != "" {
		o.Hooks.End = probed(ctx, dir, j.Probe, o.Hooks.End)
	}
	p, err := newPlan(ctx, kinds, j, o, interval)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, p.Close()) }()
	if p.resume {
		if err := p.unchanged(j.Checkpoint); err != nil {
			return r, err
		}
		switch err := ReadJSON(filepath.Join(dir, IntervalFile), &r); {
		case err == nil && r.Until == interval.until:
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
	r = Result{Until: interval.until, RunSummary: sum.Runs[0]}
	if p.unkept() {
		return r, nil
	}
	list, err := checkpoint.List(filepath.Join(dir, CheckpointDir))
	if err != nil {
		return r, err
	}
	r.Checkpoint = filepath.Join(CheckpointDir, filepath.Base(list[len(list)-1].Path))
	return r, WriteJSON(filepath.Join(dir, IntervalFile), r)
}

// interval is what a plan knows of the interval that it is: the env steps at which its run pauses,
// unless 0.
type interval struct{ until int64 }

// probed is a hook for the end of the run that writes the probe's file after another one. It comes
// before the interval is finished, so that one that is stopped here comes here again.
func probed(ctx context.Context, dir string, observations int, end func(*Run, train.Result) error) func(*Run, train.Result) error {
	return func(r *Run, res train.Result) error {
		if end != nil {
			if err := end(r, res); err != nil {
				return err
			}
		}
		if res.Stopped == train.Interrupted {
			return nil
		}
		actions, err := evaluate.ProbeValid(ctx, r.plan.factory, r.tr.Agent(), observations, r.cfg.Eval.MaxEpisodeSteps)
		if err == nil {
			err = WriteJSON(filepath.Join(dir, ProbeFile), actions)
		}
		if err != nil {
			return fmt.Errorf("the probe observations: %w", err)
		}
		return nil
	}
}
