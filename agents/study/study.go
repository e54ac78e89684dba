package study

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"sync"

	"github.com/onnxrl/onnxrl/agents/run"
)

// The states of a job.
const (
	Waiting     = "waiting"
	Running     = "running"
	Done        = "done"
	Failed      = "failed"
	Interrupted = "interrupted"
)

// Job is a part of a study: a run, which is one seed of a cell, or what is found out once others are
// done. O is what comes of it.
type Job[O any] struct {
	// Cell is the name of its cell, and Seed that of a run.
	Cell string
	Seed uint64
	// CellIndex and SeedIndex are their places in the study; SeedIndex is -1 of what is no run.
	CellIndex, SeedIndex int
	// Path is its directory, relative to the study's folder and with slashes.
	Path string
	// After are the jobs that are done before it begins.
	After []*Job[O]
	// Do carries it out. Without an outcome nothing is recorded.
	Do func(ctx context.Context) (*O, error)
	// Digest identifies what an outcome depends on: one that was recorded of anything else does not
	// count. Where it is nil Finished says whether there is nothing left to do.
	Digest   func() (string, error)
	Finished func() bool

	// State is one of the words above, Outcome is nil until the job is done, and Err says why it
	// failed.
	State   string
	Outcome *O
	Err     error
}

// Name says which job it is.
func (j *Job[O]) Name() string {
	if j.SeedIndex < 0 {
		return j.Cell
	}
	return fmt.Sprintf("%s, seed %d", j.Cell, j.Seed)
}

// RunPath is the path of a run in the directory of its cell.
func RunPath(cell string, seed uint64) string {
	return path.Join(cell, "seed-"+strconv.FormatUint(seed, 10))
}

// OutcomesFile has a line for each outcome of a study, of which the last one of a job counts.
const OutcomesFile = "outcomes.jsonl"

// outcome is a line of an OutcomesFile.
type outcome[O any] struct {
	Job     string `json:"job"`
	SHA256  string `json:"sha256"`
	Outcome *O     `json:"outcome"`
}

// Study is a plan being carried out in a folder.
type Study[O any] struct {
	Dir string
	// Parallel is the number of jobs at a time, at least 1. Results do not depend on it.
	Parallel int
	// OnJob, unless nil, is called when a job begins or ends, one call at a time. OnSteps is called
	// with env steps that were taken, by several goroutines at once.
	OnJob   func(j *Job[O])
	OnSteps func(n int64)

	document any
	cells    []Cell
	jobs     []*Job[O]
	ledger   Ledger
	log      *Log[outcome[O]]
	mu       sync.Mutex
}

// Open reads what the folder holds of a study of a document, without changing anything. Cells and
// seeds may have been added since; a cell whose experiment has changed is an error that says in
// what.
func (s *Study[O]) Open(document any, cells []Cell, jobs []*Job[O]) error {
	s.document, s.cells, s.jobs = document, cells, jobs
	if err := Compare(s.Dir, cells); err != nil {
		return err
	}
	return s.load()
}

// load finds out what is done.
func (s *Study[O]) load() (err error) {
	if s.log, err = OpenLog[outcome[O]](filepath.Join(s.Dir, OutcomesFile)); err != nil {
		return err
	}
	last := map[string]outcome[O]{}
	for _, o := range s.log.Records() {
		last[o.Job] = o
	}
	for _, j := range s.jobs {
		j.State, j.Outcome, j.Err = Waiting, nil, nil
		o, ok := last[j.Path]
		if !ok || j.Digest == nil {
			continue
		}
		digest, err := j.Digest()
		if err != nil {
			return err
		}
		if o.SHA256 == digest {
			j.State, j.Outcome = Done, o.Outcome
		}
	}
	for _, j := range s.jobs {
		if j.Finished != nil && j.Finished() {
			j.State = Done
		}
	}
	return nil
}

// Runs are the jobs that train, in their order.
func (s *Study[O]) Runs() (list []*Job[O]) {
	for _, j := range s.jobs {
		if j.SeedIndex >= 0 {
			list = append(list, j)
		}
	}
	return list
}

// JobDir is the directory of a job.
func (s *Study[O]) JobDir(j *Job[O]) string { return filepath.Join(s.Dir, filepath.FromSlash(j.Path)) }

// Rehearse has do find out what refuses a way of training, on its first cell, before anything is
// trained. Ways of which a job has begun are left out: they were rehearsed before that. The error
// names all that are refused.
func (s *Study[O]) Rehearse(ctx context.Context, do func(ctx context.Context, cell int) error) error {
	known := map[int]bool{}
	for _, j := range s.jobs {
		if _, err := os.Stat(s.JobDir(j)); err == nil || j.State == Done {
			known[s.cells[j.CellIndex].Way] = true
		}
	}
	var errs []error
	for i := range s.cells {
		c := &s.cells[i]
		if known[c.Way] {
			continue
		}
		known[c.Way] = true
		if err := do(ctx, i); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", c.Name, err))
		}
		if err := ctx.Err(); err != nil {
			return err
		}
	}
	return errors.Join(errs...)
}

// Begin makes the folder, takes its lock and records the plan.
func (s *Study[O]) Begin() error {
	if err := os.MkdirAll(s.Dir, 0o755); err != nil {
		return err
	}
	s.ledger.Dir = s.Dir
	if err := s.ledger.Lock(); err != nil {
		return err
	}
	// Another process may have resumed it since.
	if err := errors.Join(s.load(), Write(s.Dir, s.document, s.cells)); err != nil {
		return errors.Join(err, s.Close())
	}
	return nil
}

// Close releases the folder.
func (s *Study[O]) Close() error { return s.ledger.Close() }

// Execute carries out what is not done. A job that fails does not stop the others, but for those
// that come after it: its Err says why, and the next Execute tries it again. When ctx ends, running
// ones save their state, and the error is ctx's.
func (s *Study[O]) Execute(ctx context.Context) error {
	for _, j := range s.jobs {
		if j.State != Done {
			j.State, j.Err = Waiting, nil
		}
	}
	run.Work(s.Parallel, func() func() {
		j := s.next(ctx)
		if j == nil {
			return nil
		}
		return func() { s.carryOut(ctx, j) }
	})
	return ctx.Err()
}

// next is the first job that can begin, which begins; nil without any.
func (s *Study[O]) next(ctx context.Context) *Job[O] {
	s.mu.Lock()
	defer s.mu.Unlock()
	undone := func(j *Job[O]) bool { return j.State != Done }
	i := slices.IndexFunc(s.jobs, func(j *Job[O]) bool { return j.State == Waiting && !slices.ContainsFunc(j.After, undone) })
	if i < 0 || ctx.Err() != nil {
		return nil
	}
	s.tell(s.jobs[i], Running)
	return s.jobs[i]
}

// tell says in which state a job is now; s.mu is held.
func (s *Study[O]) tell(j *Job[O], state string) {
	j.State = state
	if s.OnJob != nil {
		s.OnJob(j)
	}
}

func (s *Study[O]) carryOut(ctx context.Context, j *Job[O]) {
	o, err := s.do(ctx, j)
	s.mu.Lock()
	defer s.mu.Unlock()
	if err == nil && o != nil {
		err = s.record(j, o)
	}
	switch {
	case err == nil:
		j.Outcome = o
		s.tell(j, Done)
	case ctx.Err() != nil:
		s.tell(j, Interrupted)
	default:
		j.Err = err
		s.tell(j, Failed)
	}
}

func (s *Study[O]) do(ctx context.Context, j *Job[O]) (*O, error) {
	if err := os.MkdirAll(s.JobDir(j), 0o755); err != nil {
		return nil, err
	}
	return j.Do(ctx)
}

func (s *Study[O]) record(j *Job[O], o *O) error {
	digest, err := j.Digest()
	if err != nil {
		return err
	}
	return s.log.Append(outcome[O]{j.Path, digest, o})
}

// Steps returns what a run tells of the env steps that it has reached, at its start and as they
// grow. It calls OnSteps with the new ones.
func (s *Study[O]) Steps() func(reached int64) {
	done := int64(0)
	return func(reached int64) {
		if reached > done && s.OnSteps != nil {
			s.OnSteps(reached - done)
		}
		done = max(done, reached)
	}
}

// RunReport is a run as reports have it. The JSON keys are stable.
type RunReport[O any] struct {
	Cell string `json:"cell"`
	Seed uint64 `json:"seed"`
	// Dir is relative to the study's folder.
	Dir     string `json:"dir"`
	State   string `json:"state"`
	Error   string `json:"error,omitempty"`
	Outcome *O     `json:"outcome,omitempty"`
}

// Reports describe the runs as they stand.
func (s *Study[O]) Reports() (list []RunReport[O]) {
	for _, j := range s.Runs() {
		r := RunReport[O]{Cell: j.Cell, Seed: j.Seed, Dir: j.Path, State: j.State, Outcome: j.Outcome}
		if j.Err != nil {
			r.Error = j.Err.Error()
		}
		list = append(list, r)
	}
	return list
}
