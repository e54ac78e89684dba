package app

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"gonum.org/v1/gonum/stat"

	"github.com/onnxrl/onnxrl/agents"
	"github.com/onnxrl/onnxrl/agents/assess"
	"github.com/onnxrl/onnxrl/agents/experiment"
	"github.com/onnxrl/onnxrl/agents/run"
	"github.com/onnxrl/onnxrl/agents/train"
	"github.com/onnxrl/onnxrl/agents/tune"
	"github.com/onnxrl/onnxrl/configs"
	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/runtime/engine"
	"github.com/onnxrl/onnxrl/runtime/rng"
)

// search is what onnxrl tune is going to do.
type search struct {
	kinds experiment.Kinds
	// doc is the document with absolute paths, cfg the effective configuration and tune its
	// section.
	doc     *configs.Document
	cfg     experiment.Config
	tune    tune.Config
	lineage run.Lineage
	dir     string
	resume  bool

	engine  engine.Compiler
	factory envs.Factory
	// apart says that trials have environments of their own, because some of what is tuned makes
	// them.
	apart bool
	study *tune.Study
	// show, unless nil, is told of every change, with the best complete trial so far.
	show func(t, best tune.Trial, ok bool)
	best tune.Trial
	seen bool
}

// openSearch reads the document and opens what it names. Nothing is written.
func (a *app) openSearch(ctx context.Context, path string, f *tuneFlags) (_ *search, err error) {
	s := &search{kinds: a.kinds, dir: f.out, resume: f.resume != ""}
	sets := slices.Clone(f.sets)
	if f.trials > 0 {
		sets = append(sets, fmt.Sprintf("tune.trials=%d", f.trials))
	}
	if f.parallel > 0 {
		sets = append(sets, fmt.Sprintf("tune.parallel=%d", f.parallel))
	}
	switch {
	case s.resume:
		s.dir, path = f.resume, filepath.Join(f.resume, run.ConfigFile)
		if err := run.Existing(s.dir); err != nil {
			return nil, err
		}
	case s.dir != "":
		if err := run.Free(s.dir); err != nil {
			return nil, advise(err, "tune", "--out", s.dir)
		}
	}
	if s.cfg, s.doc, err = experiment.Load(path, sets); err != nil {
		return nil, err
	}
	if len(s.cfg.Seeds) > 0 {
		return nil, errors.New("seeds: a search has the one seed that its trials share; give seed, and train the tuned configuration with several")
	}
	s.tune = tune.Defaults()
	if s.cfg.Tune.IsZero() {
		return nil, fmt.Errorf("%s has no section tune, which says what to search for; see onnxrl tune --help", path)
	}
	if err := s.cfg.Tune.Decode(&s.tune); err != nil {
		return nil, err
	}
	if s.engine, err = a.compiler(ctx); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.Close())
		}
	}()
	if s.cfg, s.factory, _, err = s.kinds.Open(ctx, s.cfg); err != nil {
		return nil, err
	}
	if err := s.complete(ctx); err != nil {
		return nil, err
	}
	if err := s.describe(a, path); err != nil {
		return nil, err
	}
	a.tellData(a.err, s.factory)
	return s, nil
}

// complete decides what the section leaves open, and finds out what does not fit before anything is
// trained.
func (s *search) complete(ctx context.Context) (err error) {
	if s.tune.Metric == "" {
		s.tune.Metric = s.cfg.Train.Validation.Metric
	}
	if s.tune.StepsPerTrial == 0 {
		s.tune.StepsPerTrial = s.cfg.Train.TotalEnvSteps
	}
	if s.cfg.Train.Validation.EverySteps == 0 {
		return errors.New("train.validation.every_steps is 0, and a search judges trials by their evaluations")
	}
	if known := assess.Metrics(s.factory); !slices.Contains(known, s.tune.Metric) {
		return fmt.Errorf("tune.metric: unknown metric %q; the environment has %s", s.tune.Metric, strings.Join(known, ", "))
	}
	if len(s.tune.Space) == 0 {
		return errors.New("tune.space is empty: it names the keys to tune")
	}
	for _, path := range s.tune.Space.Paths() {
		s.apart = s.apart || opensEnv(path)
		if err := s.probe(ctx, path); err != nil {
			return fmt.Errorf("tune.space: %w", err)
		}
	}
	s.cfg.Tune, err = configs.NewSection(s.tune)
	return err
}

// probe reports a key that the configuration does not have, a choice that it does not take, and
// bounds between which it takes nothing.
func (s *search) probe(ctx context.Context, path string) error {
	p := s.tune.Space[path]
	var first error
	for _, x := range p.Examples() {
		err := s.takes(ctx, path, x)
		switch {
		case p.Kind == tune.Categorical && err != nil:
			return err
		case p.Kind != tune.Categorical && err == nil:
			return nil
		case first == nil:
			first = err
		}
	}
	return first
}

// takes reports why the configuration does not take a value. What it refuses with the values of
// other keys that it has now, it may take with some of those that are searched, so a few of these
// are tried.
func (s *search) takes(ctx context.Context, path string, x float64) error {
	err := s.fits(ctx, tune.Space{path: s.tune.Space[path]}, tune.Values{path: x})
	for i := 0; err != nil && i < 16 && !opensEnv(path); i++ {
		v := s.tune.Space.Draw(rng.New(uint64(i)).Stream())
		v[path] = x
		if _, _, other := s.document(s.tune.Space, v); other == nil {
			return nil
		}
	}
	return err
}

// fits reports what does not fit together in the configuration with values in it.
func (s *search) fits(ctx context.Context, space tune.Space, v tune.Values) error {
	c, _, err := s.document(space, v)
	if err != nil || !opensEnv(space.Paths()...) {
		return err
	}
	_, factory, _, err := s.kinds.Open(ctx, c)
	if err != nil {
		return err
	}
	return factory.Close()
}

// opensEnv reports whether some of the keys are about what environments are made of.
func opensEnv(paths ...string) bool {
	return slices.ContainsFunc(paths, func(p string) bool { return strings.HasPrefix(p, "env.") || strings.HasPrefix(p, "wrappers.") })
}

// document returns the configuration with values in it, and what makes its agents.
func (s *search) document(space tune.Space, v tune.Values) (experiment.Config, agents.Maker, error) {
	c := experiment.Defaults()
	doc := s.doc.Clone()
	if err := space.Apply(doc, v); err != nil {
		return c, nil, err
	}
	if err := doc.Decode(&c); err != nil {
		return c, nil, err
	}
	maker, err := agents.Parse(s.kinds.Agents, c.Agent)
	if err != nil {
		return c, nil, err
	}
	if c.Agent, err = configs.NewKinded(c.Agent.Kind, maker.Config()); err != nil {
		return c, nil, err
	}
	return c.Complete(), maker, nil
}

// describe says how the search came to be, or that a resumed one is not what it was.
func (s *search) describe(a *app, path string) error {
	if s.resume {
		changes, err := searchChanges(s.kinds, s.dir, s.cfg)
		if err == nil {
			err = run.RefuseChanges(changes)
		}
		if err != nil {
			return fmt.Errorf("resume %s: %w", s.dir, err)
		}
	}
	sources, err := run.Sources(s.doc, s.factory, a.digest)
	if err != nil {
		return err
	}
	if s.lineage, err = run.NewLineage("tune", experiment.Name(path), s.cfg, sources, s.engine.Name()); err != nil {
		return err
	}
	if !s.resume {
		return nil
	}
	var was run.Lineage
	if err := run.ReadJSON(filepath.Join(s.dir, run.LineageFile), &was); err != nil {
		return fmt.Errorf("resume %s: %w", s.dir, err)
	}
	s.lineage.Name = was.Name
	for k, v := range was.Sources {
		if sources[k] != v {
			return fmt.Errorf("resume %s: the %s has changed since the search was started", s.dir, strings.TrimSuffix(k, "_sha256"))
		}
	}
	return nil
}

// searchChanges lists what differs from the document that a search was started with, without what
// may differ. Keys of the section tune that the older document lacks, because there were none when
// the search was started, count as this program's defaults.
func searchChanges(kinds experiment.Kinds, dir string, cfg experiment.Config) ([]configs.Change, error) {
	old, changes, err := run.ChangesSince(kinds, dir, cfg)
	if err != nil {
		return nil, err
	}
	type section struct {
		Tune tune.Config `yaml:"tune"`
	}
	was, is := section{tune.Defaults()}, section{tune.Defaults()}
	if err := errors.Join(old.Tune.Decode(&was.Tune), cfg.Tune.Decode(&is.Tune)); err != nil {
		return nil, err
	}
	is.Tune.Trials, is.Tune.Parallel = was.Tune.Trials, was.Tune.Parallel
	tune, err := configs.Diff(was, is)
	return append(slices.DeleteFunc(changes, func(c configs.Change) bool {
		return strings.HasPrefix(c.Path, "tune") || c.Path == "train.threads"
	}), tune...), err
}

// Close frees what the search has opened.
func (s *search) Close() error {
	var errs []error
	if s.study != nil {
		errs = append(errs, s.study.Close())
	}
	if s.factory != nil {
		errs = append(errs, s.factory.Close())
	}
	return errors.Join(errs...)
}

// changed is told of every change of a trial, one at a time.
func (s *search) changed(t tune.Trial) {
	worse := func(a, b tune.Trial) bool {
		if s.tune.Direction == tune.Minimize {
			return a.Value >= b.Value
		}
		return a.Value <= b.Value
	}
	if t.State == tune.Complete && !(s.seen && worse(t, s.best)) {
		s.best, s.seen = t, true
	}
	if s.show != nil {
		s.show(t, s.best, s.seen)
	}
}

// finished counts the trials that a resumed search has already, and finds the best of them.
func (s *search) finished() (n int64) {
	for _, t := range s.study.Trials() {
		if t.State != tune.Running {
			n++
		}
	}
	s.best, s.seen = s.study.Best()
	return n
}

// try trains one trial; it is the objective of the study.
func (s *search) try(ctx context.Context, t tune.Trial, report func(float64) error) (err error) {
	c, maker, err := s.document(s.tune.Space, t.Values)
	if err != nil {
		return err
	}
	factory := s.factory
	if s.apart {
		if _, factory, _, err = s.kinds.Open(ctx, c); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, factory.Close()) }()
	}
	c.Train.TotalEnvSteps = s.tune.StepsPerTrial
	if c.Train.Threads == 0 {
		c.Train.Threads = max(1, runtime.GOMAXPROCS(0)/s.tune.Parallel)
	}
	judge, err := assess.Validator(factory, c.Eval)
	if err != nil {
		return err
	}
	hooks := train.Hooks{Evaluate: func(ctx context.Context, a agents.Agent, at int64) (map[string]float64, error) {
		m, err := judge(ctx, a, at)
		if err != nil || at == 0 {
			return m, err
		}
		return m, report(m[s.tune.Metric])
	}}
	tr, err := train.New(ctx, factory, maker, agents.Setup{Engine: s.engine, Encoders: s.kinds.Encoders, Key: rng.New(c.Seed)}, c.Train, hooks)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, tr.Close()) }()
	res, err := tr.Run(ctx)
	if err == nil && res.Stopped == train.Interrupted {
		return ctx.Err()
	}
	return err
}

// tuned returns the effective document with a trial's values, ready to be trained: without the
// section tune, and as long as the document says.
func (s *search) tuned(t tune.Trial) ([]byte, error) {
	c, maker, err := s.document(s.tune.Space, t.Values)
	if err != nil {
		return nil, err
	}
	if c.Agent, err = configs.NewKinded(c.Agent.Kind, maker.Config()); err != nil {
		return nil, err
	}
	c.Tune, c.ChosenFrom = configs.Section{}, s.chosenFrom()
	return configs.Marshal(c)
}

// chosenFrom counts the configurations that were evaluated, those of an earlier search that this
// one goes on from included.
func (s *search) chosenFrom() *experiment.ChosenFrom {
	f := experiment.ChosenFrom{}
	var ratios []float64
	for _, t := range s.study.Trials() {
		if len(t.Intermediate) == 0 {
			continue
		}
		f.Trials++
		if v := float64(t.Value); s.tune.Metric == "sharpe" && v-v == 0 {
			ratios = append(ratios, v)
		}
	}
	if len(ratios) > 1 {
		f.SharpeVariance = stat.Variance(ratios, nil)
	}
	if was := s.cfg.ChosenFrom; was != nil {
		f.Trials += was.Trials
		f.SharpeVariance = max(f.SharpeVariance, was.SharpeVariance)
	}
	return &f
}
