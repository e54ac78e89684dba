package league

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/onnxrl/onnxrl/agents/evolve"
	"github.com/onnxrl/onnxrl/agents/experiment"
	"github.com/onnxrl/onnxrl/agents/run"
	"github.com/onnxrl/onnxrl/agents/study"
	"github.com/onnxrl/onnxrl/configs"
	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/envs/versus"
	"github.com/onnxrl/onnxrl/envs/wrap"
	"github.com/onnxrl/onnxrl/runtime/engine"
	"github.com/onnxrl/onnxrl/runtime/objects"
	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/rng"
)

// Files of a league's directory.
const (
	// ConfigFile has the document of the league.
	ConfigFile = "league.yaml"
	// MembersFile has a [Member] for each that the learner was, and MatchesFile a [Match] for each
	// two that have played.
	MembersFile = "members.jsonl"
	MatchesFile = "matches.jsonl"
	// LearnerDir is the directory of the learner's search.
	LearnerDir = "learner"
)

// Options say where and how a league is trained.
type Options struct {
	Kinds experiment.Kinds
	// Run are the options of every interval: engine, program and hooks.
	Run run.Options
	// Dir is a new directory; without one it is the first of runs/NAME-1, runs/NAME-2 … that does
	// not exist. Resume is the directory of a league to go on with, instead.
	Dir, Resume string
	// Sets edit the document of the league.
	Sets []string
	// Store is the directory of the artefact store in which references without one are looked up.
	Store string
	// Parallel is how many matches are played at once, 0 for one. Results do not depend on it.
	Parallel int
	// Each of these is called unless it is nil: Steps with the env steps that were taken,
	// Recorded with a generation that has ended, and Note with a message for the user.
	Steps    func(n int64)
	Recorded func(s Summary)
	Note     func(text string)
}

// League trains a learner against a pool of what it was, in a directory.
type League struct {
	o      Options
	c      Config
	ledger study.Ledger
	search *evolve.Search
	// sessions are those of the models, of all generations.
	sessions *engine.Shared
	worlds   envs.MultiFactory
	key      rng.Key
	members  *study.Log[Member]
	matches  *study.Log[Match]
	// models are those of the members that are artefacts, before the league has begun.
	models []*onnx.Model
	// published is the file of the newest member, once it is published.
	published string
}

// keptSessions is how many sessions that nobody uses wait for the next generation.
const keptSessions = 64

// Open reads the document in a file, or the shipped one of that name, and finds out what does not
// fit before anything is trained. A league that is resumed takes no path. Nothing is written before
// [League.Begin]. Close the league after use.
func Open(ctx context.Context, path string, o Options) (_ *League, err error) {
	l := &League{o: o, ledger: study.Ledger{Kind: "league", File: ConfigFile, Dir: o.Dir, Resume: o.Resume}}
	if l.o.Note == nil {
		l.o.Note = func(string) {}
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, l.Close())
		}
	}()
	if err = l.read(path); err == nil {
		err = l.open(ctx)
	}
	if err != nil {
		return nil, err
	}
	return l, nil
}

func (l *League) read(path string) error {
	doc, at, err := l.ledger.Read(path, l.o.Kinds.Read, len(l.o.Sets))
	if err == nil {
		err = doc.Set(l.o.Sets...)
	}
	if err != nil {
		return err
	}
	if l.c, err = Decode(doc, at); err != nil || l.o.Resume != "" {
		return err
	}
	// The document is written into the league's directory.
	for i := range l.c.Members {
		m := &l.c.Members[i]
		m.Name = m.Called()
		if m.Path != "" && m.Ref == "" {
			if m.Path, err = objects.Abs(m.Path); err != nil {
				return err
			}
		}
	}
	return l.resolve()
}

// stored reads the document of a league, with edits.
func stored(dir string, sets ...string) (Config, error) {
	path := filepath.Join(dir, ConfigFile)
	doc, err := configs.Open(path)
	if err != nil {
		return Config{}, fmt.Errorf("it holds no league: %w", err)
	}
	if err := doc.Set(sets...); err != nil {
		return Config{}, err
	}
	return Decode(doc, path)
}

// open opens the search of the learner.
func (l *League) open(ctx context.Context) (err error) {
	if l.o.Run.Engine != nil {
		l.sessions = engine.Share(l.o.Run.Engine, keptSessions)
		l.o.Run.Engine = l.sessions
	}
	o := evolve.Options{Kinds: l.o.Kinds, Run: l.o.Run, Steps: l.o.Steps, Note: l.o.Note, Edit: l.against, Parallel: 1}
	if l.o.Resume != "" {
		if dir := filepath.Join(l.ledger.Dir, LearnerDir); evolve.Holds(dir) {
			o.Resume = dir
			l.search, err = evolve.Open(ctx, "", o)
			if err != nil {
				return err
			}
			return l.take()
		}
	}
	if o.Base, err = l.c.experiment(l.ledger.Dir); err != nil {
		return err
	}
	if l.search, err = evolve.New(ctx, l.ledger.Name, l.c.search(), o); err != nil {
		return fmt.Errorf("experiment: %w", err)
	}
	if err := l.take(); err != nil {
		return err
	}
	// A member whose model does not fit is found before anything is trained.
	var files []versus.Opponent
	for _, f := range l.c.Members {
		if f.Ref == "" {
			files = append(files, f.Opponent)
		}
	}
	p, err := versus.OpenPool(ctx, l.worlds, envs.Test, files, opener, compiled(l.o.Run.Engine))
	if err != nil {
		return fmt.Errorf("members: %w", err)
	}
	return errors.Join(p.Close(), l.fit(ctx))
}

// experiment is the document of the learner, whose opponents are the members, of a league in a
// directory.
func (c *Config) experiment(dir string) (*configs.Document, error) {
	text, err := configs.Marshal(c.Experiment)
	if err != nil {
		return nil, err
	}
	doc, err := configs.Parse("experiment", text)
	if err != nil {
		return nil, err
	}
	if s, ok := doc.Lookup("env.kind"); ok {
		var kind string
		if err := s.Decode(&kind); err == nil && kind != "versus" {
			return nil, fmt.Errorf("experiment.env.kind: %q, expected versus, which is played against a pool", kind)
		}
	}
	return doc, errors.Join(experiment.Absolute(doc), doc.SetValue("env.opponents", c.opponents(dir)))
}

// take finds the worlds that are played in.
func (l *League) take() error {
	w, err := worldsOf(l.search.Environments())
	l.worlds, l.key = w, rng.New(l.search.Experiment().Seed).Split("league")
	return err
}

// worldsOf finds the worlds inside environments of the kind versus.
func worldsOf(f envs.Factory) (envs.MultiFactory, error) {
	v, ok := wrap.FindFactory[interface{ Worlds() envs.MultiFactory }](f)
	if !ok {
		return nil, errors.New("env.kind: expected versus, which is played against a pool")
	}
	return v.Worlds(), nil
}

// Config is the document of the league.
func (l *League) Config() *Config { return &l.c }

// Dir is the directory. Until [League.Begin] has found a free one it may be empty.
func (l *League) Dir() string { return l.ledger.Dir }

// Rehearse finds out what refuses the learner among the members of the document, before it is
// trained; see [evolve.Search.Rehearse].
func (l *League) Rehearse(ctx context.Context) (err error) {
	if l.o.Resume != "" {
		return nil
	}
	dir, err := os.MkdirTemp("", "onnxrl-league-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if err := l.copyModels(dir); err != nil {
		return err
	}
	err = l.search.Rehearse(ctx, func(doc *configs.Document) error { return doc.SetValue("env.opponents", l.c.opponents(dir)) }, "")
	if err != nil {
		return fmt.Errorf("experiment: %w", err)
	}
	return nil
}

// Begin makes the directory of a new league, or reads how far a resumed one has come. It returns
// how many generations are finished.
func (l *League) Begin() (finished int, err error) {
	if err := l.ledger.Begin(); err != nil {
		return 0, err
	}
	if l.o.Resume == "" {
		if err := l.copyModels(l.ledger.Dir); err != nil {
			return 0, err
		}
		if err := l.search.Assign("env.opponents", l.c.opponents(l.ledger.Dir)); err != nil {
			return 0, err
		}
	}
	if err := l.ledger.Describe(l.c); err != nil {
		return 0, err
	}
	if l.search.Dir() == "" {
		l.search.Place(filepath.Join(l.ledger.Dir, LearnerDir))
	}
	l.search.Within(l.ledger.Dir)
	trained, err := l.search.Begin()
	if err != nil {
		return 0, err
	}
	if l.members, l.matches, err = load(l.ledger.Dir); err != nil {
		return 0, err
	}
	if n := len(l.members.Records()); n > trained {
		return 0, fmt.Errorf("%s: %d generations are recorded, and the learner has trained %d", l.ledger.Dir, n, trained)
	}
	return len(l.members.Records()), nil
}

// load reads the logs of a league. Matches of a generation that is not among the members are left
// out: they were written before them.
func load(dir string) (members *study.Log[Member], matches *study.Log[Match], err error) {
	path := filepath.Join(dir, MembersFile)
	if members, err = study.OpenLog[Member](path); err != nil {
		return nil, nil, err
	}
	generations := members.Records()
	for i, m := range generations {
		if m.Generation != i {
			return nil, nil, fmt.Errorf("%s:%d: it is of generation %d, expected %d", path, i+1, m.Generation, i)
		}
	}
	if matches, err = study.OpenLog[Match](filepath.Join(dir, MatchesFile)); err != nil {
		return nil, nil, err
	}
	if i := slices.IndexFunc(matches.Records(), func(m Match) bool { return m.Generation >= len(generations) }); i >= 0 {
		matches.Keep(i)
	}
	return members, matches, nil
}

// Close frees what the league has opened.
func (l *League) Close() error {
	errs := []error{l.ledger.Close()}
	if l.search != nil {
		errs = append(errs, l.search.Close())
	}
	if l.sessions != nil {
		errs = append(errs, l.sessions.Close())
	}
	return errors.Join(errs...)
}

// Train trains the generations that are left, and publishes the policy of the last one. When ctx
// ends the state is saved and the error is ctx's: a league that goes on gives the bits of one that
// never stopped.
func (l *League) Train(ctx context.Context) error {
	for len(l.members.Records()) < l.c.Generations {
		if g := len(l.members.Records()); len(l.search.Records()) == g {
			if err := l.search.Generation(ctx); err != nil {
				return err
			}
		}
		if err := l.record(ctx); err != nil {
			return err
		}
		if l.o.Recorded != nil {
			l.o.Recorded(l.Summarize())
		}
	}
	r := l.search.Records()[l.c.Generations-1][0]
	var err error
	l.published, err = l.search.Publish(ctx, r)
	return err
}

// pool are the members that there are after so many generations, those of the document first.
func (l *League) pool(generations int) (list []versus.Opponent, of []int) {
	for _, o := range l.c.opponents(l.ledger.Dir) {
		list, of = append(list, o), append(of, -1)
	}
	for _, m := range l.members.Records()[:min(generations, len(l.members.Records()))] {
		if m.RolledBack == "" {
			list, of = append(list, versus.Opponent{Name: m.Name, Path: filepath.Join(l.ledger.Dir, filepath.FromSlash(m.Model))}), append(of, m.Generation)
		}
	}
	return list, of
}

// against edits the experiment of a generation, which is the last of history: its opponents are the
// members that there were before it.
func (l *League) against(_ context.Context, history [][]evolve.Record, doc *configs.Document) error {
	list, weights := l.match(len(history) - 1)
	var drawn []versus.Opponent
	for i, o := range list {
		if w := weights[i]; w > 0 {
			o.Weight = &w
			drawn = append(drawn, o)
		}
	}
	return doc.SetValue("env.opponents", drawn)
}

// match returns the members before a generation, and how often the learner meets them in it.
func (l *League) match(generation int) (list []versus.Opponent, weights []float64) {
	list, of := l.pool(generation)
	rivals, newest := make([]rival, len(list)), ""
	for i, o := range list {
		rivals[i] = rival{fixed: of[i] < 0, generation: of[i], given: 1}
		if o.Weight != nil {
			rivals[i].given = *o.Weight
		}
		if of[i] >= 0 {
			newest = o.Name
		}
	}
	for _, m := range l.matches.Records() {
		if m.Generation >= generation {
			continue
		}
		for i, o := range list {
			if m.A == newest && m.B == o.Name {
				t := m.Total()
				rivals[i].score, rivals[i].games = t.Score(), t.Games()
			}
		}
	}
	return list, l.c.Matchmaking.weights(rivals, generation)
}

// record makes what the learner is after a generation a member, lets it play all others, and
// writes both logs.
func (l *League) record(ctx context.Context) error {
	g := len(l.members.Records())
	r := l.search.Records()[g][0]
	m := Member{Generation: g, Name: Name(g), EnvSteps: r.EnvSteps, RolledBack: r.RolledBack, Weights: map[string]float64{}}
	list, weights := l.match(g)
	for i, o := range list {
		if weights[i] > 0 {
			m.Weights[o.Name] = weights[i]
		}
	}
	if r.RolledBack == "" {
		path, err := l.search.Policy(ctx, r)
		if err != nil {
			return err
		}
		if m.Model, err = filepath.Rel(l.ledger.Dir, path); err != nil {
			return err
		}
		m.Model = filepath.ToSlash(m.Model)
		played, err := l.play(ctx, g, append(list, versus.Opponent{Name: m.Name, Path: path}))
		if err != nil {
			return fmt.Errorf("the games of %s: %w", m.Name, err)
		}
		if err := l.matches.Append(played...); err != nil {
			return err
		}
	}
	return l.members.Append(m)
}

// parallel is how many matches are played at once.
func (l *League) parallel() int { return cmp.Or(l.o.Parallel, 1) }
