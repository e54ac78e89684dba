package run

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/onnxrl/onnxrl/agents"
	"github.com/onnxrl/onnxrl/agents/experiment"
	"github.com/onnxrl/onnxrl/agents/network"
	"github.com/onnxrl/onnxrl/agents/publish"
	"github.com/onnxrl/onnxrl/agents/train"
	"github.com/onnxrl/onnxrl/configs"
	"github.com/onnxrl/onnxrl/models/checkpoint"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// command is what checkpoints and lineage of training runs are called by.
const command = "train"

// Run is one run of a plan: that of one seed.
type Run struct {
	plan *Plan
	seed uint64
	cfg  experiment.Config
	path string
	dir  *Dir
	tr   *train.Trainer
	// watch has an exporter's values of the run; nil without one.
	watch *watch
	// known says that the directory describes the run.
	known bool
	// published are the digests that published policies name.
	published map[string]string
}

func (p *Plan) run(seed uint64) *Run {
	return &Run{plan: p, seed: seed, cfg: p.forSeed(seed), path: p.DirOf(seed), published: maps.Clone(p.sources)}
}

// Plan is what the run is part of.
func (r *Run) Plan() *Plan { return r.plan }

// Seed is the run's.
func (r *Run) Seed() uint64 { return r.seed }

// Config is the run's effective document; running it alone gives the same.
func (r *Run) Config() experiment.Config { return r.cfg }

// Trainer trains the run, nil where that is done elsewhere. It is the run's, and hooks may look at
// it.
func (r *Run) Trainer() *train.Trainer { return r.tr }

// trainSeed trains one seed to its end, or until ctx ends. A finished run is only summarised.
func (p *Plan) trainSeed(ctx context.Context, seed uint64) (s RunSummary, err error) {
	if p.o.Executor != nil {
		return p.trainElsewhere(ctx, seed)
	}
	r := p.run(seed)
	r.watch = r.watched()
	if err := r.open(); err != nil {
		return s, err
	}
	defer func() { err = errors.Join(err, r.dir.Close()) }()
	if s, done, err := r.finished(); done || err != nil {
		return s, err
	}
	hooks, err := r.hooks()
	if err != nil {
		return s, err
	}
	var versions versioner
	var pub *publish.Publisher
	if !p.job.NoPublish && r.cfg.Publish.When != experiment.Never {
		// The shared store comes first: a run that cannot publish does not begin.
		var shared *sharedPublisher
		if p.job.Share != "" {
			if shared, err = r.openShared(); err != nil {
				return s, err
			}
			defer func() { err = errors.Join(err, shared.to.Close()) }()
		}
		if pub, err = r.publisher(hooks.Log, false); err != nil {
			return s, err
		}
		defer func() { err = errors.Join(err, pub.Close()) }()
		hooks.Publish, versions = pub, pub
		if shared != nil {
			shared.Publisher = pub
			hooks.Publish, versions = shared, shared
		}
	}
	var given agents.Replay
	switch {
	case p.o.Replay != nil:
		given, err = r.replay()
	case r.cfg.Dataset != nil:
		given, err = r.dataset(ctx, &hooks)
	case r.cfg.Replay != nil:
		client, err := p.kinds.DialReplay(*r.cfg.Replay)
		if err != nil {
			return s, err
		}
		// The learner, which ends before, has closed its streams.
		defer client.Close()
		given = client.Store()
	}
	if err != nil {
		return s, err
	}
	if err := r.openTrainer(ctx, given, hooks); err != nil {
		return s, err
	}
	defer func() { err = errors.Join(err, r.tr.Close()) }()
	if pub != nil && !r.dir.resumed {
		if err := pub.Rehearse(ctx, r.tr.Policy()); err != nil {
			return s, err
		}
	}
	if err := r.begin(ctx); err != nil {
		return s, err
	}
	if p.o.Hooks.Begin != nil {
		p.o.Hooks.Begin(r)
	}
	r.watch.begin(r.tr.Progress())
	defer func() { r.watch.end(ctx, err) }()
	start := time.Now()
	until := int64(math.MaxInt64)
	if i := p.interval; i != nil && i.until > 0 {
		until = i.until
	}
	res, err := r.tr.RunTo(ctx, until)
	if err != nil {
		return s, r.dir.Explain(err)
	}
	s = r.summarize(res, time.Since(start).Seconds())
	if res.Taken == 0 && !p.unkept() {
		if err := r.recall(&s); err != nil {
			return s, err
		}
	}
	if p.o.Hooks.End != nil {
		if err := p.o.Hooks.End(r, res); err != nil {
			return s, err
		}
	}
	if res.Stopped == train.Interrupted || res.Stopped == train.Paused {
		return s, nil
	}
	if !p.job.NoPublish && versions == nil {
		s.Unpublished, s.PublishWith = "publish.when is "+experiment.Never, r.publishWith(false)
	}
	if versions != nil {
		if err := r.publishBest(ctx, versions, hooks.Log, &s); err != nil || s.Stopped == train.Interrupted {
			return s, err
		}
	}
	if p.unkept() {
		return s, nil
	}
	if err := WriteJSON(filepath.Join(r.path, FinishedFile), s); err != nil {
		return s, r.dir.Explain(err)
	}
	return s, nil
}

// openTrainer opens environments, agent and learner. The replay, unless nil, is what the learner has
// in place of its own.
func (r *Run) openTrainer(ctx context.Context, given agents.Replay, hooks train.Hooks) (err error) {
	p := r.plan
	setup := r.setup()
	setup.Log, setup.Profile, setup.Replay = hooks.Log, r.watch.measure(), given
	if p.init != nil {
		setup.Init = func(values map[string]*tensor.Tensor) error {
			if err := p.init.apply(p.o.Hooks.Transferred, values); err != nil {
				return err
			}
			// The digest and not the path: equal runs from different folders publish equal
			// artefacts.
			r.published["init_sha256"] = p.init.record().SHA256
			return nil
		}
	}
	if r.tr, err = train.New(ctx, p.factory, p.maker, setup, r.cfg.Train, hooks); err != nil || p.init == nil {
		return err
	}
	if err := p.init.inherit(p.note, r.tr, r.cfg.Wrappers); err != nil {
		return errors.Join(err, r.tr.Close())
	}
	return nil
}

// setup is what the run's agent is made from.
func (r *Run) setup() agents.Setup {
	s := r.plan.kinds.Setup(r.cfg, r.plan.o.Engine)
	if r.plan.Group() || r.plan.job.Runs > 0 {
		// A group that is resumed begins with the same bases again. A single run has them from
		// its checkpoint, which could not be loaded into a base that others have.
		s.Bases = &r.plan.bases
	}
	if s.Prefixes = r.plan.o.Prefixes; s.Prefixes == nil {
		s.Prefixes = &r.plan.prefixes
	}
	return s
}

// open opens the run's directory: an existing one when the plan resumes and there is one.
func (r *Run) open() (err error) {
	p := r.plan
	o := DirOptions{
		Kind: command, Program: p.o.Program, Path: r.path, Sources: p.sources, From: p.from, Note: p.o.Hooks.Note,
		Keep: checkpoint.Options{KeepLast: r.cfg.Train.Checkpoint.KeepLast, KeepBest: r.cfg.Train.Checkpoint.KeepBest},
		Changes: func(dir string) ([]configs.Change, error) {
			if p.branches != "" {
				return nil, nil // Its lineage names them.
			}
			return trainChanges(p.kinds, dir, r.cfg)
		},
		Watch: r.watch.sink(),
	}
	if p.resume && (!p.Group() || Holds(r.path)) {
		o.Resume = r.path
	}
	r.dir, err = OpenDir(o)
	return err
}

// ErrFinished says that a run which was to go back to a checkpoint has ended.
var ErrFinished = errors.New("the run is finished, and to go back to a checkpoint would remove its end")

// finished returns the summary of a run that has nothing left to do. One that may now take more env
// steps than it has taken has.
func (r *Run) finished() (s RunSummary, done bool, err error) {
	if r.plan.unkept() {
		return s, false, nil
	}
	path := filepath.Join(r.path, FinishedFile)
	err = ReadJSON(path, &s)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return s, false, nil
	case err != nil:
		return s, false, err
	case r.plan.from != "":
		return s, false, fmt.Errorf("resume %s: %w: go on in another directory", r.plan.from, ErrFinished)
	case s.Stopped == "" && s.EnvSteps < r.cfg.Train.TotalEnvSteps:
		return s, false, os.Remove(path)
	}
	s.Dir = r.path
	return s, true, nil
}

// begin restores the checkpoint of a resumed run, and opens the metrics behind it.
func (r *Run) begin(ctx context.Context) error {
	step, whole, err := r.dir.Restore(r.tr)
	if err != nil {
		return err
	}
	if r.plan.from != "" {
		if err := unpublishAfter(ctx, r.path, step); err != nil {
			return err
		}
	}
	if r.plan.branches != "" {
		r.plan.begun = true
		if len(r.plan.changes) > 0 {
			r.plan.note("note: the run goes on from step %d with other values: %s", step, strings.Join(r.plan.changes, "; "))
		}
	}
	if r.dir.resumed {
		r.known = true
		if err := redescribe(r.path, r.cfg, r.plan.job.root()); err != nil {
			return err
		}
	}
	if !whole {
		if err := r.clear(); err != nil {
			return err
		}
		if r.plan.job.Checkpoint != "" {
			return r.start()
		}
		step = -1
	}
	return r.dir.Record(step)
}

// start makes a new run go on from a checkpoint of another one.
func (r *Run) start() error {
	c, err := checkpoint.Open(r.plan.job.Checkpoint)
	if err != nil {
		return err
	}
	if err := errors.Join(c.Load(r.tr), c.Close()); err != nil {
		return err
	}
	if err := r.dir.Record(c.Step); err != nil {
		return err
	}
	return r.save(c.Step, c.Score)
}

// clear removes what a start that failed has left; it has not come further than the checkpoint
// before the first env step, of an interval the one that it goes on from.
func (r *Run) clear() error {
	if r.plan.unkept() {
		return nil
	}
	dir := filepath.Join(r.path, CheckpointDir)
	list, err := checkpoint.List(dir)
	if err != nil {
		return err
	}
	begins, _, err := stepOf(r.plan.job.Checkpoint)
	if err != nil {
		return err
	}
	if len(list) > 0 && list[len(list)-1].Step > begins {
		return fmt.Errorf("%s holds checkpoints up to step %d, but no %s: choose another directory", dir, list[len(list)-1].Step, ConfigFile)
	}
	return r.dir.store.DropAfter(-1)
}

func (r *Run) hooks() (h train.Hooks, err error) {
	own := r.plan.o.Hooks
	h = train.Hooks{Log: own.Log, Metrics: r.dir.Scalars, Save: r.save, Now: time.Now}
	if own.Progress != nil || r.watch != nil {
		h.Progress = func(p train.Progress) {
			r.watch.progress(p)
			if own.Progress != nil {
				own.Progress(r, p)
			}
		}
	}
	if h.Actors, err = r.actors(own.Log); err != nil {
		return h, err
	}
	if r.plan.Group() {
		h.Log = h.Log.With("seed", r.seed)
	}
	judge, err := r.plan.validator()
	if h.Evaluate = judge; judge != nil && own.Evaluated != nil {
		h.Evaluate = func(ctx context.Context, a agents.Agent, at int64) (map[string]float64, error) {
			m, err := judge(ctx, a, at)
			if err == nil {
				if err = own.Evaluated(r, at, m); err != nil {
					r.watch.stop()
				}
			}
			return m, err
		}
	}
	return h, err
}

// publisher keeps the run's policies beside it, which come of the versions that are named, too.
func (r *Run) publisher(log *slog.Logger, allowTies bool, from ...string) (*publish.Publisher, error) {
	parents, err := r.madeFrom()
	if err != nil {
		return nil, err
	}
	inherited, err := r.plan.init.past()
	if err != nil {
		return nil, err
	}
	return publish.New(publish.Options{
		Config: r.cfg, Factory: r.plan.factory, Engine: r.plan.o.Engine, Dir: r.path, Root: r.plan.job.root(), Name: r.plan.name, Sources: r.published, Parents: append(from, parents...), Program: r.plan.o.Program, Now: time.Now, Log: log, AllowTies: allowTies, Runs: cmp.Or(r.plan.job.Runs, len(r.plan.Seeds())), Inherited: inherited,
	})
}

// save publishes a checkpoint. The first one makes the directory a run: whatever fails before
// leaves nothing that would have to be continued.
func (r *Run) save(step int64, score *float64) error {
	if err := r.dir.Save(step, score, r.tr); err != nil || r.known || r.plan.unkept() {
		return err
	}
	r.known = true
	_, params := r.tr.Agent().Learner().Policy()
	if err := r.plan.describe(r.path, r.cfg, network.CountsOf(params)); err != nil {
		return err
	}
	if err := r.dir.Describe(r.cfg); err != nil {
		return err
	}
	return r.plan.describeGroup()
}
