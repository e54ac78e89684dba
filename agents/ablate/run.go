package ablate

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/onnxrl/onnxrl/agents/experiment"
	"github.com/onnxrl/onnxrl/agents/study"
	"github.com/onnxrl/onnxrl/configs"
	"github.com/onnxrl/onnxrl/export/report/performance"
)

// Study is a plan being carried out in a folder.
type Study struct {
	study.Study[Outcome]
	Plan   *Plan
	Runner Runner
	// Now is the clock.
	Now func() time.Time
}

// Run is one seed of a cell.
type Run = study.Job[Outcome]

// Open reads what the folder holds of the study, without changing anything.
func (s *Study) Open() error {
	var cells []study.Cell
	for i, c := range s.Plan.Cells {
		cells = append(cells, study.Cell{Name: c.Name, Dir: c.Dir, Config: c.Config, Way: i})
	}
	var jobs []*Run
	// Seed by seed, so that a study that is stopped has compared all cells on some seeds.
	for i, seed := range s.Plan.Seeds {
		for j := range s.Plan.Cells {
			c := &s.Plan.Cells[j]
			r := &Run{Cell: c.Name, Seed: seed, CellIndex: j, SeedIndex: i, Path: study.RunPath(c.Dir, seed), Digest: func() (string, error) { return configs.Digest(c.seeded(seed)) }}
			r.Do = func(ctx context.Context) (*Outcome, error) { return s.execute(ctx, s.JobDir(r), c.seeded(seed)) }
			jobs = append(jobs, r)
		}
	}
	return s.Study.Open(s.Plan.Study, cells, jobs)
}

// seeded is a cell's experiment with a seed.
func (c *Cell) seeded(seed uint64) experiment.Config {
	e := c.Config
	e.Seed = seed
	return e
}

// Rehearse finds out what refuses a cell before anything is trained, as [study.Study.Rehearse] says.
func (s *Study) Rehearse(ctx context.Context) error {
	return s.Study.Rehearse(ctx, func(ctx context.Context, cell int) error {
		return s.Runner.Rehearse(ctx, s.Plan.Cells[cell].seeded(s.Plan.Seeds[0]))
	})
}

// execute trains and evaluates a run.
func (s *Study) execute(ctx context.Context, dir string, c experiment.Config) (*Outcome, error) {
	start := s.Now()
	from, tell := int64(-1), s.Steps()
	steps, err := s.Runner.Train(ctx, dir, c, func(steps int64) {
		if from < 0 {
			from = steps
		}
		tell(steps)
	})
	if err == nil {
		err = ctx.Err()
	}
	if err != nil {
		return nil, err
	}
	o, err := s.outcome(ctx, dir, c)
	if err != nil {
		return nil, fmt.Errorf("evaluate: %w", err)
	}
	if o.ConfigSHA256, err = configs.Digest(c); err != nil {
		return nil, err
	}
	o.EnvSteps = steps
	if took := s.Now().Sub(start).Seconds(); took > 0 && from >= 0 {
		o.StepsPerSecond = performance.Number(float64(steps-from) / took)
	}
	return o, nil
}

// outcome evaluates a run and checks that all columns of the tables are there.
func (s *Study) outcome(ctx context.Context, dir string, c experiment.Config) (*Outcome, error) {
	o, err := s.Runner.Evaluate(ctx, dir, c)
	if err != nil {
		return nil, err
	}
	var p configs.Problems
	for _, m := range s.Plan.Study.Metrics {
		_, ok := o.Metrics[m]
		p.Check(ok, "metrics", "%q is not one of %s", m, strings.Join(slices.Sorted(maps.Keys(o.Metrics)), ", "))
	}
	return o, p.Err()
}
