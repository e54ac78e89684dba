package ablate

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/onnxrl/onnxrl/agents/experiment"
	"github.com/onnxrl/onnxrl/agents/run"
	"github.com/onnxrl/onnxrl/agents/study"
	"github.com/onnxrl/onnxrl/configs"
	"github.com/onnxrl/onnxrl/export/report/performance"
	"github.com/onnxrl/onnxrl/runtime/atomicfile"
)

// Study is a plan being carried out in a folder.
type Study struct {
	Plan   *Plan
	Dir    string
	Runner Runner
	// Parallel is the number of runs at a time, at least 1. Results do not depend on it.
	Parallel int
	// Now is the clock.
	Now func() time.Time
	// OnRun, unless nil, is told of every run that has begun or ended, and OnSteps of env steps
	// that were taken. They are called from several goroutines.
	OnRun   func(r *Run)
	OnSteps func(n int64)

	runs []*Run
	lock func() error
}

// Run is one seed of a cell.
type Run struct {
	Cell string
	Seed uint64
	Dir  string
	// State is one of the words below.
	State string
	// Outcome is nil until the run is finished, Err says why it failed.
	Outcome *Outcome
	Err     error

	cell, seed int
}

// The states of a run.
const (
	Waiting     = "waiting"
	Running     = "running"
	Done        = "done"
	Failed      = "failed"
	Interrupted = "interrupted"
)

// Open reads what the folder holds of the study, without changing anything. Cells and seeds may
// have been added since; a cell whose experiment has changed is an error that says in what.
func (s *Study) Open() error {
	if err := study.Compare[Config](s.Dir, s.cells(), s.settle); err != nil {
		return err
	}
	s.runs = nil
	var errs []error
	// Seed by seed, so that a study that is stopped has compared all cells on some seeds.
	for i, seed := range s.Plan.Seeds {
		for j := range s.Plan.Cells {
			c := &s.Plan.Cells[j]
			r := &Run{Cell: c.Name, Seed: seed, Dir: filepath.Join(s.Dir, c.Dir, "seed-"+strconv.FormatUint(seed, 10)), State: Waiting, cell: j, seed: i}
			o, err := readOutcome(r.Dir)
			if err != nil {
				errs = append(errs, err)
			}
			if o != nil {
				digest, err := s.digest(r)
				if err == nil && digest != o.ConfigSHA256 && !s.isOlder(r, o) {
					err = fmt.Errorf("%s: the outcome is of another experiment (SHA-256 %.12s…, now %.12s…): remove the run, or choose another folder", r.Dir, o.ConfigSHA256, digest)
				}
				if err != nil {
					errs = append(errs, err)
					continue
				}
				r.Outcome, r.State = o, Done
			}
			s.runs = append(s.runs, r)
		}
	}
	return errors.Join(errs...)
}

// Runs lists the runs, seed by seed.
func (s *Study) Runs() []*Run { return s.runs }

// cells are those of the plan as its record has them.
func (s *Study) cells() (list []study.Cell) {
	for _, c := range s.Plan.Cells {
		list = append(list, study.Cell{Name: c.Name, Dir: c.Dir, Config: c.Config})
	}
	return list
}

// settle returns what an experiment means.
func (s *Study) settle(c experiment.Config) (experiment.Config, error) {
	c, _, err := s.Plan.effective(context.Background(), c)
	return c, err
}

// isOlder reports whether the experiment of a run's outcome, which its directory describes, is the
// run's, although it is written otherwise now.
func (s *Study) isOlder(r *Run, o *Outcome) bool {
	text, err := os.ReadFile(filepath.Join(r.Dir, "config.yaml"))
	if err != nil || fmt.Sprintf("%x", sha256.Sum256(text)) != o.ConfigSHA256 {
		return false
	}
	doc, err := configs.Parse(r.Dir, text)
	if err != nil {
		return false
	}
	stored, err := configs.NewSection(doc)
	if err != nil {
		return false
	}
	c := s.Plan.Cells[r.cell].Config
	c.Seed = r.Seed
	changes, err := study.Changes(stored, c, s.settle)
	return err == nil && len(changes) == 0
}

// Rehearse finds out what refuses a cell before anything is trained. Cells of which a run has begun
// are left out: they were rehearsed before that. The error names all that are refused.
func (s *Study) Rehearse(ctx context.Context) error {
	begun := map[int]bool{}
	for _, r := range s.runs {
		if r.Outcome != nil || run.Holds(r.Dir) {
			begun[r.cell] = true
		}
	}
	var errs []error
	for i := range s.Plan.Cells {
		c := &s.Plan.Cells[i]
		if begun[i] {
			continue
		}
		e := c.Config
		e.Seed = s.Plan.Seeds[0]
		if err := s.Runner.Rehearse(ctx, e); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", c.Name, err))
		}
		if err := ctx.Err(); err != nil {
			return err
		}
	}
	return errors.Join(errs...)
}

// Begin makes the folder, takes its lock and records the plan.
func (s *Study) Begin() error {
	if err := os.MkdirAll(s.Dir, 0o755); err != nil {
		return err
	}
	var err error
	s.lock, err = atomicfile.Lock(filepath.Join(s.Dir, ".lock"))
	if err != nil {
		return fmt.Errorf("%s: %w", s.Dir, err)
	}
	err = study.Write(s.Dir, s.Plan.Study, s.cells())
	if err != nil {
		return errors.Join(err, s.Close())
	}
	return nil
}

// Close releases the folder.
func (s *Study) Close() error {
	if s.lock == nil {
		return nil
	}
	release := s.lock
	s.lock = nil
	return release()
}

// Execute trains and evaluates what is not finished. A run that fails does not stop the others: its
// Err says why, and the next Execute tries it again. When ctx ends, running ones save their state,
// and the error is ctx's.
func (s *Study) Execute(ctx context.Context) error {
	var left []*Run
	for _, r := range s.runs {
		if r.Outcome == nil {
			left = append(left, r)
		}
	}
	var mu sync.Mutex
	tell := func(r *Run, state string, o *Outcome, err error) {
		mu.Lock()
		defer mu.Unlock()
		r.State, r.Outcome, r.Err = state, o, err
		if s.OnRun != nil {
			s.OnRun(r)
		}
	}
	study.Parallel(s.Parallel, len(left), func(i int) {
		r := left[i]
		if ctx.Err() != nil {
			return
		}
		tell(r, Running, nil, nil)
		o, err := s.execute(ctx, r)
		switch {
		case err == nil:
			tell(r, Done, o, nil)
		case ctx.Err() != nil:
			tell(r, Interrupted, nil, nil)
		default:
			tell(r, Failed, nil, err)
		}
	})
	return ctx.Err()
}

func (s *Study) digest(r *Run) (string, error) {
	c := s.Plan.Cells[r.cell].Config
	c.Seed = r.Seed
	return configs.Digest(c)
}

func (s *Study) execute(ctx context.Context, r *Run) (*Outcome, error) {
	c := s.Plan.Cells[r.cell].Config
	c.Seed = r.Seed
	if err := os.MkdirAll(r.Dir, 0o755); err != nil {
		return nil, err
	}
	start := s.Now()
	from, done := int64(-1), int64(0)
	steps, err := s.Runner.Train(ctx, r.Dir, c, func(steps int64) {
		if from < 0 {
			from = steps
		}
		if steps > done && s.OnSteps != nil {
			s.OnSteps(steps - done)
		}
		done = max(done, steps)
	})
	if err == nil {
		err = ctx.Err()
	}
	if err != nil {
		return nil, err
	}
	o, err := s.outcome(ctx, r.Dir, c)
	if err != nil {
		return nil, fmt.Errorf("evaluate: %w", err)
	}
	if o.ConfigSHA256, err = s.digest(r); err != nil {
		return nil, err
	}
	o.EnvSteps = steps
	if took := s.Now().Sub(start).Seconds(); took > 0 && from >= 0 {
		o.StepsPerSecond = performance.Number(float64(steps-from) / took)
	}
	return o, writeOutcome(r.Dir, o)
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
