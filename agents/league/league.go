package league

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/onnxrl/onnxrl/agents/evolve"
	"github.com/onnxrl/onnxrl/agents/experiment"
	"github.com/onnxrl/onnxrl/agents/run"
	"github.com/onnxrl/onnxrl/configs"
	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/envs/versus"
	"github.com/onnxrl/onnxrl/envs/wrap"
	"github.com/onnxrl/onnxrl/runtime/atomicfile"
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
	// Steps, unless nil, is told of env steps that were taken; Recorded of a generation that has
	// ended; Note of what somebody should know.
	Steps    func(n int64)
	Recorded func(s Summary)
	Note     func(text string)
}

// League trains a learner against a pool of what it was, in a directory.
type League struct {
	o      Options
	c      Config
	dir    string
	name   string
	search *evolve.Search
	// sessions are those of the models, of all generations.
	sessions *engine.Shared
	worlds   envs.MultiFactory
	key      rng.Key
	members  []Member
	matches  []Match
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
	l := &League{o: o, dir: o.Dir}
	if l.o.Note == nil {
		l.o.Note = func(string) {}
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, l.Close())
		}
	}()
	if o.Resume != "" {
		err = l.reopen(path)
	} else {
		err = l.read(path)
	}
	if err == nil {
		err = l.open(ctx)
	}
	if err != nil {
		return nil, err
	}
	return l, nil
}

func (l *League) read(path string) error {
	if l.dir != "" && Holds(l.dir) {
		return fmt.Errorf("%s holds a league already; go on with it by --resume, or choose another directory", l.dir)
	}
	read := experiment.Document
	if l.o.Kinds.Document != nil {
		read = l.o.Kinds.Document
	}
	doc, err := read(path)
	if err != nil {
		return err
	}
	if err := doc.Set(l.o.Sets...); err != nil {
		return err
	}
	l.name = experiment.Name(path)
	if l.c, err = Decode(doc, path); err != nil {
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

// Holds reports whether a directory holds a league.
func Holds(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, ConfigFile))
	return err == nil
}

func (l *League) reopen(path string) (err error) {
	l.dir = l.o.Resume
	if path != "" || l.o.Dir != "" || len(l.o.Sets) > 0 {
		return fmt.Errorf("resume %s: it goes on as it was begun, and takes neither another document nor edits", l.dir)
	}
	l.c, err = stored(l.dir)
	if err != nil {
		return fmt.Errorf("resume %s: %w", l.dir, err)
	}
	if l.name, err = run.KeptName(l.dir); err != nil {
		return fmt.Errorf("resume %s: %w", l.dir, err)
	}
	return nil
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
		if l.dir, err = filepath.Abs(l.dir); err != nil {
			return err
		}
		if dir := filepath.Join(l.dir, LearnerDir); begun(dir) {
			o.Resume = dir
			l.search, err = evolve.Open(ctx, "", o)
			if err != nil {
				return err
			}
			return l.take()
		}
	}
	if o.Base, err = l.c.experiment(l.dir); err != nil {
		return err
	}
	if l.search, err = evolve.New(ctx, l.name, l.c.search(), o); err != nil {
		return fmt.Errorf("experiment: %w", err)
	}
	if err := l.take(); err != nil {
		return err
	}
	// What a member's model does not fit is found before anything is trained.
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

// begun reports whether a search has begun in a directory.
func begun(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, evolve.ConfigFile))
	return err == nil
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
func (l *League) Dir() string { return l.dir }

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
	if l.o.Resume == "" {
		if l.dir, _, err = run.Claim(l.dir, l.name); err != nil {
			return 0, err
		}
		if l.dir, err = filepath.Abs(l.dir); err != nil {
			return 0, err
		}
		if err := l.copyModels(l.dir); err != nil {
			return 0, err
		}
		if err := l.search.Assign("env.opponents", l.c.opponents(l.dir)); err != nil {
			return 0, err
		}
		doc, err := l.c.document()
		if err != nil {
			return 0, err
		}
		if err := run.KeepName(l.dir, l.name); err != nil {
			return 0, err
		}
		// Its presence makes the directory one to resume.
		if err := atomicfile.WriteBytes(filepath.Join(l.dir, ConfigFile), doc.Bytes()); err != nil {
			return 0, err
		}
	}
	if l.search.Dir() == "" {
		l.search.Place(filepath.Join(l.dir, LearnerDir))
	}
	l.search.Within(l.dir)
	trained, err := l.search.Begin()
	if err != nil {
		return 0, err
	}
	if l.members, l.matches, err = load(l.dir); err != nil {
		return 0, err
	}
	if n := len(l.members); n > trained {
		return 0, fmt.Errorf("%s: %d generations are recorded, and the learner has trained %d", l.dir, n, trained)
	}
	return len(l.members), nil
}

// load reads the logs of a league. Matches of a generation that is not among the members are left
// out: they were written before them.
func load(dir string) (members []Member, matches []Match, err error) {
	if members, err = run.ReadLines[Member](filepath.Join(dir, MembersFile)); err != nil {
		return nil, nil, err
	}
	for i, m := range members {
		if m.Generation != i {
			return nil, nil, fmt.Errorf("%s:%d: it is of generation %d, expected %d", filepath.Join(dir, MembersFile), i+1, m.Generation, i)
		}
	}
	all, err := run.ReadLines[Match](filepath.Join(dir, MatchesFile))
	for _, m := range all {
		if m.Generation < len(members) {
			matches = append(matches, m)
		}
	}
	return members, matches, err
}

// Close frees what the league has opened.
func (l *League) Close() error {
	var errs []error
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
	for len(l.members) < l.c.Generations {
		if g := len(l.members); len(l.search.Records()) == g {
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
	for _, o := range l.c.opponents(l.dir) {
		list, of = append(list, o), append(of, -1)
	}
	for _, m := range l.members[:min(generations, len(l.members))] {
		if m.RolledBack == "" {
			list, of = append(list, versus.Opponent{Name: m.Name, Path: filepath.Join(l.dir, filepath.FromSlash(m.Model))}), append(of, m.Generation)
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
	for _, m := range l.matches {
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
	g := len(l.members)
	r := l.search.Records()[g][0]
	m := Member{Generation: g, Name: Name(g), EnvSteps: r.EnvSteps, RolledBack: r.RolledBack, Weights: map[string]float64{}}
	list, weights := l.match(g)
	for i, o := range list {
		if weights[i] > 0 {
			m.Weights[o.Name] = weights[i]
		}
	}
	matches := l.matches
	if r.RolledBack == "" {
		path, err := l.search.Policy(ctx, r)
		if err != nil {
			return err
		}
		if m.Model, err = filepath.Rel(l.dir, path); err != nil {
			return err
		}
		m.Model = filepath.ToSlash(m.Model)
		played, err := l.play(ctx, g, append(list, versus.Opponent{Name: m.Name, Path: path}))
		if err != nil {
			return fmt.Errorf("the games of %s: %w", m.Name, err)
		}
		matches = append(matches[:len(matches):len(matches)], played...)
		if err := run.WriteLines(filepath.Join(l.dir, MatchesFile), matches); err != nil {
			return err
		}
	}
	members := append(l.members[:g:g], m)
	if err := run.WriteLines(filepath.Join(l.dir, MembersFile), members); err != nil {
		return err
	}
	l.members, l.matches = members, matches
	return nil
}

// parallel is how many matches are played at once.
func (l *League) parallel() int { return cmp.Or(l.o.Parallel, 1) }
