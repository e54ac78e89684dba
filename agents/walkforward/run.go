package walkforward

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"sync"

	"github.com/onnxrl/onnxrl/agents/experiment"
	"github.com/onnxrl/onnxrl/agents/population"
	"github.com/onnxrl/onnxrl/agents/run"
	"github.com/onnxrl/onnxrl/agents/study"
	"github.com/onnxrl/onnxrl/configs"
	"github.com/onnxrl/onnxrl/models/prefix"
	"github.com/onnxrl/onnxrl/runtime/atomicfile"
	"github.com/onnxrl/onnxrl/runtime/engine"
)

// Study is a plan being carried out in a folder.
type Study struct {
	Plan    *Plan
	Dir     string
	Trainer study.Trainer
	// Parallel is the number of runs at a time, at least 1. Results do not depend on it.
	Parallel int
	// OnRun, unless nil, is told of every run that has begun or ended, OnFold of every cell that
	// was judged, and OnSteps of env steps that were taken. They are called from several
	// goroutines.
	OnRun   func(r *Run)
	OnFold  func(c *Cell, o *Outcome, err error)
	OnSteps func(n int64)

	runs     []*Run
	outcomes []*Outcome // by cell, nil until it is judged
	errs     []error    // by cell, why it could not be judged
	lock     func() error
	mu       sync.Mutex
	// sessions are those of all runs' networks, and prefixes what frozen layers make of windows:
	// runs of a fold have them in common.
	sessions *engine.Shared
	prefixes prefix.Caches
}

// keptSessions is how many sessions that no run uses wait for the next.
const keptSessions = 32

// Run is one seed of a cell.
type Run struct {
	Cell  string
	Seed  uint64
	Dir   string
	State string
	// Err says why it failed.
	Err error

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

// cells are those of the plan as its record has them.
func (s *Study) cells() (list []study.Cell) {
	for _, c := range s.Plan.Cells {
		list = append(list, study.Cell{Name: c.Name, Dir: c.Dir, Config: c.Config, Whole: c.Population})
	}
	return list
}

// settle returns what an experiment means.
func (s *Study) settle(c experiment.Config) (experiment.Config, error) {
	return s.Trainer.Kinds.Settle(context.Background(), c)
}

// Open reads what the folder holds of the study, without changing anything. Folds, variants and
// seeds may have been added since; a cell whose experiment has changed is an error that says in
// what.
func (s *Study) Open() error {
	if err := study.Compare[Config](s.Dir, s.cells(), s.settle); err != nil {
		return err
	}
	s.runs, s.outcomes, s.errs = nil, make([]*Outcome, len(s.Plan.Cells)), make([]error, len(s.Plan.Cells))
	for i := range s.Plan.Cells {
		c := &s.Plan.Cells[i]
		digest, err := s.digest(c)
		if err != nil {
			return err
		}
		var o Outcome
		found, err := study.ReadJSON(filepath.Join(s.Dir, c.Dir, outcomeFile), &o)
		if err != nil {
			return err
		}
		// With other seeds, or as another ensemble, it is judged again.
		if found && o.SHA256 == digest {
			s.outcomes[i] = &o
		}
		for j, seed := range s.Plan.Seeds {
			r := &Run{Cell: c.Name, Seed: seed, Dir: s.seedDir(c, seed), State: Waiting, cell: i, seed: j}
			if s.outcomes[i] != nil {
				r.State = Done
			} else if _, err := os.Stat(filepath.Join(r.Dir, run.FinishedFile)); err == nil {
				r.State = Done
			}
			s.runs = append(s.runs, r)
		}
	}
	return nil
}

// digest is of what a cell's outcome depends on.
func (s *Study) digest(c *Cell) (string, error) {
	return configs.Digest(struct {
		Config    experiment.Config
		Seeds     []uint64
		Ensemble  Ensemble
		WarmStart string
		// It came later than outcomes.
		Population configs.Section `yaml:",omitempty"`
	}{c.Config, s.Plan.Seeds, s.Plan.Study.Ensemble, s.Plan.Study.WarmStart, c.Population})
}

// Runs lists the runs, cell by cell.
func (s *Study) Runs() []*Run { return s.runs }

// Judged counts the cells that are.
func (s *Study) Judged() (n int) {
	for _, o := range s.outcomes {
		if o != nil {
			n++
		}
	}
	return n
}

// Rehearse finds out what refuses a variant, on its first fold that is in the study, before anything
// is trained. Variants of which a run has begun are left out: they were rehearsed before that. The
// error names all that are refused.
func (s *Study) Rehearse(ctx context.Context) error {
	done := map[int]bool{}
	for _, r := range s.runs {
		if r.State == Done || run.Holds(r.Dir) || population.Holds(r.Dir) {
			done[s.Plan.Cells[r.cell].Variant] = true
		}
	}
	var errs []error
	for i := range s.Plan.Cells {
		c := &s.Plan.Cells[i]
		if done[c.Variant] {
			continue
		}
		done[c.Variant] = true
		if err := s.rehearse(ctx, c); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", c.Name, err))
		}
		if err := ctx.Err(); err != nil {
			return err
		}
	}
	return errors.Join(errs...)
}

func (s *Study) rehearse(ctx context.Context, c *Cell) (err error) {
	seed := s.Plan.Seeds[0]
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
}

// Begin makes the folder, takes its lock and records the plan.
func (s *Study) Begin() error {
	if err := os.MkdirAll(s.Dir, 0o755); err != nil {
		return err
	}
	var err error
	if s.lock, err = atomicfile.Lock(filepath.Join(s.Dir, ".lock")); err != nil {
		return fmt.Errorf("%s: %w", s.Dir, err)
	}
	if err := study.Write(s.Dir, s.Plan.Study, s.cells()); err != nil {
		return errors.Join(err, s.Close())
	}
	if o := &s.Trainer.Options; o.Engine != nil {
		s.sessions = engine.Share(o.Engine, keptSessions)
		o.Engine, o.Prefixes = s.sessions, &s.prefixes
	}
	return nil
}

// Close releases the folder.
func (s *Study) Close() error {
	if s.lock == nil {
		return nil
	}
	errs := []error{s.prefixes.Close()}
	if s.sessions != nil {
		errs = append(errs, s.sessions.Close())
	}
	errs = append(errs, s.lock())
	s.lock = nil
	return errors.Join(errs...)
}

// Execute trains and judges what is not finished: fold by fold, or where parameters begin with
// those of the fold before, seed by seed. What fails does not stop the others: the next Execute
// tries it again. When ctx ends, running ones save their state, and the error is ctx's.
func (s *Study) Execute(ctx context.Context) error {
	var chains [][]*Run
	for i, r := range s.runs {
		if s.Plan.Study.WarmStart != Last {
			chains = append(chains, []*Run{r})
			continue
		}
		// A chain for each variant and seed; the first fold's runs come first.
		width := len(s.Plan.Variants) * len(s.Plan.Seeds)
		if i < width {
			chains = append(chains, nil)
		}
		chains[i%width] = append(chains[i%width], r)
	}
	left := make([]int, len(s.Plan.Cells))
	for i := range left {
		left[i] = len(s.Plan.Seeds)
	}
	study.Parallel(s.Parallel, len(chains), func(i int) {
		for _, r := range chains[i] {
			if ctx.Err() != nil {
				return
			}
			if r.State != Done {
				s.tell(r, Running, nil)
				err := s.train(ctx, r)
				switch {
				case err == nil:
					s.tell(r, Done, nil)
				case ctx.Err() != nil:
					s.tell(r, Interrupted, nil)
					return
				default:
					s.tell(r, Failed, err)
					return // What would go on from here has nothing to begin with.
				}
			}
			s.mu.Lock()
			left[r.cell]--
			last := left[r.cell] == 0 && s.outcomes[r.cell] == nil
			s.mu.Unlock()
			if last {
				s.judgeCell(ctx, r.cell)
			}
		}
	})
	return ctx.Err()
}

func (s *Study) tell(r *Run, state string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r.State, r.Err = state, err
	if s.OnRun != nil {
		s.OnRun(r)
	}
}

// seedDir is the run directory of a seed of a cell.
func (s *Study) seedDir(c *Cell, seed uint64) string {
	return filepath.Join(s.Dir, c.Dir, "seed-"+strconv.FormatUint(seed, 10))
}

// seeded is a cell's experiment with a seed.
func (c *Cell) seeded(seed uint64) experiment.Config {
	e := c.Config
	e.Seed = seed
	return e
}

func (s *Study) train(ctx context.Context, r *Run) error {
	if err := os.MkdirAll(r.Dir, 0o755); err != nil {
		return err
	}
	c := &s.Plan.Cells[r.cell]
	if !c.Population.IsZero() {
		return s.trainPopulation(ctx, r)
	}
	t := s.Trainer
	if s.Plan.Study.WarmStart == Last && c.Fold > 0 {
		// Cells are fold by fold.
		before := s.Plan.Cells[r.cell-len(s.Plan.Variants)]
		t.Options.Init = run.Init{Ref: filepath.Join(s.Dir, before.Dir, filepath.Base(r.Dir))}
	}
	var done int64 = -1
	_, err := t.Train(ctx, r.Dir, c.seeded(r.Seed), func(steps int64) {
		if done >= 0 && steps > done && s.OnSteps != nil {
			s.OnSteps(steps - done)
		}
		done = max(done, steps)
	})
	if err == nil {
		err = ctx.Err()
	}
	return err
}

func (s *Study) judgeCell(ctx context.Context, i int) {
	c := &s.Plan.Cells[i]
	o, err := s.judge(ctx, c)
	if err == nil {
		err = study.WriteJSON(filepath.Join(s.Dir, c.Dir, outcomeFile), o)
	}
	if ctx.Err() != nil && err != nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.errs[i] = err; err == nil {
		s.outcomes[i] = o
	}
	if s.OnFold != nil {
		s.OnFold(c, o, err)
	}
}
