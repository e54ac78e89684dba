package evolve

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/onnxrl/onnxrl/agents/experiment"
	"github.com/onnxrl/onnxrl/agents/replay"
	"github.com/onnxrl/onnxrl/agents/run"
	"github.com/onnxrl/onnxrl/agents/study"
	"github.com/onnxrl/onnxrl/agents/tune"
	"github.com/onnxrl/onnxrl/configs"
	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/models/prefix"
	"github.com/onnxrl/onnxrl/runtime/engine"
	"github.com/onnxrl/onnxrl/runtime/metrics"
	"github.com/onnxrl/onnxrl/runtime/rng"
)

// Files of a search's directory.
const (
	// ConfigFile has the document of the search and the experiment of its members.
	ConfigFile = "evolution.yaml"
	// LogFile has a [Record] for each generation of each member.
	LogFile = "members.jsonl"
)

// Options say where and how a population is trained.
type Options struct {
	Kinds experiment.Kinds
	// Run are the options of every member's intervals: engine, program and hooks.
	Run run.Options
	// Dir is a new directory; without one it is the first of runs/NAME-1, runs/NAME-2 … that does
	// not exist. Resume is the directory of a search to go on with, instead: it has its document.
	Dir, Resume string
	// Sets edit the experiment of all members, and Population, unless 0, replaces that of the
	// document.
	Sets       []string
	Population int
	// Base, unless nil, is the experiment of the members of a new search, in place of what the
	// document names and assigns.
	Base *configs.Document
	// Edit, unless nil, edits the experiment of a generation, whose records are the last of
	// history; their scores are not known yet. Members have environments of their own then. What
	// it does depends on history alone: a damaged checkpoint is trained again by it.
	Edit func(ctx context.Context, history [][]Record, doc *configs.Document) error
	// Parallel is how many members train at once; 0 is as many as there are cores for, or a few
	// more, where they end together then. Results do
	// not depend on it.
	Parallel int
	// Each of these is called unless it is nil: Steps with the env steps that were taken, by
	// several goroutines, Recorded with a generation that has ended, and Note with a message for
	// the user, such as of members that diverge.
	Steps    func(n int64)
	Recorded func(generation []Record)
	Note     func(text string)
}

// keptSessions is how many sessions that no member uses wait for the next generation.
const keptSessions = 64

// Search trains a population of an experiment, in a directory.
type Search struct {
	o        Options
	c        Config
	cfg      experiment.Config
	doc      *configs.Document
	strategy Strategy
	factory  envs.Factory
	// apart says that members have environments of their own, because some of the hyper-parameters
	// make them.
	apart bool
	// actions are those of the policies that are compared on a probe.
	actions Actions
	// watch shows the search while it goes.
	watch   metrics.SearchWatcher
	ledger  study.Ledger
	root    string // see Within
	key     rng.Key
	log     *study.Log[Record]
	records [][]Record
	// genealogy says in the store of the search what published members have come of.
	genealogy *genealogy
	// sessions are those of all members' networks, prefixes what their frozen layers make of
	// windows.
	sessions *engine.Shared
	prefixes prefix.Caches
	// store, unless nil, is the replay that members share.
	store    *replay.Shared
	sections []*replay.Section // by member, of the generation that trains
	// cleared are the generations whose checkpoints were looked through.
	cleared int
}

// stored is the content of ConfigFile.
type stored struct {
	Search     Config          `yaml:"search"`
	Experiment configs.Section `yaml:"experiment"`
}

// Open reads the document in a file, or the shipped one of that name, and finds out what does not
// fit before anything is trained. A search that is resumed takes no path. Nothing is written before
// [Search.Begin]. Close the search after use.
func Open(ctx context.Context, path string, o Options) (_ *Search, err error) {
	s := search(o)
	doc, at, err := s.ledger.Read(path, o.Kinds.Read, len(o.Sets)+o.Population)
	if err != nil {
		return nil, err
	}
	if o.Resume != "" {
		if s.c, s.cfg, err = decodeStored(doc); err != nil {
			return nil, fmt.Errorf("resume %s: %w", o.Resume, err)
		}
		return s.prepared(ctx)
	}
	c, base, err := Decode(doc, at)
	if err != nil {
		return nil, err
	}
	if err := s.take(c, base); err != nil {
		return nil, err
	}
	return s.prepared(ctx)
}

// Holds reports whether a directory holds a search.
func Holds(dir string) bool { return study.Holds(dir, ConfigFile) }

func search(o Options) *Search {
	return &Search{o: o, ledger: study.Ledger{Kind: "search", File: ConfigFile, Dir: o.Dir, Resume: o.Resume}}
}

// New is [Open] for a document in memory, whose base is the path of a file or the name of a shipped
// experiment.
func New(ctx context.Context, name string, c Config, o Options) (_ *Search, err error) {
	s := search(o)
	s.ledger.Name = name
	if err := s.ledger.Free(); err != nil {
		return nil, err
	}
	if err := s.take(c, c.Base); err != nil {
		return nil, err
	}
	return s.prepared(ctx)
}

// prepared returns the search with everything open, or nothing.
func (s *Search) prepared(ctx context.Context) (_ *Search, err error) {
	if s.o.Note == nil {
		s.o.Note = func(string) {}
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.Close())
		}
	}()
	if s.strategy, err = s.c.Strategist(); err != nil {
		return nil, err
	}
	if err := s.open(ctx); err != nil {
		return nil, err
	}
	s.key = rng.New(s.cfg.Seed).Split("evolve")
	e := s.o.Run.Executor
	if e != nil && s.c.Replay.Capacity > 0 {
		return nil, errors.New("replay.capacity: the replay that members share is in this process, and an executor (--workers, --executor) trains them in others; expected 0, or a server's table in the base (replay: {kind: flight}), which processes share")
	}
	if s.o.Parallel == 0 && e != nil {
		s.o.Parallel = e.Slots()
	}
	if s.o.Parallel == 0 {
		s.o.Parallel = together(s.c.Population, max(1, runtime.GOMAXPROCS(0)/s.cfg.Train.Threads))
	}
	return s, nil
}

// crowd bounds how many times as many members as there are cores train at once.
const crowd = 3

// together is how many of n members train at once where there are cores for some of them: as many,
// or the next number of which n is a multiple. Five on two cores, two at a time, leave one of them
// idle while the fifth trains; all at once they share both to the end.
func together(n, cores int) int {
	for k := cores; k <= min(n, crowd*cores); k++ {
		if n%k == 0 {
			return k
		}
	}
	return cores
}

// take takes over a document, and reads its base.
func (s *Search) take(c Config, base string) (err error) {
	if s.c = c; s.o.Population > 0 {
		s.c.Population = s.o.Population
	}
	if s.o.Base != nil {
		s.cfg, err = effective(s.o.Kinds, s.c, s.o.Base)
	} else {
		s.cfg, err = Experiment(s.o.Kinds, s.c, base, s.o.Sets)
	}
	return err
}

// readStored reads the documents of the search in a directory.
func readStored(dir string) (c Config, e experiment.Config, err error) {
	doc, err := configs.Open(filepath.Join(dir, ConfigFile))
	if err != nil {
		return c, e, fmt.Errorf("it holds no search: %w", err)
	}
	return decodeStored(doc)
}

func decodeStored(doc *configs.Document) (c Config, e experiment.Config, err error) {
	old := stored{Search: Defaults()}
	if err := doc.Decode(&old); err != nil {
		return c, e, err
	}
	e = experiment.Defaults()
	return old.Search, e, old.Experiment.Decode(&e)
}

// open opens the environments, and looks for every hyper-parameter in the effective document.
func (s *Search) open(ctx context.Context) (err error) {
	if s.cfg, s.factory, _, err = s.o.Kinds.Open(ctx, s.cfg); err != nil {
		return err
	}
	text, err := configs.Marshal(s.cfg)
	if err != nil {
		return err
	}
	if s.doc, err = configs.Parse("the experiment", text); err != nil {
		return err
	}
	if s.c.Metric == "" {
		s.c.Metric = s.cfg.Train.Validation.Metric
	}
	if s.c.Metric == "" {
		s.c.Metric = "mean_reward"
	}
	if known := s.o.Kinds.Metrics(s.factory); !slices.Contains(known, s.c.Metric) {
		return fmt.Errorf("metric: unknown metric %q; the environment has %s on the validation split, the only one that members are ranked on", s.c.Metric, strings.Join(known, ", "))
	}
	if _, err := s.o.Kinds.Validator(s.factory, s.cfg.Eval); err != nil {
		return fmt.Errorf("members are ranked on the validation split: %w", err)
	}
	s.apart = s.o.Edit != nil
	for _, path := range s.c.Space.Paths() {
		if err := s.takes(path); err != nil {
			return err
		}
		s.apart = s.apart || strings.HasPrefix(path, "env.") || strings.HasPrefix(path, "wrappers.")
	}
	if _, shared := s.o.Run.Engine.(*engine.Shared); s.o.Run.Engine != nil && !shared {
		// Members have the same graphs, and each generation opens them again.
		s.sessions = engine.Share(s.o.Run.Engine, keptSessions)
		s.o.Run.Engine = s.sessions
	}
	if s.o.Run.Prefixes == nil {
		s.o.Run.Prefixes = &s.prefixes
	}
	if s.c.Probe > 0 {
		if s.actions, err = ActionsOf(s.factory); err != nil {
			return err
		}
	}
	return s.shares()
}

// takes reports a path that the document does not have, or at which it has no number, and bounds
// between which it takes none.
func (s *Search) takes(path string) error {
	section, ok := s.doc.Lookup(path)
	if !ok {
		return fmt.Errorf("space.%s: the experiment has no such key", path)
	}
	var x float64
	if err := section.Decode(&x); err != nil {
		return fmt.Errorf("space.%s: the experiment has no number there, and a population changes numbers: %w", path, err)
	}
	p := s.c.Space[path]
	var first error
	for _, x := range p.Examples() {
		_, err := s.member(s.doc, tune.Space{path: p}, tune.Values{path: x})
		if err == nil {
			return nil
		}
		if first == nil {
			first = err
		}
	}
	return fmt.Errorf("space.%s: %w", path, first)
}

// edited returns the experiment of a generation, whose records are the last of history.
func (s *Search) edited(ctx context.Context, history [][]Record) (*configs.Document, error) {
	if s.o.Edit == nil {
		return s.doc, nil
	}
	doc := s.doc.Clone()
	return doc, s.o.Edit(ctx, history, doc)
}

// member returns an experiment with values in it.
func (s *Search) member(doc *configs.Document, space tune.Space, v tune.Values) (experiment.Config, error) {
	doc = doc.Clone()
	if err := space.Apply(doc, v); err != nil {
		return experiment.Config{}, err
	}
	c, err := s.o.Kinds.Decode(doc)
	if err == nil {
		_, c.Agent, err = s.o.Kinds.Agent(c.Agent)
	}
	return c, err
}

// Experiment is the experiment of all members, without what differs between them.
func (s *Search) Experiment() experiment.Config { return s.cfg }

// Environments is the factory of the members' environments, which stays the search's.
func (s *Search) Environments() envs.Factory { return s.factory }

// Assign puts a value into the experiment of all members of a new search, before [Search.Begin].
// The environment stays as it is.
func (s *Search) Assign(path string, v any) error {
	if err := s.doc.SetValue(path, v); err != nil {
		return err
	}
	c, err := s.o.Kinds.Decode(s.doc.Clone())
	if err == nil {
		_, c.Agent, err = s.o.Kinds.Agent(c.Agent)
	}
	if err == nil {
		s.cfg = c
	}
	return err
}

// Records are the generations that are finished, which the caller does not change.
func (s *Search) Records() [][]Record { return s.records }

// Config is the document of the search, with what it leaves open decided.
func (s *Search) Config() Config { return s.c }

// Parallel is how many members train at once.
func (s *Search) Parallel() int { return s.o.Parallel }

// Place says where a new search is to be, before [Search.Begin].
func (s *Search) Place(dir string) { s.ledger.Dir = dir }

// Within says, before [Search.Begin], which directory the search is a part of: digests of documents
// call files below it by their place in it, as those of a search by itself do below its own.
func (s *Search) Within(root string) { s.root = root }

// Dir is the directory. Until [Search.Begin] has found a free one it may be empty.
func (s *Search) Dir() string { return s.ledger.Dir }

// Rehearse finds out what refuses the experiment of the members, before any is trained: that their
// policies can be published, too. See [run.Rehearse], also for keep. Edit, unless nil, puts stand-ins
// into the document for what is not there yet. A search that is resumed was rehearsed before.
func (s *Search) Rehearse(ctx context.Context, edit func(doc *configs.Document) error, keep string) error {
	if s.o.Resume != "" {
		return nil
	}
	c, o, err := s.first(edit)
	if err != nil {
		return err
	}
	// Members are published whatever the document says.
	c.Publish.When = experiment.AtEnd
	j := run.Job{Name: s.ledger.Name, EnvSteps: s.c.IntervalSteps}
	if j.Config, err = c.YAML(); err != nil {
		return err
	}
	err = run.Rehearse(ctx, s.o.Kinds, j, o, keep)
	var short *run.IntervalError
	if errors.As(err, &short) {
		return fmt.Errorf("interval_steps: %w", short)
	}
	return err
}

// first is the experiment of the first member, which has a skill of its own, edited as [Search.Rehearse]
// says, and the options to open it with.
func (s *Search) first(edit func(doc *configs.Document) error) (c experiment.Config, o run.Options, err error) {
	c, o = s.cfg, s.o.Run
	if edit != nil {
		doc := s.doc.Clone()
		if err = edit(doc); err == nil {
			c, err = s.o.Kinds.Decode(doc)
		}
		if err != nil {
			return c, o, err
		}
	}
	c.Wrappers.Skill.Fixed = cmp.Or(s.skill(0, Begin), c.Wrappers.Skill.Fixed)
	if edit == nil {
		o.Factory = s.factory
	}
	return c, o, nil
}

// Begin makes the directory of a new search, or reads the log of a resumed one. It returns how many
// generations are finished.
func (s *Search) Begin() (finished int, err error) {
	// Intervals note where they went on from by absolute paths.
	if err := s.ledger.Begin(); err != nil {
		return 0, err
	}
	s.genealogy = newGenealogy(s.ledger.Dir, s.ledger.Name, s.c.Metric)
	if s.log, s.records, err = load(s.ledger.Dir, s.c.Population); err != nil {
		return 0, err
	}
	s.watched()
	section, err := configs.NewSection(s.cfg)
	if err != nil {
		return 0, err
	}
	return len(s.records), s.ledger.Describe(stored{s.c, section})
}

// Close frees what the search has opened.
func (s *Search) Close() error {
	errs := []error{s.unshare(), s.prefixes.Close()}
	if s.sessions != nil {
		errs = append(errs, s.sessions.Close())
	}
	errs = append(errs, s.ledger.Close())
	if s.factory != nil {
		errs = append(errs, s.factory.Close())
	}
	return errors.Join(errs...)
}
