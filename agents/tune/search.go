package tune

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"gonum.org/v1/gonum/stat"

	"github.com/onnxrl/onnxrl/agents"
	"github.com/onnxrl/onnxrl/agents/experiment"
	"github.com/onnxrl/onnxrl/agents/run"
	"github.com/onnxrl/onnxrl/configs"
	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/runtime/atomicfile"
	"github.com/onnxrl/onnxrl/runtime/engine"
	"github.com/onnxrl/onnxrl/runtime/metrics"
	"github.com/onnxrl/onnxrl/runtime/rng"
)

// BestFile is the tuned document in the directory of a search, ready to be trained.
const BestFile = "best.yaml"

// SearchOptions say where and how a document is tuned.
type SearchOptions struct {
	// Engine runs the networks; it stays the caller's.
	Engine engine.Compiler
	// Dir is a new directory; without one it is the first of runs/NAME-1, runs/NAME-2 … that does
	// not exist. Resume is the directory of a search to go on with, instead.
	Dir, Resume string
	// Sets edit the document, such as tune.trials=100.
	Sets []string
	// Digest reads the files of networks for their SHA-256; nil for run.Digest.
	Digest func(files []string) (string, error)
	// Changed, unless nil, receives every change of a trial, one at a time, and the best
	// complete one so far, nil before the first.
	Changed func(t Trial, best *Trial)
	// Watch, unless nil, shows the trials while they go.
	Watch metrics.Watcher
	// Executor, unless nil, carries trials out elsewhere than in this process.
	Executor run.Executor
}

// Search tunes a configuration: its trials are training runs that leave nothing but their
// evaluations.
type Search struct {
	o     SearchOptions
	kinds experiment.Kinds
	// doc is the document with absolute paths, cfg the effective configuration and tune its
	// section.
	doc     *configs.Document
	cfg     experiment.Config
	tune    Config
	lineage run.Lineage
	dir     string
	factory envs.Factory
	// apart says that trials have environments of their own, because some of what is tuned makes
	// them.
	apart bool
	// threads are those that the document gives; those of trials are decided once.
	threads int
	study   *Study
	best    *Trial
}

// Load is the method of that name of [experiment.Kinds] for documents that have a section tune:
// problems in it are reported with the others.
func Load(kinds experiment.Kinds, path string, sets []string) (experiment.Config, *configs.Document, Config, error) {
	c, doc, err := kinds.Load(path, sets)
	t := Defaults()
	if doc != nil {
		section, _ := doc.Lookup("tune")
		err = errors.Join(err, section.Decode(&t))
	}
	return c, doc, t, err
}

// OpenSearch reads the document in a file, or the shipped one of that name, which has a section
// tune, and opens what it names. A search that is resumed has its document in its directory, and
// takes no path. Nothing is written before [Search.Begin]. Close the search after use.
func OpenSearch(ctx context.Context, kinds experiment.Kinds, path string, o SearchOptions) (_ *Search, err error) {
	if o.Engine == nil {
		return nil, errors.New("tune: SearchOptions.Engine is missing: what is to run the networks?")
	}
	s := &Search{o: o, kinds: kinds, dir: o.Dir}
	switch {
	case o.Resume != "":
		s.dir, path = o.Resume, filepath.Join(o.Resume, run.ConfigFile)
		err = run.Existing(s.dir)
	case s.dir != "":
		err = run.Free(s.dir)
	}
	if err != nil {
		return nil, err
	}
	if s.cfg, s.doc, s.tune, err = Load(kinds, path, o.Sets); err != nil {
		return nil, err
	}
	if len(s.cfg.Seeds) > 0 {
		return nil, errors.New("seeds: a search has the one seed that its trials share; give seed, and train the tuned configuration with several")
	}
	if s.cfg.Tune.IsZero() {
		return nil, fmt.Errorf("%s has no section tune, which says what to search for: trials, and the keys in space", path)
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
	if err := s.describe(path); err != nil {
		return nil, err
	}
	return s, nil
}

// Config is the search's section of the document, with what it leaves open decided.
func (s *Search) Config() Config { return s.tune }

// Factory makes the environments. It is the search's.
func (s *Search) Factory() envs.Factory { return s.factory }

// Dir is the directory. Until [Search.Begin] has found a free one it may be empty.
func (s *Search) Dir() string { return s.dir }

// Rehearse finds out what refuses the document as it is, before anything is tried; see
// [run.Rehearse]. A search that is resumed was rehearsed before.
func (s *Search) Rehearse(ctx context.Context) error {
	if s.o.Resume != "" {
		return nil
	}
	text, err := s.cfg.YAML()
	if err != nil {
		return err
	}
	return run.Rehearse(ctx, s.kinds, run.Job{Name: s.lineage.Name, Config: text}, run.Options{Engine: s.o.Engine, Factory: s.factory}, "")
}

// Begin makes the directory of a new search, or opens the log of a resumed one, and describes it.
// It returns how many trials are finished.
func (s *Search) Begin() (finished int, err error) {
	if s.o.Resume == "" {
		if s.dir, _, err = run.Claim(s.dir, s.lineage.Name); err != nil {
			return 0, err
		}
	}
	if s.study, err = Open(Options{Config: s.tune, Seed: s.cfg.Seed, Dir: s.dir, Changed: s.changed, Now: time.Now}); err != nil {
		return 0, err
	}
	for _, t := range s.study.Trials() {
		if t.State != Running {
			finished++
		}
	}
	if best, ok := s.study.Best(); ok {
		s.best = &best
	}
	if err := run.WriteJSON(filepath.Join(s.dir, run.LineageFile), s.lineage); err != nil {
		return 0, err
	}
	// Last, because its presence makes the directory one to resume.
	return finished, run.WriteConfig(s.dir, s.cfg)
}

// Run tries what is left, as [Study.Run] does.
func (s *Search) Run(ctx context.Context) error { return s.study.Run(ctx, s.try) }

// Finish writes the table of trials and the tuned document, and summarises.
func (s *Search) Finish() (Summary, error) {
	sum := s.summarize()
	if err := s.study.WriteCSV(); err != nil {
		return sum, err
	}
	best, ok := s.study.Best()
	if !ok {
		return sum, nil
	}
	text, err := s.tuned(best)
	if err != nil {
		return sum, err
	}
	sum.BestConfig = filepath.Join(s.dir, BestFile)
	return sum, atomicfile.WriteBytes(sum.BestConfig, text)
}

// complete decides what the section leaves open, and finds out what does not fit before anything is
// trained.
func (s *Search) complete(ctx context.Context) (err error) {
	if s.tune.Metric == "" {
		s.tune.Metric = s.cfg.Train.Validation.Metric
	}
	if s.tune.StepsPerTrial == 0 {
		s.tune.StepsPerTrial = s.cfg.Train.TotalEnvSteps
	}
	if s.cfg.Train.Validation.EverySteps == 0 {
		return errors.New("train.validation.every_steps is 0, and a search compares trials by their evaluations")
	}
	if known := s.kinds.Metrics(s.factory); !slices.Contains(known, s.tune.Metric) {
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
	if s.threads = s.cfg.Train.Threads; s.threads == 0 {
		s.cfg.Train.Threads = max(1, runtime.GOMAXPROCS(0)/s.tune.Parallel)
		if err := s.doc.SetValue("train.threads", s.cfg.Train.Threads); err != nil {
			return err
		}
	}
	s.cfg.Tune, err = configs.NewSection(s.tune)
	return err
}

// probe reports a key that the configuration does not have, a choice that it does not take, and
// bounds between which it takes nothing.
func (s *Search) probe(ctx context.Context, path string) error {
	p := s.tune.Space[path]
	var first error
	for _, x := range p.Examples() {
		err := s.takes(ctx, path, x)
		switch {
		case p.Kind == Categorical && err != nil:
			return err
		case p.Kind != Categorical && err == nil:
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
func (s *Search) takes(ctx context.Context, path string, x float64) error {
	err := s.fits(ctx, Space{path: s.tune.Space[path]}, Values{path: x})
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
func (s *Search) fits(ctx context.Context, space Space, v Values) error {
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
func (s *Search) document(space Space, v Values) (experiment.Config, agents.Maker, error) {
	doc := s.doc.Clone()
	if err := space.Apply(doc, v); err != nil {
		return experiment.Config{}, nil, err
	}
	c, err := s.kinds.Decode(doc)
	if err != nil {
		return c, nil, err
	}
	maker, agent, err := s.kinds.Agent(c.Agent)
	if err != nil {
		return c, nil, err
	}
	c.Agent = agent
	return s.kinds.Complete(c, s.factory), maker, nil
}

// describe says how the search came to be, or that a resumed one is not what it was.
func (s *Search) describe(path string) error {
	if s.o.Resume != "" {
		changes, err := searchChanges(s.kinds, s.dir, s.cfg)
		if err == nil {
			err = run.RefuseChanges(changes)
		}
		if err != nil {
			return fmt.Errorf("resume %s: %w", s.dir, err)
		}
	}
	sources, err := run.Sources(s.kinds, s.doc, s.factory, s.o.Digest)
	if err != nil {
		return err
	}
	if s.lineage, err = run.NewLineage("tune", experiment.Name(path), s.cfg, sources, s.o.Engine.Name(), ""); err != nil {
		return err
	}
	if s.o.Resume == "" {
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
		Tune Config `yaml:"tune"`
	}
	was, is := section{Defaults()}, section{Defaults()}
	if err := errors.Join(old.Tune.Decode(&was.Tune), cfg.Tune.Decode(&is.Tune)); err != nil {
		return nil, err
	}
	is.Tune.Trials, is.Tune.Parallel = was.Tune.Trials, was.Tune.Parallel
	own, err := configs.Diff(was, is)
	return append(slices.DeleteFunc(changes, func(c configs.Change) bool {
		return strings.HasPrefix(c.Path, "tune") || c.Path == "train.threads"
	}), own...), err
}

// Close frees what the search has opened.
func (s *Search) Close() error {
	var errs []error
	if s.study != nil {
		errs = append(errs, s.study.Close())
	}
	if s.factory != nil {
		errs = append(errs, s.factory.Close())
	}
	return errors.Join(errs...)
}

// changed receives every change of a trial, one at a time.
func (s *Search) changed(t Trial) {
	if t.State == Complete && (s.best == nil || better(s.tune.Direction, t, *s.best)) {
		s.best = &t
	}
	if s.o.Changed != nil {
		s.o.Changed(t, s.best)
	}
}

// better reports whether a trial's value is.
func better(direction string, a, b Trial) bool {
	if direction == Minimize {
		return a.Value < b.Value
	}
	return a.Value > b.Value
}

// try trains one trial; it is the objective of the study.
func (s *Search) try(ctx context.Context, t Trial, report func(float64) error) error {
	c, _, err := s.document(s.tune.Space, t.Values)
	if err != nil {
		return err
	}
	c.Train.TotalEnvSteps = s.tune.StepsPerTrial
	text, err := c.YAML()
	if err != nil {
		return err
	}
	o := run.Options{Engine: s.o.Engine, Executor: s.o.Executor, Watch: s.o.Watch, Hooks: run.Hooks{Evaluated: func(_ *run.Run, at int64, m map[string]float64) error {
		if at == 0 {
			return nil
		}
		return report(m[s.tune.Metric])
	}}}
	if !s.apart && s.o.Executor == nil {
		o.Factory = s.factory
	}
	_, err = run.Job{ID: fmt.Sprintf("%s/trial-%d", run.Label(s.dir), t.Number), Group: s.dir, Config: text}.Train(ctx, s.kinds, o)
	return err
}

// tuned returns the effective document with a trial's values, ready to be trained: without the
// section tune, and as long as the document says.
func (s *Search) tuned(t Trial) ([]byte, error) {
	c, maker, err := s.document(s.tune.Space, t.Values)
	if err != nil {
		return nil, err
	}
	if c.Agent, err = configs.NewKinded(c.Agent.Kind, maker.Config()); err != nil {
		return nil, err
	}
	c.Tune, c.ChosenFrom, c.Train.Threads = configs.Section{}, s.chosenFrom(), s.threads
	return configs.Marshal(c)
}

// chosenFrom counts the configurations that were evaluated, those of an earlier search that this
// one goes on from included.
func (s *Search) chosenFrom() *experiment.ChosenFrom {
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
