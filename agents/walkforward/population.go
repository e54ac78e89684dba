package walkforward

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"runtime"

	"github.com/onnxrl/onnxrl/agents/evaluate"
	"github.com/onnxrl/onnxrl/agents/evolve"
	"github.com/onnxrl/onnxrl/agents/experiment"
	"github.com/onnxrl/onnxrl/agents/population"
	"github.com/onnxrl/onnxrl/agents/publish"
	"github.com/onnxrl/onnxrl/agents/run"
	"github.com/onnxrl/onnxrl/agents/study"
	"github.com/onnxrl/onnxrl/configs"
	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/envs/market/split"
	"github.com/onnxrl/onnxrl/envs/market/trading"
	"github.com/onnxrl/onnxrl/export/report/performance"
)

// A way of training may be a population: its experts' experiment is what is divided, and what it
// publishes in the end, the router with its experts or the best expert, is judged.

// isPopulation reports whether a document is that of a population.
func isPopulation(doc *configs.Document) bool {
	_, ok := doc.Lookup("experts")
	return ok
}

// placed are assignments to the base: to a population's document or to its experts' experiment.
func placed(doc *configs.Document, a study.Assignments) study.Assignments {
	if !isPopulation(doc) {
		return a
	}
	out := make(study.Assignments, len(a))
	for i, v := range a {
		out[i] = study.Assignment{Path: population.Place(v.Path), Value: v.Value}
	}
	return out
}

// decodePopulation decodes the document of a population, and its experts' experiment.
func decodePopulation(kinds experiment.Kinds, doc *configs.Document, base string) (w way, err error) {
	c, err := population.Decode(doc, base)
	if err == nil {
		err = c.Check(kinds)
	}
	if err != nil {
		return w, err
	}
	if w.population, err = c.Document(); err != nil {
		return w, err
	}
	w.Config, err = evolve.Experiment(kinds, c.Experts, c.Experts.Base, nil)
	w.steps = c.Steps()
	return w, err
}

// dividedPopulation is a population's document with another split of the data.
func dividedPopulation(doc *configs.Document, s split.Config) (configs.Section, error) {
	doc = doc.Clone()
	err := doc.SetValue(population.Place("env.data.split"), s)
	return doc.Section(), err
}

// population is what a seed of a cell trains.
func (c *Cell) population(seed uint64) (p population.Config, err error) {
	text, err := configs.Marshal(c.Population)
	if err != nil {
		return p, err
	}
	doc, err := configs.Parse(c.Name, text)
	if err != nil {
		return p, err
	}
	p = population.Defaults()
	err = errors.Join(doc.SetValue(population.Place("seed"), seed), doc.Decode(&p))
	if err != nil || !p.Router.On() {
		return p, err
	}
	err = errors.Join(doc.SetValue("router.experiment.seed", seed), doc.Decode(&p))
	return p, err
}

// trainPopulation trains and publishes a population, or goes on with it.
func (s *Study) trainPopulation(ctx context.Context, r *Run) (err error) {
	c, dir := &s.Plan.Cells[r.CellIndex], s.JobDir(r)
	o := population.Options{
		Kinds: s.Trainer.Kinds, Run: s.Trainer.Options, Steps: s.OnSteps, Note: s.Trainer.Options.Hooks.Note, Pretrained: filepath.Join(s.Dir, "pretrained"),
		Parallel: max(1, runtime.GOMAXPROCS(0)/max(1, s.Parallel*c.Config.Train.Threads)),
	}
	var p *population.Population
	if population.Holds(dir) {
		o.Resume = dir
		p, err = population.Open(ctx, "", o)
	} else {
		var doc population.Config
		if doc, err = c.population(r.Seed); err != nil {
			return err
		}
		o.Dir = dir
		p, err = population.New(ctx, study.Slug(c.Name), doc, o)
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.Close()) }()
	if _, err := p.Begin(); err != nil {
		return err
	}
	if err := p.Train(ctx); err != nil {
		return err
	}
	_, err = p.Publish(ctx)
	return err
}

// populationOf reads the summary of a population that is published.
func (s *Study) populationOf(c *Cell, seed uint64) (sum population.Summary, err error) {
	err = run.ReadJSON(filepath.Join(s.seedDir(c, seed), run.FinishedFile), &sum)
	return sum, err
}

// populationOutcome reads what came of a population.
func (s *Study) populationOutcome(c *Cell, seed uint64) (o SeedOutcome, err error) {
	sum, err := s.populationOf(c, seed)
	if err != nil {
		return o, err
	}
	o = SeedOutcome{Seed: seed, EnvSteps: sum.Experts.EnvSteps, Metric: sum.Experts.Metric, Validation: sum.Experts.Members[0].Score, Trials: sum.Trials, SinceRestart: sum.Experts.SinceRestart}
	if k := len(sum.Router); k > 0 {
		o.EnvSteps += sum.Router[k-1].Decisions
		o.Metric, o.Validation = sum.Router[k-1].Metric, sum.Router[k-1].Score
	}
	o.BestEnvSteps = o.EnvSteps
	return o, nil
}

// testedPopulation is the experiment in which what a population has published acts, for a test
// range: its own document, which shows what a router has to know of the account.
func (s *Study) testedPopulation(c *Cell, to split.Config) (e experiment.Config, err error) {
	sum, err := s.populationOf(c, s.Plan.Seeds[0])
	if err != nil {
		return e, err
	}
	doc, err := configs.Open(filepath.Join(filepath.Dir(sum.Published), run.ConfigFile))
	if err == nil {
		err = doc.SetValue("env.data.split", to)
	}
	if err != nil {
		return e, err
	}
	return s.Trainer.Kinds.Decode(doc)
}

// probed is on how many observations of a test range the experts of a population are compared.
const probed = 256

// apart is how far the published experts of a seed lie apart in a test range, see evolve.MAPD.
func (s *Study) apart(ctx context.Context, c *Cell, factory envs.Factory, seed uint64) (performance.Number, error) {
	sum, err := s.populationOf(c, seed)
	if err != nil {
		return 0, err
	}
	env := factory.(trading.Opened)
	r := env.Data().Splits[envs.Test]
	bars := r.Last - r.First
	o := evaluate.ProbeOptions{Split: envs.Test, Lanes: 1, Stride: max(1, (bars+probed-1)/probed)}
	o.Rounds = max(1, bars/o.Stride)
	var actions [][]float64
	for _, path := range sum.Policies {
		a, err := evaluate.Probe(ctx, factory, publish.ModelFile(ctx, path, s.Trainer.Options.Engine, factory, envs.Test), o)
		if err != nil {
			return 0, fmt.Errorf("%s: %w", path, err)
		}
		actions = append(actions, a)
	}
	of, err := evolve.ActionsOf(factory)
	if err != nil {
		return 0, err
	}
	mean, _ := of.MAPD(actions)
	return performance.Number(mean), nil
}
