package run

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/onnxrl/onnxrl/agents/experiment"
	"github.com/onnxrl/onnxrl/agents/train"
	"github.com/onnxrl/onnxrl/configs"
	"github.com/onnxrl/onnxrl/runtime/objects"
)

// Executor trains jobs somewhere: in other processes, or on other machines. What comes of a job
// depends on nothing but the job, so that results do not depend on the executor, on how many jobs
// it carries out at once and in which order, or on what fails meanwhile.
type Executor interface {
	// Do carries out a job by [Job.Train], whose paths are absolute, and of the hooks calls Note,
	// Progress and Evaluated meanwhile, from one goroutine. The run that they are called with is nil
	// where it is trained elsewhere, and Evaluated is called where the job says that it wants that.
	// When ctx ends the job's state is saved where it has a directory, and the error is ctx's.
	// Errors are those of Train: *agents.DivergedError, *optim.NonFiniteError and
	// checkpoint.ErrCorrupt are found in them.
	Do(ctx context.Context, j Job, h Hooks) (Result, error)
	// Slots is how many jobs are carried out at once; more wait.
	Slots() int
}

// elsewhere has the executor train the interval. Its document is not decoded here.
func (j Job) elsewhere(ctx context.Context, kinds experiment.Kinds, o Options) (r Result, err error) {
	if o.Replay != nil {
		return r, errors.New("a replay that runs share is in this process, and an executor trains them in others")
	}
	doc, err := configs.Parse(ConfigFile, []byte(j.Config))
	if err == nil {
		err = doc.Set(j.Sets...)
	}
	if err != nil {
		return r, err
	}
	cfg := experiment.Config{}
	if s, ok := doc.Lookup("seed"); ok {
		if err := s.Decode(&cfg.Seed); err != nil {
			return r, err
		}
	}
	p := &Plan{job: j, o: o, kinds: kinds, cfg: cfg, dir: j.Dir, name: j.Name}
	return p.run(cfg.Seed).elsewhere(ctx, j, doc)
}

// trainElsewhere has the executor train one seed to its end. A finished run is only summarised.
func (p *Plan) trainElsewhere(ctx context.Context, seed uint64) (s RunSummary, err error) {
	r := p.run(seed)
	if s, done, err := r.finished(); done || err != nil {
		return s, err
	}
	text, err := configs.Marshal(r.cfg)
	if err != nil {
		return s, err
	}
	doc, err := configs.Parse(ConfigFile, text)
	if err != nil {
		return s, err
	}
	j := p.job
	j.Config, j.Sets, j.Name, j.Dir, j.Resume, j.Seeds, j.Runs = string(text), nil, p.name, r.path, "", nil, len(p.Seeds())
	if j.Share != "" {
		j.Alias = r.sharedAlias()
	}
	if p.init != nil {
		j.Init = *p.init.record()
	}
	res, err := r.elsewhere(ctx, j, doc)
	if err != nil && errors.Is(err, ctx.Err()) {
		return RunSummary{Seed: seed, Dir: r.path, Stopped: train.Interrupted}, nil
	}
	return res.RunSummary, err
}

// absolute makes the job mean the same from any folder; doc is its document, edited.
func (j *Job) absolute(doc *configs.Document) (err error) {
	sets, err := experiment.AbsoluteSets(doc)
	if err != nil {
		return err
	}
	// Edits stay behind the document, for those of keys by a former name count by being later.
	j.Sets = slices.Concat(j.Sets, sets)
	for _, path := range []*string{&j.Group, &j.Root, &j.Dir, &j.Checkpoint, &j.InitStore, &j.Share} {
		if *path == "" {
			continue
		}
		if *path, err = filepath.Abs(*path); err != nil {
			return err
		}
	}
	if _, serr := os.Stat(j.Init.Ref); serr == nil {
		j.Init.Ref, err = objects.Abs(j.Init.Ref)
	}
	return err
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

// elsewhere has the executor carry out the run's job, whose document is doc.
func (r *Run) elsewhere(ctx context.Context, j Job, doc *configs.Document) (res Result, err error) {
	o := r.plan.o
	j.Evaluations = o.Hooks.Evaluated != nil
	if j.Root = j.root(); j.Group == "" {
		j.Group = filepath.Dir(j.Dir)
	}
	if err := j.absolute(doc); err != nil {
		return res, err
	}
	w := r.watched()
	j.ID = fmt.Sprintf("%s#%d", r.label(j.Dir), r.seed)
	began, described := false, !r.plan.Group()
	describe := func() error {
		if described || !Holds(r.path) {
			return nil
		}
		described = true
		return r.plan.describeElsewhere(r)
	}
	var failed error
	h := Hooks{
		Note: o.Hooks.Note,
		Progress: func(_ *Run, p train.Progress) {
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
		h.Evaluated = func(_ *Run, at int64, m map[string]float64) error {
			err := o.Hooks.Evaluated(r, at, m)
			if err != nil {
				w.stop()
			}
			return err
		}
	}
	res, err = o.Executor.Do(ctx, j, h)
	err = errors.Join(err, failed, describe())
	if began {
		w.end(ctx, err)
	}
	// Directories are reported as they were given.
	if res.Dir = r.path; err == nil && res.Stopped == train.Interrupted {
		err = ctx.Err()
	}
	return res, err
}
