package tune

import (
	"context"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/onnxrl/onnxrl/agents/run"
	"github.com/onnxrl/onnxrl/agents/study"
	"github.com/onnxrl/onnxrl/configs"
	"github.com/onnxrl/onnxrl/export/report/performance"
	"github.com/onnxrl/onnxrl/runtime/rng"
)

// Files of a search's directory.
const (
	LogFile = "trials.jsonl"
	CSVFile = "trials.csv"
)

// ErrPruned is what report returns to an [Objective] whose trial is not worth going on with; the
// objective returns it, or an error that wraps it.
var ErrPruned = errors.New("the trial is pruned")

// Objective tries one set of values. After each evaluation it calls report with the metric and
// returns what that returns, unless it is nil; the last value that is reported is the trial's. When
// ctx ends it returns ctx's error. Any other error fails the trial and not the search. Objectives
// of several trials run at once where Config.Parallel says so.
type Objective func(ctx context.Context, t Trial, report func(value float64) error) error

// Options say what is searched for and where.
type Options struct {
	Config Config
	Seed   uint64
	// Dir is where the log is kept; it must exist.
	Dir string
	// Changed, unless nil, is called whenever a trial has begun, been evaluated or ended, one call
	// at a time.
	Changed func(t Trial)
	// Now is the clock behind Trial.Seconds; parallel trials call it side by side.
	Now func() time.Time
}

// Study is a search.
type Study struct {
	o      Options
	ledger study.Ledger
	log    *study.Log[Trial]
	key    rng.Key
	mu     sync.Mutex
	// trials are in the order of their numbers.
	trials []Trial
}

// Open begins a search, or goes on with the one whose log the directory holds: finished trials are
// kept, and those that were running begin again. A log of more than Config.Trials is an error. A second Open of
// the directory fails with atomicfile.ErrLocked. Close it after use.
func Open(o Options) (_ *Study, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("open search: %w", err)
		}
	}()
	if err := configs.Validate(o.Config); err != nil {
		return nil, err
	}
	if len(o.Config.Space) == 0 {
		return nil, errors.New("the search space tune.space is empty")
	}
	s := &Study{o: o, ledger: study.Ledger{Dir: o.Dir}, key: rng.New(o.Seed).Split("tune")}
	if err := s.ledger.Lock(); err != nil {
		return nil, err
	}
	if err := s.load(filepath.Join(o.Dir, LogFile)); err != nil {
		return nil, errors.Join(err, s.ledger.Close())
	}
	return s, nil
}

// load reads the log, which must be of such a search.
func (s *Study) load(path string) (err error) {
	if s.log, err = study.OpenLog[Trial](path); err != nil {
		return err
	}
	for i, t := range s.log.Records() {
		n := len(s.trials)
		err := s.o.Config.Space.check(t.Values)
		switch {
		case err != nil:
		case t.Number >= s.o.Config.Trials:
			return fmt.Errorf("%s has a trial %d already, and tune.trials is %d", path, t.Number, s.o.Config.Trials)
		case t.Number < 0 || t.Number > n || t.Number < n && s.trials[t.Number].finished():
			err = fmt.Errorf("it is number %d, expected %d, or one that is running", t.Number, n)
		case !slices.Contains([]string{Running, Complete, Pruned, Failed}, t.State):
			err = fmt.Errorf("its state is %q", t.State)
		}
		if err != nil {
			return fmt.Errorf("%s:%d: the trial does not fit: %w", path, i+1, err)
		}
		if t.Number == n {
			s.trials = append(s.trials, t)
		}
		s.trials[t.Number] = t
	}
	return nil
}

// Close ends the use of the directory.
func (s *Study) Close() error { return s.ledger.Close() }

// Trials returns copies of all trials, in the order of their numbers.
func (s *Study) Trials() []Trial {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.trials)
}

// Run tries until there are Config.Trials finished trials, or ctx ends, which is ctx's error;
// trials that were running then begin again with the next Run. What trial n tries depends on the
// seed, on n, and on the trials that had finished when it began.
func (s *Study) Run(ctx context.Context, f Objective) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	run.Work(s.o.Config.Parallel, func() func() {
		t, ok, err := s.next(ctx)
		if err != nil {
			cancel(err)
		}
		if !ok {
			return nil
		}
		return func() {
			if err := s.try(ctx, t, f); err != nil {
				cancel(err)
			}
		}
	})
	if err := context.Cause(ctx); err != nil {
		return err
	}
	return s.check()
}

// check returns an error when no trial has told anything.
func (s *Study) check() error {
	for _, t := range s.trials {
		if t.State == Complete || t.State == Pruned {
			return nil
		}
	}
	return fmt.Errorf("all %d trials failed; the first one: %s", len(s.trials), s.trials[0].Error)
}

// next returns a trial to run: one that was interrupted, or a new one.
func (s *Study) next(ctx context.Context) (t Trial, ok bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if ctx.Err() != nil {
		return t, false, nil
	}
	for i := range s.trials {
		if p := &s.trials[i]; !p.finished() && !p.claimed {
			p.claimed, p.Intermediate = true, []performance.Number{}
			return *p, true, nil
		}
	}
	n := len(s.trials)
	if n >= s.o.Config.Trials {
		return t, false, nil
	}
	values := sample(s.o.Config.Space, s.o.Config, s.trials, s.key.Split("trial", n).Stream())
	t = Trial{Number: n, State: Running, Values: values, Value: performance.Number(math.NaN()), Intermediate: []performance.Number{}, claimed: true}
	if err := s.log.Append(t); err != nil {
		return t, false, fmt.Errorf("write the log: %w", err)
	}
	s.trials = append(s.trials, t)
	s.changed(t)
	return t, true, nil
}

// try runs a trial to its end. The error is ctx's, or one of the log.
func (s *Study) try(ctx context.Context, t Trial, f Objective) error {
	began := s.o.Now()
	err := f(ctx, t, func(value float64) error { return s.report(t.Number, value) })
	s.mu.Lock()
	defer s.mu.Unlock()
	p := &s.trials[t.Number]
	p.Seconds = s.o.Now().Sub(began).Seconds()
	switch {
	case errors.Is(err, ErrPruned):
		p.State = Pruned
	case err == nil && !p.Value.Defined():
		p.State, p.Error = Failed, "the metric of its last evaluation is undefined, as the Sharpe ratio of a policy that never trades is, or there was none"
	case err == nil:
		p.State = Complete
	case ctx.Err() != nil:
		p.claimed = false
		return ctx.Err()
	default:
		p.State, p.Error = Failed, err.Error()
	}
	if err := s.log.Append(*p); err != nil {
		return fmt.Errorf("write the log: %w", err)
	}
	s.changed(*p)
	return nil
}

// report takes a value of a running trial, and returns ErrPruned when it is not worth going on.
func (s *Study) report(n int, value float64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := &s.trials[n]
	p.Intermediate, p.Value = append(p.Intermediate, performance.Number(value)), performance.Number(value)
	s.changed(*p)
	if s.o.Config.Pruner == Median && prunes(s.trials, *p, s.o.Config) {
		return ErrPruned
	}
	return nil
}

func (s *Study) changed(t Trial) {
	if s.o.Changed != nil {
		s.o.Changed(t)
	}
}

// prunes is the median stopping rule (Golovin et al. 2017, "Google Vizier", section 3.2.2): the
// best value so far is worse than the median of what completed trials had at as many evaluations. A
// trial whose values are no numbers is worse than any.
func prunes(all []Trial, t Trial, c Config) bool {
	sign := 1.0
	if c.Direction == Maximize {
		sign = -1
	}
	at := len(t.Intermediate) - 1
	var others []float64
	complete := 0
	for _, o := range all {
		if o.State != Complete {
			continue
		}
		complete++
		if at < len(o.Intermediate) && o.Intermediate[at].Defined() {
			others = append(others, sign*float64(o.Intermediate[at]))
		}
	}
	if complete < c.PruneAfter || at < c.PruneWarmup || len(others) == 0 {
		return false
	}
	best := math.Inf(1)
	for _, v := range t.Intermediate {
		if v.Defined() {
			best = min(best, sign*float64(v))
		}
	}
	slices.Sort(others)
	median := (others[(len(others)-1)/2] + others[len(others)/2]) / 2
	return best > median
}

// Best returns the complete trial with the best value, the first of equals; ok is false when none
// is complete.
func (s *Study) Best() (best Trial, ok bool) {
	for _, t := range ranked(s.Trials(), s.o.Config.Direction) {
		if t.State == Complete {
			return t, true
		}
	}
	return best, false
}

// ranked returns trials from the best to the worst: complete ones by their value, pruned ones by
// how far they came, then failed ones and those that are running.
func ranked(list []Trial, direction string) []Trial {
	byNumber := map[int]Trial{}
	for _, t := range list {
		byNumber[t.Number] = t
	}
	var out []Trial
	for _, o := range observations(list, direction) {
		out = append(out, byNumber[o.number])
	}
	for _, t := range list {
		if !t.finished() {
			out = append(out, t)
		}
	}
	return out
}
