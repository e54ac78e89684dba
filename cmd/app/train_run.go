package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"time"

	"github.com/onnxrl/onnxrl/agents"
	"github.com/onnxrl/onnxrl/agents/experiment"
	"github.com/onnxrl/onnxrl/agents/publish"
	"github.com/onnxrl/onnxrl/agents/train"
	"github.com/onnxrl/onnxrl/configs"
	"github.com/onnxrl/onnxrl/models/checkpoint"
	"github.com/onnxrl/onnxrl/runtime/rng"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// finishedFile is the summary of a finished run. It is written when everything else is, and a run
// that has it is not continued.
const finishedFile = "finished.json"

// trainRun is one run of a plan.
type trainRun struct {
	plan  *trainPlan
	seed  uint64
	cfg   experiment.Config
	path  string
	dir   *runDir
	tr    *train.Trainer
	bar   *trainBar
	notes io.Writer
	// known says that the directory describes the run.
	known bool
	// published are the digests that published policies name.
	published map[string]string
}

// runSeed trains one seed to its end, or until ctx ends. A finished run is only summarised.
func (a *app) runSeed(ctx context.Context, p *trainPlan, seed uint64, bar *trainBar) (s runSummary, err error) {
	r := &trainRun{plan: p, seed: seed, cfg: p.forSeed(seed), path: p.dirOf(seed), bar: bar, notes: bar.above(a.err), published: maps.Clone(p.sources)}
	if err := r.open(); err != nil {
		return s, err
	}
	defer func() { err = errors.Join(err, r.dir.Close()) }()
	if s, done, err := r.finished(); done || err != nil {
		return s, err
	}
	hooks, err := r.hooks(a)
	if err != nil {
		return s, err
	}
	var versions versioner
	if p.publishes && r.cfg.Publish.When != experiment.Never {
		// The shared store comes first: a run that cannot publish does not begin.
		var shared *sharedPublisher
		if p.shared != "" {
			if shared, err = r.openShared(); err != nil {
				return s, err
			}
			defer func() { err = errors.Join(err, shared.to.Close()) }()
		}
		var pub *publish.Publisher
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
	setup := agents.Setup{Engine: p.engine, Encoders: p.kinds.Encoders, Log: hooks.Log, Key: rng.New(seed)}
	if p.init != nil {
		setup.Init = func(values map[string]*tensor.Tensor) error {
			if err := p.init.apply(bar.above(a.err), values); err != nil {
				return err
			}
			// The digest and not the path: equal runs from different folders publish equal
			// artefacts.
			r.published["init_sha256"] = p.init.record().SHA256
			return nil
		}
	}
	if r.tr, err = train.New(ctx, p.factory, p.maker, setup, r.cfg.Train, hooks); err != nil {
		return s, err
	}
	defer func() { err = errors.Join(err, r.tr.Close()) }()
	if p.init != nil {
		if err := p.init.inherit(bar.above(a.err), r.tr, r.cfg.Wrappers); err != nil {
			return s, err
		}
	}
	if err := r.begin(ctx); err != nil {
		return s, err
	}
	if p.told != nil {
		p.told.Do(func() {
			a.tellData(bar.above(a.err), p.factory)
			a.tellNetwork(bar.above(a.err), r.tr.Agent())
			a.tellLength(bar.above(a.err), r.tr)
		})
	}
	bar.planned(r)
	bar.begin()
	// It saves where it stops.
	defer a.stop.hold(saveGrace)()
	start := time.Now()
	res, err := r.tr.Run(ctx)
	if err != nil {
		return s, r.dir.explain(err)
	}
	bar.settle(r)
	s = p.summarize(seed, res, time.Since(start).Seconds())
	if res.Stopped == train.Interrupted {
		return s, nil
	}
	bar.finished(r)
	if p.publishes && versions == nil {
		s.Unpublished, s.PublishWith = "publish.when is "+experiment.Never, "onnxrl models publish "+s.Dir
	}
	if versions != nil {
		notes := bar.above(a.err)
		if a.quiet {
			notes = io.Discard
		}
		if err := r.publishBest(ctx, versions, hooks.Log, notes, &s); err != nil || s.Stopped == train.Interrupted {
			return s, err
		}
	}
	if err := writeJSON(filepath.Join(r.path, finishedFile), s); err != nil {
		return s, r.dir.explain(err)
	}
	return s, nil
}

// open opens the run's directory: an existing one when the plan resumes and there is one.
func (r *trainRun) open() (err error) {
	o := runOptions{
		command: "train", flag: "--out", path: r.path, again: r.plan.dir, sources: r.plan.sources,
		keep:    checkpoint.Options{KeepLast: r.cfg.Train.Checkpoint.KeepLast, KeepBest: r.cfg.Train.Checkpoint.KeepBest},
		changes: func(dir string) ([]configs.Change, error) { return trainChanges(r.plan.kinds, dir, r.cfg) },
	}
	if p := r.plan; p.from != "" {
		o.from, o.notes = p.from, r.notes
	}
	if r.plan.resume && (!r.plan.group() || refuseRun(r.path, true, "") == nil) {
		o.resume = r.path
	}
	r.dir, err = openRun(o)
	return err
}

// finished returns the summary of a run that has nothing left to do. One that may now take more env
// steps than it has taken has.
func (r *trainRun) finished() (s runSummary, done bool, err error) {
	path := filepath.Join(r.path, finishedFile)
	err = readJSON(path, &s)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return s, false, nil
	case err != nil:
		return s, false, err
	case r.plan.from != "":
		return s, false, fmt.Errorf("resume %s: the run is finished, and to go back to a checkpoint would remove its end: go on in another directory with --out", r.plan.from)
	case s.Stopped == "" && s.EnvSteps < r.cfg.Train.TotalEnvSteps:
		return s, false, os.Remove(path)
	}
	s.Dir = r.path
	return s, true, nil
}

// begin restores the checkpoint of a resumed run, and opens the metrics behind it.
func (r *trainRun) begin(ctx context.Context) error {
	step, whole, err := r.dir.Restore(r.tr)
	if err != nil {
		return err
	}
	if r.plan.from != "" {
		if err := unpublishAfter(ctx, r.path, step); err != nil {
			return err
		}
	}
	if r.dir.resumed {
		r.known = true
		if err := redescribe(r.path, r.cfg); err != nil {
			return err
		}
	}
	if !whole {
		if err := r.clear(); err != nil {
			return err
		}
		step = -1
	}
	return r.dir.Record(step)
}

// clear removes what a start that failed has left; it has not come further than the checkpoint
// before the first env step.
func (r *trainRun) clear() error {
	dir := filepath.Join(r.path, checkpointDir)
	list, err := checkpoint.List(dir)
	if err != nil {
		return err
	}
	if len(list) > 0 && list[len(list)-1].Step > 0 {
		return fmt.Errorf("%s holds checkpoints up to step %d, but no %s: choose another --out", dir, list[len(list)-1].Step, configFile)
	}
	return r.dir.store.DropAfter(-1)
}

func (r *trainRun) hooks(a *app) (train.Hooks, error) {
	h := train.Hooks{
		Log: a.logTo(r.bar.above(a.err)), Metrics: r.dir.Scalars, Save: r.save, Now: time.Now,
		Progress: func(p train.Progress) { r.bar.step(r, p) },
	}
	if r.plan.group() {
		h.Log = h.Log.With("seed", r.seed)
	}
	var err error
	h.Evaluate, err = r.plan.validator()
	return h, err
}

// publisher keeps the run's policies beside it.
func (r *trainRun) publisher(log *slog.Logger, allowTies bool) (*publish.Publisher, error) {
	var parents []string
	if i := r.plan.init; i != nil && i.Parent != "" {
		parents = []string{i.Parent}
	}
	inherited, err := r.plan.init.past()
	if err != nil {
		return nil, err
	}
	return publish.New(publish.Options{
		Config: r.cfg, Factory: r.plan.factory, Engine: r.plan.engine, Dir: r.path, Name: r.plan.name, Sources: r.published, Parents: parents, Program: "onnxrl " + version(), Now: time.Now, Log: log, AllowTies: allowTies, Runs: len(r.plan.seeds()), Inherited: inherited,
	})
}

// save publishes a checkpoint. The first one makes the directory a run: whatever fails before
// leaves nothing that would have to be continued.
func (r *trainRun) save(step int64, score *float64) error {
	if err := r.dir.Save(step, score, r.tr); err != nil || r.known {
		return err
	}
	r.known = true
	if err := r.plan.describe(r.path, r.cfg); err != nil {
		return err
	}
	if err := r.dir.Describe(r.cfg); err != nil {
		return err
	}
	return r.plan.describeGroup()
}

// logTo returns a logger of the level that was asked for.
func (a *app) logTo(w io.Writer) *slog.Logger {
	var level slog.Level
	// The flag was checked before the command began.
	_ = level.UnmarshalText([]byte(a.logLevel))
	return slog.New(slog.NewTextHandler(w, &slog.HandlerOptions{Level: level, ReplaceAttr: dropTime}))
}
