package walkforward

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/onnxrl/onnxrl/agents/experiment"
	"github.com/onnxrl/onnxrl/agents/population"
	"github.com/onnxrl/onnxrl/agents/study"
	"github.com/onnxrl/onnxrl/configs"
	"github.com/onnxrl/onnxrl/envs/market/bars"
	"github.com/onnxrl/onnxrl/envs/market/split"
	"github.com/onnxrl/onnxrl/envs/market/trading"
)

// Base is the name of the variant that is the base as it is.
const Base = "base"

// Plan is what a study trains. The JSON keys are stable.
type Plan struct {
	Study    Config   `json:"-"`
	Base     string   `json:"base"`
	Seeds    []uint64 `json:"seeds"`
	Variants []string `json:"variants"`
	Folds    []Fold   `json:"folds"`
	// EnvSteps are those of one run by variant, and Runs is the number of runs.
	EnvSteps []int64 `json:"env_steps"`
	Runs     int     `json:"runs"`
	// First to Last are the dates of the data, and Bars their number.
	First string `json:"first"`
	Last  string `json:"last"`
	Bars  int    `json:"bars"`
	// Cells are fold by fold, and within a fold in the order of the variants.
	Cells []Cell `json:"-"`
}

// Fold is what is learnt from, chosen by and tested on. The JSON keys are stable.
type Fold struct {
	Name  string    `json:"name"`
	Train Stretch   `json:"train"`
	Valid Stretch   `json:"valid"`
	Test  []Stretch `json:"test"`
}

// Stretch is a run of bars that is left after purging.
type Stretch struct {
	From string `json:"from"`
	To   string `json:"to"`
	Bars int    `json:"bars"`
}

// Cell is one fold of one variant.
type Cell struct {
	Name, Dir     string
	Variant, Fold int
	// Config is the effective experiment, where it is a population that of its experts; its Seed is
	// the runs', its Seeds are empty.
	Config experiment.Config
	// Population is the document of a population; zero where the runs are of Config.
	Population configs.Section
	// tests are the splits of the test ranges; that of Config is the first.
	tests []split.Config
}

// way is a way of training: an experiment, or that of the experts of a population.
type way struct {
	experiment.Config
	population *configs.Document
	steps      int64
}

// Experiments decodes the base, edited by the study's own assignments and by sets, as --set takes
// them, and every variant of it, in this order, without opening anything. Of a population it is the
// experts' experiment. All problems are reported at once.
func Experiments(kinds experiment.Kinds, c Config, base string, sets []string) (list []experiment.Config, err error) {
	ways, err := c.ways(kinds, base, sets)
	for _, w := range ways {
		list = append(list, w.Config)
	}
	return list, err
}

// document reads the base, an experiment or a population.
func (c Config) document(kinds experiment.Kinds, base string) (*configs.Document, error) {
	if c.of != nil {
		return c.of.Clone(), nil
	}
	doc, err := kinds.Read(base)
	if err == nil {
		err = experiment.Absolute(doc)
	}
	if err != nil {
		return nil, fmt.Errorf("base: %w", err)
	}
	return doc, nil
}

func (c Config) ways(kinds experiment.Kinds, base string, sets []string) ([]way, error) {
	doc, err := c.document(kinds, base)
	if err != nil {
		return nil, err
	}
	edit := doc.Set
	if isPopulation(doc) {
		edit = func(sets ...string) error { return population.Edit(doc, sets...) }
	}
	if err := errors.Join(placed(doc, c.Set).Apply(doc), edit(sets...)); err != nil {
		return nil, err
	}
	var list []way
	var problems configs.Errors
	for i, v := range c.variants() {
		one, err := decode(kinds, doc.Clone(), base, placed(doc, v.Set))
		if err != nil {
			problems = append(problems, named(v.Name, slices.Concat(placed(doc, v.Set), placed(doc, c.Set)).Place(err))...)
			if i == 0 {
				break // The variants are made of it.
			}
		}
		list = append(list, one)
	}
	if len(problems) > 0 {
		return nil, problems
	}
	return list, nil
}

func decode(kinds experiment.Kinds, doc *configs.Document, base string, set study.Assignments) (w way, err error) {
	if err := set.Apply(doc); err != nil {
		return w, err
	}
	if isPopulation(doc) {
		return decodePopulation(kinds, doc, base)
	}
	if err := experiment.Absolute(doc); err != nil {
		return w, err
	}
	if _, ok := doc.Lookup("env.data"); ok {
		if err := doc.SetValue("env.data.split", everything()); err != nil {
			return w, err
		}
	}
	w.Config, err = kinds.Decode(doc)
	w.steps = w.Train.TotalEnvSteps
	return w, err
}

// variants begin with the base.
func (c Config) variants() Variants { return append(Variants{{Name: Base}}, c.Variants...) }

// NewPlan opens the environments of [Experiments] and divides the dates of their bars.
func NewPlan(ctx context.Context, kinds experiment.Kinds, c Config, base string, sets []string) (*Plan, error) {
	list, err := c.ways(kinds, base, sets)
	if err != nil {
		return nil, err
	}
	b := &planner{ctx: ctx, kinds: kinds, plan: &Plan{Study: c, Base: c.Base, Seeds: c.Seeds}}
	if p := b.plan; len(p.Seeds) == 0 {
		if p.Seeds = list[0].Seeds; len(p.Seeds) == 0 {
			p.Seeds = []uint64{list[0].Seed}
		}
	}
	var problems configs.Errors
	var cells [][]Cell
	for i, v := range c.variants() {
		of, err := b.variant(list[i], i, v)
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if err != nil {
			problems = append(problems, named(v.Name, v.Set.Place(err))...)
			if i == 0 {
				break
			}
			continue
		}
		cells = append(cells, of)
	}
	if len(problems) > 0 {
		return nil, problems
	}
	p := b.plan
	for f := range p.Folds {
		for v := range cells {
			p.Cells = append(p.Cells, cells[v][f])
		}
	}
	p.Runs = len(p.Cells) * len(p.Seeds)
	return p, nil
}

// named says which variant has problems.
func named(variant string, err error) configs.Errors {
	list := slices.Clone(study.Problems(err))
	for i, e := range list {
		one := *e
		one.Message = variant + ": " + one.Message
		list[i] = &one
	}
	return list
}

type planner struct {
	ctx   context.Context
	kinds experiment.Kinds
	plan  *Plan
	folds []split.SchemeFold
}

// variant opens one variant and returns its cells, one for each fold.
func (b *planner) variant(w way, number int, v Variant) (_ []Cell, err error) {
	c := w.Config
	c.Seed, c.Seeds = 0, nil
	if c.Train.Threads == 0 {
		c.Train.Threads = 1
	}
	text, err := configs.Marshal(c)
	if err != nil {
		return nil, err
	}
	if w.population != nil {
		if c, err = b.divided(text, everything()); err != nil {
			return nil, err
		}
	}
	c, factory, _, err := b.kinds.Open(b.ctx, c)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, factory.Close()) }()
	env, ok := factory.(trading.Opened)
	if !ok {
		return nil, fmt.Errorf("the environment %s is not one of trading, whose data could be divided", c.Env.Kind)
	}
	if err := b.check(w, env); err != nil {
		return nil, err
	}
	dates, episode := env.Data().Market.Dates, env.Config().(trading.Params).Episode
	if number == 0 {
		if err := b.divide(dates); err != nil {
			return nil, err
		}
	}
	b.plan.Variants, b.plan.EnvSteps = append(b.plan.Variants, v.Name), append(b.plan.EnvSteps, w.steps)
	if text, err = configs.Marshal(c); err != nil {
		return nil, err
	}
	var cells []Cell
	for i, f := range b.folds {
		cell := Cell{Name: f.Name, Variant: number, Fold: i}
		if len(b.plan.Study.Variants) > 0 {
			cell.Name = v.Name + " " + f.Name
		}
		cell.Dir = study.Slug(cell.Name)
		if n := b.plan.Folds[i].Train.Bars; episode.Kind == trading.Random && episode.Length >= n {
			return nil, fmt.Errorf("fold %s: env.episode.length is %d, and the training range has %d bars", f.Name, episode.Length, n)
		}
		for k := range f.Tests {
			s := f.Split(b.plan.Study.Scheme, k)
			if _, err := s.Resolve(dates); err != nil {
				return nil, fmt.Errorf("fold %s: %w", f.Name, err)
			}
			cell.tests = append(cell.tests, s)
		}
		if cell.Config, err = b.divided(text, cell.tests[0]); err != nil {
			return nil, fmt.Errorf("fold %s: %w", f.Name, err)
		}
		if w.population != nil {
			if cell.Population, err = dividedPopulation(w.population, cell.tests[0]); err != nil {
				return nil, fmt.Errorf("fold %s: %w", f.Name, err)
			}
		}
		cells = append(cells, cell)
	}
	return cells, nil
}

// everything is a split that all data fit, in place of the base's, which folds replace: whatever that
// says, or leaves out, is not asked for.
func everything() split.Config {
	day := func(year int) bars.Date { return bars.NewDate(time.Date(year, 1, 1, 0, 0, 0, 0, time.UTC)) }
	c := split.Default()
	c.Train = split.Range{From: day(1000), To: day(9999)}
	return c
}

// divided decodes an effective document with another split.
func (b *planner) divided(text []byte, s split.Config) (c experiment.Config, err error) {
	doc, err := configs.Parse("the effective configuration", text)
	if err == nil {
		err = doc.SetValue("env.data.split", s)
	}
	if err != nil {
		return c, err
	}
	return b.kinds.Decode(doc)
}

// check reports what of an experiment does not suit the study.
func (b *planner) check(w way, env trading.Opened) error {
	var p configs.Problems
	s, c := b.plan.Study, w.Config
	if w.population != nil {
		p.Check(s.WarmStart == None, "warm_start", "is %s, and a population begins every fold from nothing", s.WarmStart)
		p.Check(s.Ensemble.By == "" || s.Ensemble.By == ByValidation, "ensemble.by", "is %s, and what populations publish acts by itself; expected %s, or none", s.Ensemble.By, ByValidation)
		p.Check(s.Scheme.Kind != split.Combinatorial, "scheme.kind", "is %s, which is not for populations", split.Combinatorial)
	}
	p.Check(c.Train.Validation.EverySteps > 0, "train.validation.every_steps", "is 0, and the policy of a fold is the best on its validation range")
	p.Check(s.Ensemble.By == "" || len(b.plan.Seeds) > 1, "ensemble.by", "one seed makes no ensemble")
	p.Check(s.Ensemble.By == "" || s.Ensemble.By == ByValidation || c.Eval.Deterministic, "eval.deterministic", "is false, and an ensemble by %s takes the best action", s.Ensemble.By)
	p.Check(s.WarmStart != Last || w.population != nil || c.Train.Checkpoint.KeepBest > 0, "train.checkpoint.keep_best", "is 0, and a fold begins with the best policy of the one before")
	if s.Scheme.Kind == split.Combinatorial {
		t := env.Source().Config()
		p.Check(s.Scheme.Embargo >= t.Window, "scheme.embargo", "is %d, and windows of %d bars after a test range would show it in training", s.Scheme.Embargo, t.Window)
		p.Check(env.Config().(trading.Params).Episode.Kind == trading.Random, "env.episode.kind", "is not %s: what combinatorial folds train on is in several parts", trading.Random)
	}
	return p.Err()
}

// shortest is how many bars a range must have that policies are chosen by or judged on.
const shortest = 3

// divide lists the folds of dates.
func (b *planner) divide(dates []time.Time) (err error) {
	s := b.plan.Study.Scheme
	if b.folds, err = s.Folds(dates); err != nil {
		return err
	}
	stretch := func(parts ...split.Span) (out Stretch) {
		out.From, out.To = dates[parts[0].Lo].Format(time.DateOnly), dates[parts[len(parts)-1].Hi-1].Format(time.DateOnly)
		for _, p := range parts {
			out.Bars += p.Len()
		}
		return out
	}
	for _, f := range b.folds {
		one := Fold{Name: f.Name}
		for i := range f.Tests {
			c := f.Split(s, i)
			at, err := c.Resolve(dates)
			if err != nil {
				return err
			}
			parts := at.Train.Outside(c.Gaps(dates))
			if len(parts) == 0 {
				return fmt.Errorf("fold %s: purging leaves nothing to train on", f.Name)
			}
			if n := min(at.Valid.Len(), at.Test.Len()); n < shortest {
				return fmt.Errorf("fold %s: purging leaves %d bars of its validation or test range, expected at least %d", f.Name, n, shortest)
			}
			one.Train, one.Valid, one.Test = stretch(parts...), stretch(at.Valid), append(one.Test, stretch(at.Test))
		}
		b.plan.Folds = append(b.plan.Folds, one)
	}
	b.plan.First, b.plan.Last, b.plan.Bars = dates[0].Format(time.DateOnly), dates[len(dates)-1].Format(time.DateOnly), len(dates)
	return nil
}
