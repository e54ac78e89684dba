package population

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"gonum.org/v1/gonum/stat"

	"github.com/onnxrl/onnxrl/agents/evolve"
	"github.com/onnxrl/onnxrl/agents/experiment"
	"github.com/onnxrl/onnxrl/agents/publish"
	"github.com/onnxrl/onnxrl/agents/run"
	"github.com/onnxrl/onnxrl/agents/study"
	"github.com/onnxrl/onnxrl/agents/train"
	"github.com/onnxrl/onnxrl/configs"
	"github.com/onnxrl/onnxrl/runtime/atomicfile"
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
	// Parallel is how many experts train at once; 0 is as many as there are cores for. Results do
	// not depend on it.
	Parallel int
	// Steps, unless nil, is told of env steps that experts took and of decisions that the router
	// took, by several goroutines; Turned of what has ended; Note of what somebody should know.
	Steps  func(n int64)
	Turned func(s Summary)
	Note   func(text string)
}

// Population trains experts and a router, in a directory.
type Population struct {
	o      Options
	c      Config
	dir    string
	name   string
	search *evolve.Search
	// router is the router's document, without the models of experts.
	router *configs.Document
	turns  []run.IntervalResult
	// seconds are those of this process.
	seconds Seconds
}

// Open reads the document in a file, or the shipped one of that name, and finds out what does not
// fit before anything is trained. A population that is resumed takes no path. Nothing is written
// before [Population.Train]. Close the population after use.
func Open(ctx context.Context, path string, o Options) (_ *Population, err error) {
	p := &Population{o: o, dir: o.Dir}
	if o.Resume != "" {
		err = p.reopen(ctx, path)
	} else {
		err = p.open(ctx, path)
	}
	if err == nil {
		// The experts of the first turn are not there yet; their files are not opened.
		var files []string
		for i := range p.c.Experts.Population {
			files = append(files, fmt.Sprintf("expert-%d.onnx", i))
		}
		if _, err = p.routerOf(files); err != nil {
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

func (p *Population) open(ctx context.Context, path string) error {
	if p.dir != "" {
		if _, err := os.Stat(filepath.Join(p.dir, ConfigFile)); err == nil {
			return fmt.Errorf("%s holds a population already; go on with it by --resume, or choose another directory", p.dir)
		}
	}
	read := experiment.Document
	if p.o.Kinds.Document != nil {
		read = p.o.Kinds.Document
	}
	doc, err := read(path)
	if err != nil {
		return err
	}
	if _, ok := doc.Lookup("experts"); !ok {
		return fmt.Errorf("%s: it has no experts; expected the document of a population, with the keys experts and router", path)
	}
	p.c, p.name = Defaults(), experiment.Name(path)
	if err := errors.Join(doc.Set(p.o.Sets...), doc.Decode(&p.c)); err != nil {
		return err
	}
	p.c.Experts.Base = study.BasePath(p.c.Experts.Base, path)
	if p.search, err = evolve.New(ctx, p.name, p.c.Experts, p.searching()); err != nil {
		return fmt.Errorf("experts: %w", err)
	}
	return p.readRouter()
}

// readRouter makes a document of the router's experiment.
func (p *Population) readRouter() error {
	text, err := configs.Marshal(p.c.Router.Experiment)
	if err != nil {
		return err
	}
	if p.router, err = configs.Parse("router.experiment", text); err != nil {
		return err
	}
	return experiment.Absolute(p.router)
}

func (p *Population) reopen(ctx context.Context, path string) (err error) {
	p.dir = p.o.Resume
	if path != "" || p.o.Dir != "" || len(p.o.Sets) > 0 {
		return fmt.Errorf("resume %s: it goes on as it was begun, and takes neither another document nor edits", p.dir)
	}
	if p.dir, err = filepath.Abs(p.dir); err != nil {
		return err
	}
	p.name = experiment.Name(p.dir)
	doc, err := configs.Open(filepath.Join(p.dir, ConfigFile))
	if err != nil {
		return fmt.Errorf("resume %s: it holds no population: %w", p.dir, err)
	}
	p.c = Defaults()
	if err := errors.Join(doc.Decode(&p.c), p.readRouter()); err != nil {
		return err
	}
	o := p.searching()
	o.Resume = filepath.Join(p.dir, ExpertsDir)
	if _, err := os.Stat(filepath.Join(o.Resume, evolve.ConfigFile)); errors.Is(err, os.ErrNotExist) {
		// It was stopped before the search had begun.
		o.Resume = ""
		p.search, err = evolve.New(ctx, p.name, p.c.Experts, o)
		return err
	}
	p.search, err = evolve.Open(ctx, "", o)
	return err
}

// routerOf is the router's experiment over the models of experts.
func (p *Population) routerOf(experts []string) (c experiment.Config, err error) {
	doc := p.router.Clone()
	if s, ok := doc.Lookup("env.kind"); ok {
		var kind string
		if err := s.Decode(&kind); err == nil && kind != "meta" {
			return c, fmt.Errorf("env.kind: %q, expected meta, whose steps are choices between experts", kind)
		}
	}
	var files []map[string]string
	for _, path := range experts {
		files = append(files, map[string]string{"path": path})
	}
	if err := errors.Join(doc.SetValue("env.env", p.search.Experiment().Env), doc.SetValue("env.experts", files)); err != nil {
		return c, err
	}
	if c, err = p.o.Kinds.Decode(doc); err != nil {
		return c, err
	}
	if len(c.Seeds) > 0 {
		return c, errors.New("seeds: a population has one router")
	}
	c.ChosenFrom = p.chosenFrom()
	t := &c.Train
	t.TotalEnvSteps = p.c.Router.IntervalSteps * int64(p.c.turns())
	t.Checkpoint.KeepLast, t.Checkpoint.KeepBest = 1, 0
	t.Validation.EverySteps, t.Validation.Patience, t.Validation.MinEvals = p.c.Router.IntervalSteps, 0, 0
	t.Stop.RewardThreshold, t.Stop.MaxEpisodes = nil, 0
	return c, nil
}

// chosenFrom counts the configurations of experts that validation has chosen among: every member
// that began, or took over from another with hyper-parameters of its own.
func (p *Population) chosenFrom() *experiment.ChosenFrom {
	f := experiment.ChosenFrom{}
	var ratios []float64
	for _, list := range p.search.Records() {
		for _, r := range list {
			if r.Action != evolve.Keep {
				f.Trials++
			}
			if p.search.Config().Metric == "sharpe" && r.Score.Defined() {
				ratios = append(ratios, float64(r.Score))
			}
		}
	}
	if f.Trials == 0 {
		return nil
	}
	if len(ratios) > 1 {
		f.SharpeVariance = stat.Variance(ratios, nil)
	}
	return &f
}

// Config is the document of the population.
func (p *Population) Config() *Config { return &p.c }

// Dir is the directory. Until [Population.Begin] has found a free one it may be empty.
func (p *Population) Dir() string { return p.dir }

// Begin makes the directory of a new population, or reads how far a resumed one has come. It
// returns the env steps and decisions that are taken.
func (p *Population) Begin() (steps int64, err error) {
	if p.o.Resume == "" {
		if p.dir, _, err = run.Claim(p.dir, p.name); err != nil {
			return 0, err
		}
		if p.dir, err = filepath.Abs(p.dir); err != nil {
			return 0, err
		}
		text, err := configs.Marshal(p.c)
		if err != nil {
			return 0, err
		}
		// Its presence makes the directory one to resume.
		if err := atomicfile.WriteFile(filepath.Join(p.dir, ConfigFile), func(w io.Writer) error {
			_, err := w.Write(text)
			return err
		}); err != nil {
			return 0, err
		}
	}
	if p.search.Dir() == "" {
		p.search.Place(filepath.Join(p.dir, ExpertsDir))
	}
	finished, err := p.search.Begin()
	if err != nil {
		return 0, err
	}
	for k := range p.c.turns() {
		var r run.IntervalResult
		if err := run.ReadJSON(filepath.Join(p.turnDir(k), run.IntervalFile), &r); err != nil {
			break
		}
		p.turns = append(p.turns, r)
	}
	each := int64(p.c.Experts.Population) * p.c.Experts.IntervalSteps
	return each*int64(finished) + p.c.Router.IntervalSteps*int64(len(p.turns)), nil
}

// Close frees what the population has opened.
func (p *Population) Close() error {
	if p.search == nil {
		return nil
	}
	return p.search.Close()
}

// Train trains what is left: generations of experts, and after every so many a turn of the router.
// When ctx ends the state is saved and the error is ctx's: a population that goes on gives the bits
// of one that never stopped.
func (p *Population) Train(ctx context.Context) error {
	for {
		done := len(p.search.Records())
		if done > 0 && done%p.c.Router.Every == 0 {
			if k := done/p.c.Router.Every - 1; k >= len(p.turns) {
				began := time.Now()
				if err := p.turn(ctx, k); err != nil {
					return err
				}
				p.seconds.Turns = append(p.seconds.Turns, time.Since(began).Seconds())
				p.told()
			}
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

// turnDir is the run directory of a turn of the router.
func (p *Population) turnDir(k int) string {
	return filepath.Join(p.dir, RouterDir, fmt.Sprintf("turn-%04d", k))
}

// turn publishes the experts as they are and trains the router on top of them; after the last turn
// it is published as well.
func (p *Population) turn(ctx context.Context, k int) error {
	c, err := p.over(ctx)
	if err != nil {
		return err
	}
	i := run.Interval{Config: c, Name: p.name, Dir: p.turnDir(k), EnvSteps: p.c.Router.IntervalSteps}
	var taken int64
	if k > 0 {
		last := p.turns[k-1]
		i.Checkpoint, taken = filepath.Join(p.turnDir(k-1), last.Checkpoint), last.EnvSteps
		// Learner steps are whole: what was taken too much is not taken again.
		i.EnvSteps -= max(0, last.EnvSteps-int64(k)*p.c.Router.IntervalSteps)
	}
	if reached, err := run.Reached(i.Dir); err == nil {
		taken = max(taken, reached)
	}
	o := p.o.Run
	o.NoPublish = true
	if p.o.Steps != nil {
		o.Hooks.Progress = func(_ *run.Run, now train.Progress) {
			if n := now.EnvSteps - taken; n > 0 {
				p.o.Steps(n)
				taken = now.EnvSteps
			}
		}
	}
	r, err := i.Train(ctx, p.o.Kinds, o)
	if err != nil {
		return fmt.Errorf("turn %d of the router: %w", k, err)
	}
	p.turns = append(p.turns, r)
	if k > 1 {
		// Nobody can go on from it any more.
		return os.RemoveAll(filepath.Join(p.turnDir(k-2), run.CheckpointDir))
	}
	return nil
}

// over is the router's experiment over the experts as they are at present.
func (p *Population) over(ctx context.Context) (c experiment.Config, err error) {
	records := p.search.Records()
	var files []string
	for _, r := range records[len(records)-1] {
		path, err := p.search.Publish(ctx, r)
		if err != nil {
			return c, err
		}
		files = append(files, path)
	}
	return p.routerOf(files)
}

// Publish publishes the router as it is after its last turn, and with its experts as one model that
// acts in their environment, whose path it returns.
func (p *Population) Publish(ctx context.Context) (path string, err error) {
	began := time.Now()
	defer func() { p.seconds.Publish = time.Since(began).Seconds() }()
	o := p.o.Run
	o.Resume = p.turnDir(len(p.turns) - 1)
	plan, err := run.Open(ctx, p.o.Kinds, "", o)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, plan.Close()) }()
	if _, err = plan.Publish(ctx, run.PublishOptions{Newest: true}); err != nil {
		return "", fmt.Errorf("publish the router: %w", err)
	}
	if _, err = plan.PublishWhole(ctx, run.PublishOptions{}); err != nil {
		return "", fmt.Errorf("publish the router with its experts: %w", err)
	}
	return filepath.Join(o.Resume, publish.WholeDir, publish.BestFile), nil
}
