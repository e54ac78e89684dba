package run

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"

	"github.com/onnxrl/onnxrl/agents"
	"github.com/onnxrl/onnxrl/agents/experiment"
	"github.com/onnxrl/onnxrl/agents/train"
	"github.com/onnxrl/onnxrl/configs"
	"github.com/onnxrl/onnxrl/runtime/buildinfo"
	"github.com/onnxrl/onnxrl/runtime/objects"
)

// Executor trains tasks somewhere: in other processes, or on other machines. What comes of a task
// depends on nothing but the task, so that results do not depend on the executor, on how many tasks
// it carries out at once and in which order, or on what fails meanwhile.
type Executor interface {
	// Do carries out a task and calls the hooks meanwhile, from one goroutine. When ctx ends the
	// task's state is saved where it has a directory, and the error is ctx's. Errors are those of
	// [Interval.Train]: *agents.DivergedError, *optim.NonFiniteError and checkpoint.ErrCorrupt are
	// found in them.
	Do(ctx context.Context, t Task, h TaskHooks) (IntervalResult, error)
	// Slots is how many tasks are carried out at once; more wait.
	Slots() int
}

// Task is an interval, or a whole run, written down for another process; the JSON keys are stable.
// Paths are absolute.
type Task struct {
	// ID says which task it is among those that a program has carried out at once: its label and
	// seed.
	ID string `json:"id"`
	// Group is the directory of what the task is a part of: the search, the study or the runs.
	// Root is the directory below which digests call files by their place in it, see [Options.Root].
	Group string `json:"group"`
	Root  string `json:"root,omitempty"`
	// Config is the document, as YAML, and the others are the fields of the interval.
	Config     string `json:"config"`
	Name       string `json:"name,omitempty"`
	Checkpoint string `json:"checkpoint,omitempty"`
	// Continues is what lineage calls the checkpoint; empty for its path.
	Continues string `json:"continues,omitempty"`
	EnvSteps  int64  `json:"env_steps,omitempty"`
	Dir       string `json:"dir,omitempty"`
	Probe     int    `json:"probe,omitempty"`
	// Init and InitStore are what parameters begin with, Share the store that publications are
	// copied into, under Alias, and Runs the number of runs that the policy is the best of.
	// NoPublish publishes nothing.
	Init      *Init  `json:"init,omitempty"`
	InitStore string `json:"init_store,omitempty"`
	NoPublish bool   `json:"no_publish,omitempty"`
	Share     string `json:"share,omitempty"`
	Alias     string `json:"alias,omitempty"`
	Runs      int    `json:"runs,omitempty"`
	// Program is what checkpoints and artefacts say has made them.
	Program string `json:"program"`
	// Evaluations says that somebody wants to be told of evaluations, and may end the task then.
	Evaluations bool `json:"evaluations,omitempty"`
}

// TaskHooks are told how a task goes. All are optional.
type TaskHooks struct {
	Progress func(p TaskProgress)
	// Evaluated is called with what a validation has found, once for each; its error ends the task,
	// and is what Do returns.
	Evaluated func(envSteps int64, metrics map[string]float64) error
	// Note is told what Hooks.Note of the options is.
	Note func(text string)
}

// TaskProgress is a train.Progress that can be written down; the JSON keys are stable.
type TaskProgress struct {
	EnvSteps      int64 `json:"env_steps"`
	TotalEnvSteps int64 `json:"total_env_steps"`
	LearnerSteps  int64 `json:"learner_steps"`
	Episodes      int64 `json:"episodes"`
	// StepsPerSecond is that of the process that does the task.
	StepsPerSecond float64         `json:"env_steps_per_second"`
	Update         float64         `json:"update"`
	Metrics        Values          `json:"metrics,omitempty"`
	EpisodeReward  *float64        `json:"episode_reward,omitempty"`
	Validation     *TaskEvaluation `json:"validation,omitempty"`
	Best           *TaskEvaluation `json:"best,omitempty"`
}

// TaskEvaluation is a train.Evaluation that can be written down; the JSON keys are stable.
type TaskEvaluation struct {
	EnvSteps     int64    `json:"env_steps"`
	LearnerSteps int64    `json:"learner_steps"`
	Score        *float64 `json:"score"`
	Metrics      Values   `json:"metrics"`
}

// progressOf writes a progress down. Its maps are copied.
func progressOf(p train.Progress) TaskProgress {
	t := TaskProgress{EnvSteps: p.EnvSteps, TotalEnvSteps: p.TotalEnvSteps, LearnerSteps: p.LearnerSteps, Episodes: p.Episodes, StepsPerSecond: p.StepsPerSecond, Update: p.Update, Metrics: Values{}, EpisodeReward: finite(p.EpisodeReward), Validation: evaluationOf(p.Validation), Best: evaluationOf(p.Best)}
	for k, v := range p.Metrics {
		t.Metrics[k] = v
	}
	return t
}

func evaluationOf(e *train.Evaluation) *TaskEvaluation {
	if e == nil {
		return nil
	}
	return &TaskEvaluation{EnvSteps: e.EnvSteps, LearnerSteps: e.LearnerSteps, Score: finite(e.Score), Metrics: e.Metrics}
}

// progress is what was written down.
func (t TaskProgress) progress() train.Progress {
	return train.Progress{EnvSteps: t.EnvSteps, TotalEnvSteps: t.TotalEnvSteps, LearnerSteps: t.LearnerSteps, Episodes: t.Episodes, StepsPerSecond: t.StepsPerSecond, Update: t.Update, Metrics: agents.Metrics(t.Metrics), EpisodeReward: number(t.EpisodeReward), Validation: t.Validation.evaluation(), Best: t.Best.evaluation()}
}

func (t *TaskEvaluation) evaluation() *train.Evaluation {
	if t == nil {
		return nil
	}
	return &train.Evaluation{EnvSteps: t.EnvSteps, LearnerSteps: t.LearnerSteps, Score: number(t.Score), Metrics: t.Metrics}
}

// number is NaN for what JSON has no number for.
func number(v *float64) float64 {
	if v == nil {
		return math.NaN()
	}
	return *v
}

// Train trains a task, whose interval [Task.Interval] has decoded, in this process, as an executor on
// another machine does. Of the options, what the task says is the task's: they have an engine, and may
// have a Factory for the task's environment and Prefixes.
func (t Task) Train(ctx context.Context, kinds experiment.Kinds, i Interval, o Options, h TaskHooks) (IntervalResult, error) {
	o.continues = t.Continues
	o.NoPublish, o.InitStore, o.Share, o.alias, o.runs, o.Program, o.Root = t.NoPublish, t.InitStore, t.Share, t.Alias, t.Runs, t.Program, t.Root
	if t.Init != nil {
		o.Init = *t.Init
	}
	if h.Note != nil {
		o.Hooks.Note = h.Note
	}
	if h.Progress != nil {
		o.Hooks.Progress = func(_ *Run, p train.Progress) { h.Progress(progressOf(p)) }
	}
	if h.Evaluated != nil && t.Evaluations {
		o.Hooks.Evaluated = func(_ *Run, at int64, m map[string]float64) error { return h.Evaluated(at, m) }
	}
	return i.Train(ctx, kinds, o)
}

// Interval is the interval that the task is, with its document decoded.
func (t Task) Interval(kinds experiment.Kinds) (i Interval, err error) {
	i = Interval{Name: t.Name, Checkpoint: t.Checkpoint, EnvSteps: t.EnvSteps, Dir: t.Dir, Probe: t.Probe}
	doc, err := configs.Parse(ConfigFile, []byte(t.Config))
	if err == nil {
		i.Config, err = kinds.Decode(doc)
	}
	return i, err
}

// elsewhere has the executor train the interval.
func (i Interval) elsewhere(ctx context.Context, kinds experiment.Kinds, o Options) (r IntervalResult, err error) {
	if o.Replay != nil {
		return r, errors.New("a replay that runs share is in this process, and an executor trains them in others")
	}
	if o.Program == "" {
		o.Program = buildinfo.Program()
	}
	p := &Plan{o: o, kinds: kinds, cfg: i.Config, dir: i.Dir, name: i.Name}
	t := Task{Name: i.Name, Checkpoint: i.Checkpoint, EnvSteps: i.EnvSteps, Dir: i.Dir, Probe: i.Probe, NoPublish: o.NoPublish}
	return p.run(i.Config.Seed).elsewhere(ctx, t)
}

// begins is what the run's parameters begin with, nil where they are drawn.
func (r *Run) begins() (i *Init, err error) {
	switch p := r.plan; {
	case p.init != nil:
		i = p.init.record()
	case p.o.Init.Ref != "":
		i = new(Init)
		*i = p.o.Init
	default:
		return nil, nil
	}
	if _, err := os.Stat(i.Ref); err == nil {
		if i.Ref, err = objects.Abs(i.Ref); err != nil {
			return nil, err
		}
	}
	return i, nil
}

// trainElsewhere has the executor train one seed to its end. A finished run is only summarised.
func (p *Plan) trainElsewhere(ctx context.Context, seed uint64) (s RunSummary, err error) {
	r := p.run(seed)
	if s, done, err := r.finished(); done || err != nil {
		return s, err
	}
	t := Task{Name: p.name, Dir: r.path, NoPublish: p.o.NoPublish, Runs: len(p.Seeds())}
	if p.o.Share != "" {
		t.Alias = r.sharedAlias()
	}
	res, err := r.elsewhere(ctx, t)
	if err != nil && errors.Is(err, ctx.Err()) {
		return RunSummary{Seed: seed, Dir: r.path, Stopped: train.Interrupted}, nil
	}
	return res.RunSummary, err
}

// describeElsewhere is describeGroup once a run that is trained elsewhere has begun. What it has
// found out about what parameters begin with is the group's.
func (p *Plan) describeElsewhere(r *Run) error {
	if p.init != nil {
		var l Lineage
		if err := ReadJSON(filepath.Join(r.path, LineageFile), &l); err != nil {
			return err
		}
		if l.Init != nil {
			p.init.mu.Lock()
			p.init.Init.Summary, p.init.Init.SHA256, p.init.Init.Statistics = l.Init.Summary, l.Init.SHA256, l.Init.Statistics
			p.init.mu.Unlock()
		}
	}
	return p.describeGroup()
}

// elsewhere has the executor carry out the run's task, and completes that.
func (r *Run) elsewhere(ctx context.Context, t Task) (res IntervalResult, err error) {
	o := r.plan.o
	text, err := configs.Marshal(r.cfg)
	if err != nil {
		return res, err
	}
	// It is decoded where it is trained, which is another folder.
	doc, err := configs.Parse(ConfigFile, text)
	if err == nil {
		err = experiment.Absolute(doc)
	}
	if err != nil {
		return res, err
	}
	t.Config, t.Program, t.InitStore, t.Share, t.Evaluations = string(doc.Bytes()), o.Program, o.InitStore, o.Share, o.Hooks.Evaluated != nil
	if t.Group, t.Root = o.Group, o.root(); t.Group == "" {
		t.Group = filepath.Dir(t.Dir)
	}
	for _, path := range []*string{&t.Group, &t.Root, &t.Dir, &t.Checkpoint, &t.InitStore, &t.Share} {
		if *path == "" {
			continue
		}
		if *path, err = filepath.Abs(*path); err != nil {
			return res, err
		}
	}
	if t.Init, err = r.begins(); err != nil {
		return res, err
	}
	switch {
	case o.Label != "":
		t.ID = o.Label
	case t.Dir != "":
		t.ID = Label(t.Dir)
	default:
		t.ID = r.plan.name
	}
	t.ID = fmt.Sprintf("%s#%d", t.ID, r.seed)
	w := r.watched()
	began, described := false, !r.plan.Group()
	describe := func() error {
		if described || !Holds(r.path) {
			return nil
		}
		described = true
		return r.plan.describeElsewhere(r)
	}
	var failed error
	h := TaskHooks{
		Note: o.Hooks.Note,
		Progress: func(tp TaskProgress) {
			p := tp.progress()
			if !began {
				began = true
				w.begin(p)
			}
			failed = errors.Join(failed, describe())
			w.progress(p)
			if o.Hooks.Progress != nil {
				o.Hooks.Progress(r, p)
			}
		},
	}
	if o.Hooks.Evaluated != nil {
		h.Evaluated = func(at int64, m map[string]float64) error {
			err := o.Hooks.Evaluated(r, at, m)
			if err != nil {
				w.stop()
			}
			return err
		}
	}
	res, err = o.Executor.Do(ctx, t, h)
	err = errors.Join(err, failed, describe())
	if began {
		w.end(ctx, err)
	}
	// Directories are told as they were given.
	if res.Dir = r.path; err == nil && res.Stopped == train.Interrupted {
		err = ctx.Err()
	}
	return res, err
}
