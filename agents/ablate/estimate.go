package ablate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/onnxrl/onnxrl/agents/experiment"
	"github.com/onnxrl/onnxrl/agents/run"
)

// Runner carries out runs. Its methods are called concurrently, for different directories.
type Runner interface {
	// Rehearse finds out what refuses an experiment, without training it or keeping anything.
	Rehearse(ctx context.Context, c experiment.Config) error
	// Train carries out an experiment in dir, or continues what dir holds of it, and returns the
	// env steps taken in all, those of earlier processes included. It calls progress with this
	// number at the start and as it grows. When ctx ends it saves its state and returns ctx's
	// error. Training a run that has reached its end does nothing.
	Train(ctx context.Context, dir string, c experiment.Config, progress func(envSteps int64)) (envSteps int64, err error)
	// Evaluate measures the policy that dir holds on the validation split.
	Evaluate(ctx context.Context, dir string, c experiment.Config) (*Outcome, error)
}

// Estimate is how long a study will take. The JSON keys are stable.
type Estimate struct {
	// Costs are those of the cells, in their order.
	Costs []Cost `json:"costs"`
	// Parallel is the number of runs at a time, Remaining the number of runs that are not finished.
	Parallel  int `json:"parallel"`
	Remaining int `json:"runs_remaining"`
	// Seconds is the time of all remaining runs.
	Seconds float64 `json:"seconds"`
}

// Cost is what a run of a cell is expected to take.
type Cost struct {
	Cell string `json:"cell"`
	// Basis is calibration or finished runs.
	Basis          string  `json:"basis"`
	SetupSeconds   float64 `json:"setup_seconds"`
	StepsPerSecond float64 `json:"env_steps_per_second"`
	// EvaluationSeconds is what one evaluation takes.
	EvaluationSeconds float64 `json:"evaluation_seconds"`
	// Seconds is the whole run.
	Seconds float64 `json:"seconds"`
}

// The bases of a cost.
const (
	Calibrated = "calibration"
	Finished   = "finished runs"
)

// Calibration says how costs are measured.
type Calibration struct {
	// Budget is the training time of each measurement, after its first progress.
	Budget time.Duration
	Now    func() time.Time
}

// Estimate measures what a run of each shape costs by training one for a moment, as many at a time
// as the study's runs, and works out what the study will take. What is trained for this is thrown
// away. Shapes with finished runs are not measured. A cell that cannot be trained or evaluated is
// found here: the error names all of them.
func (s *Study) Estimate(ctx context.Context, cal Calibration) (*Estimate, error) {
	scratch, err := os.MkdirTemp("", "onnxrl-ablate-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(scratch)
	costs := map[string]*Cost{}
	var measure []*Cell
	for i := range s.Plan.Cells {
		c := &s.Plan.Cells[i]
		if _, known := costs[c.Shape]; known {
			continue
		}
		costs[c.Shape] = s.finishedCost(c.Shape)
		if costs[c.Shape] == nil {
			costs[c.Shape] = &Cost{}
			measure = append(measure, c)
		}
	}
	errs := make([]error, len(measure))
	err = run.Each(ctx, s.Parallel, len(measure), func(ctx context.Context, i int) error {
		c := measure[i]
		cost, err := s.measure(ctx, cal, c, fmt.Sprintf("%s/%d", scratch, i))
		if err != nil {
			errs[i] = fmt.Errorf("%s: %w", c.Name, err)
			return nil // The others are found, too.
		}
		*costs[c.Shape] = cost
		return nil
	})
	if err = cmp.Or(err, errors.Join(errs...)); err != nil {
		return nil, err
	}
	e := &Estimate{Parallel: s.Parallel}
	for i := range s.Plan.Cells {
		cost := *costs[s.Plan.Cells[i].Shape]
		cost.Cell = s.Plan.Cells[i].Name
		e.Costs = append(e.Costs, cost)
	}
	for _, r := range s.Runs() {
		if r.Outcome == nil {
			e.Remaining++
		}
	}
	e.Seconds = s.schedule(e.Costs)
	return e, nil
}

// schedule returns how long the runs that are left take when they start in order, each where one
// ends first.
func (s *Study) schedule(costs []Cost) (seconds float64) {
	free := make([]float64, s.Parallel)
	for _, r := range s.Runs() {
		if r.Outcome != nil {
			continue
		}
		first := 0
		for w := range free {
			if free[w] < free[first] {
				first = w
			}
		}
		free[first] += costs[r.CellIndex].Seconds
		seconds = max(seconds, free[first])
	}
	return seconds
}

// finishedCost is the mean over finished runs of a shape, or nil.
func (s *Study) finishedCost(shape string) *Cost {
	c := Cost{Basis: Finished}
	n := 0
	for _, r := range s.Runs() {
		if r.Outcome != nil && s.Plan.Cells[r.CellIndex].Shape == shape && r.Outcome.StepsPerSecond > 0 {
			c.Seconds += float64(r.Outcome.EnvSteps) / float64(r.Outcome.StepsPerSecond)
			c.StepsPerSecond += float64(r.Outcome.StepsPerSecond)
			n++
		}
	}
	if n == 0 {
		return nil
	}
	c.Seconds /= float64(n)
	c.StepsPerSecond /= float64(n)
	return &c
}

// measure trains a cell's experiment for a moment, without checkpoints and evaluations, and
// evaluates what came of it.
func (s *Study) measure(ctx context.Context, cal Calibration, c *Cell, dir string) (Cost, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return Cost{}, err
	}
	config := c.Config
	config.Seed = s.Plan.Seeds[0]
	total := config.Train.TotalEnvSteps
	every := config.Train.Validation.EverySteps
	config.Train.Checkpoint.EverySteps, config.Train.Validation.EverySteps = 0, 0
	start := cal.Now()
	var first, last time.Time
	var from, to int64
	var mu sync.Mutex
	run, stop := context.WithCancel(ctx)
	defer stop()
	_, err := s.Runner.Train(run, dir, config, func(steps int64) {
		mu.Lock()
		defer mu.Unlock()
		now := cal.Now()
		if first.IsZero() {
			first, from = now, steps
		}
		last, to = now, steps
		if now.Sub(first) >= cal.Budget {
			stop()
		}
	})
	end := cal.Now()
	if err != nil && (ctx.Err() != nil || run.Err() == nil) {
		return Cost{}, err
	}
	mu.Lock()
	defer mu.Unlock()
	cost := Cost{Cell: c.Name, Basis: Calibrated}
	if span := last.Sub(first).Seconds(); to > from && span > 0 {
		cost.StepsPerSecond = float64(to-from) / span
		cost.SetupSeconds = max(0, first.Sub(start).Seconds()-float64(from)/cost.StepsPerSecond)
	} else if took := end.Sub(start).Seconds(); took > 0 {
		// It was over before a second look at it.
		cost.StepsPerSecond = float64(total) / took
	}
	if _, err := s.outcome(ctx, dir, config); err != nil {
		return Cost{}, err
	}
	cost.EvaluationSeconds = cal.Now().Sub(end).Seconds()
	evaluations := int64(1)
	if every > 0 {
		evaluations += total / every
	}
	cost.Seconds = cost.SetupSeconds + float64(evaluations)*cost.EvaluationSeconds
	if cost.StepsPerSecond > 0 {
		cost.Seconds += float64(total) / cost.StepsPerSecond
	}
	return cost, nil
}
