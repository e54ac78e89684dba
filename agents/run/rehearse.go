package run

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/onnxrl/onnxrl/agents"
	"github.com/onnxrl/onnxrl/agents/experiment"
	"github.com/onnxrl/onnxrl/agents/publish"
	"github.com/onnxrl/onnxrl/agents/train"
	"github.com/onnxrl/onnxrl/runtime/optim"
)

// Rehearse opens a job as a run of it does, without a directory, and rehearses it, see
// [Plan.Rehearse]: a search or a study calls it for each of its documents before it trains the
// first. Of the options, those that say what runs its networks are looked at. keep, unless empty, is a directory in which the first policy is left as publish.PolicyFile,
// for what is rehearsed after it to act with.
func Rehearse(ctx context.Context, kinds experiment.Kinds, j Job, o Options, keep string) error {
	return aside(ctx, kinds, j, o, func(p *Plan) error { return p.rehearse(ctx, keep, nil) })
}

// Measure opens a job as [Rehearse] does, and tells how long rounds and learner steps of it
// take: so many of those, or as many as there are in a time, see train.Trainer.Measure.
func Measure(ctx context.Context, kinds experiment.Kinds, j Job, o Options, steps int, limit time.Duration) (pace train.Pace, err error) {
	j.EnvSteps, j.NoPublish = 0, true
	err = aside(ctx, kinds, j, o, func(p *Plan) error {
		return p.rehearse(ctx, "", func(t *train.Trainer) (err error) {
			pace, err = t.Measure(ctx, steps, limit)
			return err
		})
	})
	return pace, err
}

// aside opens a job as a run of it does, without a directory.
func aside(ctx context.Context, kinds experiment.Kinds, j Job, o Options, do func(*Plan) error) (err error) {
	// The runs say what there is to say of the document.
	kinds.Note, o.Hooks = nil, Hooks{}
	o.Replay, o.Executor, o.Watch = nil, nil, nil
	j.Dir, j.Resume, j.Name = "", "", cmp.Or(j.Name, "rehearsal")
	p, err := New(ctx, kinds, j, o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.Close()) }()
	return do(p)
}

// IntervalError says that training intervals are shorter than a learner step: the first ones take more
// env steps than they have, and nothing is left to the others.
type IntervalError struct{ EnvSteps, Step int64 }

func (e *IntervalError) Error() string {
	return fmt.Sprintf("%d env steps, fewer than the %d after which the agent learns: some would train nothing", e.EnvSteps, e.Step)
}

// Rehearse does once, and small, what a run of the plan does. It opens environments, agent and
// learner, and publishes the policy as publish.Publisher.Rehearse does, unless nothing is to be
// published. It takes two rounds of env steps, with a learner step where the algorithm takes one
// after so few. What refuses a run is found before anything is trained. All of it is thrown away.
// The run's directory is not written to, and a replay server and actors in other processes hear
// nothing. A loss that is not finite, which is an outcome of training, is no error.
func (p *Plan) Rehearse(ctx context.Context) error { return p.rehearse(ctx, "", nil) }

// rehearse does that, and measure, unless nil, in the place of the two rounds.
func (p *Plan) rehearse(ctx context.Context, keep string, measure func(*train.Trainer) error) (err error) {
	dir, err := os.MkdirTemp("", "onnxrl-rehearsal-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	r := p.run(p.Seeds()[0])
	r.path, r.cfg.Replay, r.cfg.Train.Actors = dir, nil, train.Defaults().Actors
	hooks := train.Hooks{Log: p.o.Hooks.Log}
	var given agents.Replay
	if r.cfg.Dataset != nil {
		if given, err = r.dataset(ctx, &hooks); err != nil {
			return err
		}
	}
	if err := r.openTrainer(ctx, given, hooks); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.tr.Close()) }()
	if per := r.tr.StepEnvSteps(); p.job.EnvSteps > 0 && p.job.EnvSteps < per {
		return &IntervalError{EnvSteps: p.job.EnvSteps, Step: per}
	}
	if !p.job.NoPublish && r.cfg.Publish.When != experiment.Never {
		if err := r.rehearsePublication(ctx, hooks, keep); err != nil {
			return err
		}
	}
	if measure != nil {
		err = measure(r.tr)
	} else {
		err = r.tr.Rehearse(ctx)
	}
	var diverged *agents.DivergedError
	var infinite *optim.NonFiniteError
	if errors.As(err, &diverged) || errors.As(err, &infinite) {
		return nil
	}
	return err
}

// rehearsePublication rehearses the publication of the run's first policy.
func (r *Run) rehearsePublication(ctx context.Context, hooks train.Hooks, keep string) (err error) {
	pub, err := r.publisher(hooks.Log, false)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, pub.Close()) }()
	policy := r.tr.Policy()
	if err := pub.Rehearse(ctx, policy); err != nil || keep == "" {
		return err
	}
	if err := pub.Keep(ctx, policy, publish.PolicyFile); err != nil {
		return err
	}
	return os.Rename(filepath.Join(r.path, publish.PolicyFile), filepath.Join(keep, publish.PolicyFile))
}
