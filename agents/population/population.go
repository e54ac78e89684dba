package population

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/onnxrl/onnxrl/agents/evolve"
	"github.com/onnxrl/onnxrl/agents/experiment"
	"github.com/onnxrl/onnxrl/agents/network"
	"github.com/onnxrl/onnxrl/agents/run"
	"github.com/onnxrl/onnxrl/agents/study"
	"github.com/onnxrl/onnxrl/configs"
	"github.com/onnxrl/onnxrl/models/fit"
)

// Files of a population's directory.
const (
	// ConfigFile has the document of the population.
	ConfigFile = "population.yaml"
	// ExpertsDir is the directory of the experts' search, and RouterDir that of the router's turns.
	ExpertsDir = "experts"
	RouterDir  = "router"
)

// Options say where and how a population is trained.
type Options struct {
	Kinds experiment.Kinds
	// Run are the options of every run: engine, program and hooks.
	Run run.Options
	// Dir is a new directory; without one it is the first of runs/NAME-1, runs/NAME-2 … that does
	// not exist. Resume is the directory of a population to go on with, instead.
	Dir, Resume string
	// Sets edit the document of the population.
	Sets []string
	// Parallel is how many experts train at once, as in evolve.Options.
	Parallel int
	// Each of these is called unless it is nil: Steps with the env steps that experts took and
	// the decisions that the router took, by several goroutines, Turned with a turn that has
	// ended, and Note with a message for the user.
	Steps  func(n int64)
	Turned func(s Summary)
	Note   func(text string)
	// Measure has [Population.Rehearse] find out how long training takes.
	Measure bool
	// Pretrained, unless empty, is a directory in which pretrainings lie that equal populations
	// share; otherwise each has its own. Pretraining, unless nil, receives the progress of
	// each.
	Pretrained  string
	Pretraining func(p fit.Progress)
}

// Population trains experts and a router, in a directory.
type Population struct {
	o      Options
	c      Config
	ledger study.Ledger
	search *evolve.Search
	// routers is the search whose members are routers, and whose generations their turns; nil where
	// there are none.
	routers *evolve.Search
	// early publishes the experts of the last generation; nil before that is begun.
	early    *publication
	estimate *Estimate
	// seconds are those of this process.
	seconds Seconds
}

// Open reads the document in a file, or the shipped one of that name, and finds out what does not
// fit before anything is trained. A population that is resumed takes no path. Nothing is written
// before [Population.Train]. Close the population after use.
func Open(ctx context.Context, path string, o Options) (*Population, error) {
	p := unopened(o)
	return p.opened(ctx, p.open(ctx, path))
}

func unopened(o Options) *Population {
	return &Population{o: o, ledger: study.Ledger{Kind: "population", File: ConfigFile, Dir: o.Dir, Resume: o.Resume}}
}

// New is [Open] for a document in memory, whose experts' base is the path of a file or the name of
// a shipped experiment.
func New(ctx context.Context, name string, c Config, o Options) (*Population, error) {
	p := unopened(o)
	if err := p.ledger.Free(); err != nil {
		return nil, err
	}
	p.ledger.Name = name
	return p.opened(ctx, p.take(ctx, c))
}

// opened returns the population with everything open, or nothing.
func (p *Population) opened(ctx context.Context, err error) (*Population, error) {
	if err == nil && p.c.Router.On() {
		if err = p.openRouters(ctx); err != nil {
			err = fmt.Errorf("router.experiment: %w", err)
		}
	}
	if err != nil {
		return nil, errors.Join(err, p.Close())
	}
	return p, nil
}

// searching are the options of the experts' search.
func (p *Population) searching() evolve.Options {
	return evolve.Options{Kinds: p.o.Kinds, Run: p.o.Run, Parallel: p.o.Parallel, Steps: p.o.Steps, Note: p.o.Note}
}

// Holds reports whether a directory holds a population.
func Holds(dir string) bool { return study.Holds(dir, ConfigFile) }

func (p *Population) open(ctx context.Context, path string) error {
	doc, at, err := p.ledger.Read(path, p.o.Kinds.Read, len(p.o.Sets))
	if err != nil {
		return err
	}
	if p.o.Resume != "" {
		return p.reopen(ctx, doc)
	}
	if err := Edit(doc, p.o.Sets...); err != nil {
		return err
	}
	c, err := Decode(doc, at)
	if err != nil {
		return err
	}
	return p.take(ctx, c)
}

// take takes over the document of a new population.
func (p *Population) take(ctx context.Context, c Config) (err error) {
	p.c = c
	if p.search, err = evolve.New(ctx, p.ledger.Name, p.c.Experts, p.searching()); err != nil {
		return fmt.Errorf("experts: %w", err)
	}
	return nil
}

func (p *Population) reopen(ctx context.Context, doc *configs.Document) (err error) {
	p.c = Defaults()
	if err := doc.Decode(&p.c); err != nil {
		return err
	}
	o := p.searching()
	if o.Resume = filepath.Join(p.ledger.Dir, ExpertsDir); !evolve.Holds(o.Resume) {
		// It was stopped before the search had begun.
		o.Resume = ""
		p.search, err = evolve.New(ctx, p.ledger.Name, p.c.Experts, o)
		return err
	}
	p.search, err = evolve.Open(ctx, "", o)
	return err
}

// Config is the document of the population.
func (p *Population) Config() *Config { return &p.c }

// Memory lists what the population needs of memory beside the program and its networks, when all
// replays are full: those of the experts, the tables of their windows, and what is kept of a frozen
// encoder.
func (p *Population) Memory() ([]evolve.Memory, error) {
	list, err := p.search.Memory()
	if err != nil || !p.c.Pretrain.On() {
		return list, err
	}
	limit := network.KeepMiB
	if v, ok := p.search.Experiment().Agent.Lookup("encoder_cache_mib"); ok {
		var n int
		if err := v.Decode(&n); err == nil && n != 0 {
			limit = max(n, 0)
		}
	}
	return append(list, evolve.Memory{What: "what is kept of the encoder", Bytes: limit << 20}), nil
}

// Together says where experts train whose replay is in this process; empty where there is none.
func (p *Population) Together() string { return p.search.Together() }

// Dir is the directory. Until [Population.Begin] has found a free one it may be empty.
func (p *Population) Dir() string { return p.ledger.Dir }

// Begin makes the directory of a new population, or reads how far a resumed one has come. It
// returns the env steps and decisions that are taken.
func (p *Population) Begin() (steps int64, err error) {
	if err := p.ledger.Begin(); err != nil {
		return 0, err
	}
	doc, err := p.c.document()
	if err != nil {
		return 0, err
	}
	if err := p.ledger.Describe(doc); err != nil {
		return 0, err
	}
	if err := p.encoded(); err != nil {
		return 0, fmt.Errorf("pretrain: %w", err)
	}
	finished, err := p.begin(p.search, filepath.Join(p.ledger.Dir, ExpertsDir))
	if err != nil {
		return 0, err
	}
	steps = int64(p.c.Experts.Population) * p.c.Experts.IntervalSteps * int64(finished)
	if p.routers != nil {
		turns, err := p.begin(p.routers, filepath.Join(p.ledger.Dir, RouterDir))
		return steps + p.c.routing()*int64(turns), err
	}
	return steps, nil
}

// begin begins a search, or goes on with it.
func (p *Population) begin(s *evolve.Search, dir string) (finished int, err error) {
	s.Within(p.ledger.Dir)
	if s.Dir() == "" {
		s.Place(dir)
	}
	return s.Begin()
}

// Close frees what the population has opened.
func (p *Population) Close() error {
	if p.early != nil {
		<-p.early.done
	}
	errs := []error{p.ledger.Close()}
	for _, s := range []*evolve.Search{p.search, p.routers} {
		if s != nil {
			errs = append(errs, s.Close())
		}
	}
	return errors.Join(errs...)
}

// Train trains what is left: generations of experts, and after every so many a turn of the router.
// When ctx ends the state is saved and the error is ctx's: a population that goes on gives the bits
// of one that never stopped.
func (p *Population) Train(ctx context.Context) error {
	began := time.Now()
	if err := p.pretrain(ctx); err != nil {
		return err
	}
	p.seconds.Pretrain = time.Since(began).Seconds()
	for {
		done := len(p.search.Records())
		if p.routers != nil && p.c.Router.after(len(p.routers.Records())) <= done {
			began := time.Now()
			if err := p.turn(ctx); err != nil {
				return err
			}
			p.seconds.Turns = append(p.seconds.Turns, time.Since(began).Seconds())
			p.told()
			continue
		}
		if done == p.c.Experts.Generations {
			return nil
		}
		began := time.Now()
		if err := p.search.Generation(ctx); err != nil {
			return err
		}
		p.seconds.Generations = append(p.seconds.Generations, time.Since(began).Seconds())
		p.told()
	}
}

func (p *Population) told() {
	if p.o.Turned != nil {
		p.o.Turned(p.Summarize())
	}
}
