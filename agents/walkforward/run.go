package walkforward

import (
	"context"
	"errors"
	"os"
	"path/filepath"

	"github.com/onnxrl/onnxrl/agents/experiment"
	"github.com/onnxrl/onnxrl/agents/population"
	"github.com/onnxrl/onnxrl/agents/run"
	"github.com/onnxrl/onnxrl/agents/study"
	"github.com/onnxrl/onnxrl/configs"
	"github.com/onnxrl/onnxrl/models/prefix"
	"github.com/onnxrl/onnxrl/runtime/engine"
)

// Study is a plan being carried out in a folder: a job for each run, and one for each cell, which
// judges its runs.
type Study struct {
	study.Study[Outcome]
	Plan    *Plan
	Trainer study.Trainer

	// judges are the jobs that judge, by cell.
	judges []*Run
	// sessions are those of all runs' networks, and prefixes what frozen layers make of windows:
	// runs of a fold have them in common.
	sessions *engine.Shared
	prefixes prefix.Caches
}

// keptSessions is how many sessions that no run uses wait for the next.
const keptSessions = 32

// Run is one seed of a cell, or what judges the cell.
type Run = study.Job[Outcome]

// Open reads what the folder holds of the study, without changing anything. With other seeds, or as
// another ensemble, a cell is judged again.
func (s *Study) Open() error {
	var cells []study.Cell
	var jobs []*Run
	seeds := len(s.Plan.Seeds)
	s.judges = nil
	for i := range s.Plan.Cells {
		c := &s.Plan.Cells[i]
		cells = append(cells, study.Cell{Name: c.Name, Dir: c.Dir, Config: c.Config, Whole: c.Population, Way: c.Variant})
		judge := &Run{
			Cell: c.Name, CellIndex: i, SeedIndex: -1, Path: c.Dir,
			Digest: func() (string, error) { return s.digest(c) },
			Do:     func(ctx context.Context) (*Outcome, error) { return s.judge(ctx, c) },
		}
		for k, seed := range s.Plan.Seeds {
			r := &Run{Cell: c.Name, Seed: seed, CellIndex: i, SeedIndex: k, Path: study.RunPath(c.Dir, seed)}
			r.Finished = func() bool {
				_, err := os.Stat(filepath.Join(s.JobDir(r), run.FinishedFile))
				return err == nil || judge.State == study.Done
			}
			if s.Plan.Study.WarmStart == Last && c.Fold > 0 {
				// Cells are fold by fold, and a fold's has its judge behind its seeds.
				r.After = []*Run{jobs[(i-len(s.Plan.Variants))*(seeds+1)+k]}
			}
			r.Do = func(ctx context.Context) (*Outcome, error) { return nil, s.train(ctx, r) }
			judge.After = append(judge.After, r)
			jobs = append(jobs, r)
		}
		jobs, s.judges = append(jobs, judge), append(s.judges, judge)
	}
	return s.Study.Open(s.Plan.Study, cells, jobs)
}

// digest is of what a cell's outcome depends on.
func (s *Study) digest(c *Cell) (string, error) {
	return configs.Digest(struct {
		Config     experiment.Config
		Seeds      []uint64
		Ensemble   Ensemble
		WarmStart  string
		Population configs.Section `yaml:",omitempty"`
	}{c.Config, s.Plan.Seeds, s.Plan.Study.Ensemble, s.Plan.Study.WarmStart, c.Population})
}

// outcomes are those of the cells, nil until they are judged.
func (s *Study) outcomes() (list []*Outcome) {
	for _, j := range s.judges {
		list = append(list, j.Outcome)
	}
	return list
}

// Judged counts the cells that are.
func (s *Study) Judged() (n int) {
	for _, o := range s.outcomes() {
		if o != nil {
			n++
		}
	}
	return n
}

// Rehearse finds out what refuses a variant before anything is trained, as [study.Study.Rehearse]
// says.
func (s *Study) Rehearse(ctx context.Context) error {
	return s.Study.Rehearse(ctx, func(ctx context.Context, cell int) (err error) {
		c, seed := &s.Plan.Cells[cell], s.Plan.Seeds[0]
		if c.Population.IsZero() {
			return s.Trainer.Rehearse(ctx, c.seeded(seed))
		}
		doc, err := c.population(seed)
		if err != nil {
			return err
		}
		p, err := population.New(ctx, study.Slug(c.Name), doc, population.Options{Kinds: s.Trainer.Kinds, Run: s.Trainer.Options})
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, p.Close()) }()
		return p.Rehearse(ctx)
	})
}

// Begin makes the folder, takes its lock and records the plan.
func (s *Study) Begin() error {
	if err := s.Study.Begin(); err != nil {
		return err
	}
	if o := &s.Trainer.Options; o.Engine != nil {
		s.sessions = engine.Share(o.Engine, keptSessions)
		o.Engine, o.Prefixes = s.sessions, &s.prefixes
	}
	return nil
}

// Close releases the folder.
func (s *Study) Close() error {
	err := s.prefixes.Close()
	if s.sessions != nil {
		err = errors.Join(err, s.sessions.Close())
	}
	return errors.Join(err, s.Study.Close())
}

// seedDir is the run directory of a seed of a cell.
func (s *Study) seedDir(c *Cell, seed uint64) string {
	return filepath.Join(s.Dir, filepath.FromSlash(study.RunPath(c.Dir, seed)))
}

// seeded is a cell's experiment with a seed.
func (c *Cell) seeded(seed uint64) experiment.Config {
	e := c.Config
	e.Seed = seed
	return e
}

// train trains a run to its end.
func (s *Study) train(ctx context.Context, r *Run) error {
	c := &s.Plan.Cells[r.CellIndex]
	if !c.Population.IsZero() {
		return s.trainPopulation(ctx, r)
	}
	t := s.Trainer
	if len(r.After) > 0 {
		t.Init = run.Init{Ref: s.JobDir(r.After[0])}
	}
	_, err := t.Train(ctx, s.JobDir(r), c.seeded(r.Seed), s.Steps())
	if err == nil {
		err = ctx.Err()
	}
	return err
}
