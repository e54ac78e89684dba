package temporal

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	enums "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/log"
	sdk "go.temporal.io/sdk/temporal"

	"github.com/onnxrl/onnxrl/agents/run"
	"github.com/onnxrl/onnxrl/agents/worker"
	"github.com/onnxrl/onnxrl/agents/worker/capacity"
	"github.com/onnxrl/onnxrl/runtime/objects"
)

// ExecutorOptions say how tasks are handed over.
type ExecutorOptions struct {
	Address Address
	// Hello is what this process would say of itself; workers are to fit.
	Hello worker.Hello
	// Slots is how many tasks are handed over at once; 0 is 1024.
	Slots int
	// Cache keeps what was fetched; nil fetches it again.
	Cache *objects.Cache
	Log   log.Logger
	// Note, unless nil, receives messages for the user, each once: that nobody serves the queue.
	Note func(text string)
	// Grace is how long tasks may take to save after they were asked to stop; 0 is 25 seconds.
	Grace time.Duration
	// Beat is how often the server is asked how far tasks are; 0 is a second. Silence is how long a
	// worker may say nothing before it counts as lost; 0 is 20 seconds. With more than some 50
	// tasks at once both are longer, see capacity.Pace.
	Beat, Silence time.Duration
	// Unfit is after how long tasks end with an error where only workers serve the queue that may
	// not take them; 0 is 30 seconds.
	Unfit time.Duration
}

// Executor hands tasks to workers through a Temporal server.
type Executor struct {
	o      ExecutorOptions
	client client.Client
	store  *objects.Store
	slots  chan struct{}
	// ctx ends with the executor.
	ctx   context.Context
	close context.CancelFunc
	polls sync.WaitGroup

	mu     sync.Mutex
	said   map[string]bool
	groups map[string]*following
	closed bool
	// unfitSince is since when only workers serve the queue that may not take tasks, unfitErr what
	// gaveUp is closed with.
	unfitSince time.Time
	unfitErr   error
	gaveUp     chan struct{}
}

var _ run.Executor = (*Executor)(nil)

// NewExecutor opens the storage and connects to the server, which is asked whether it is there.
// Close it after use.
func NewExecutor(ctx context.Context, o ExecutorOptions) (_ *Executor, err error) {
	if o.Address.Objects == "" {
		return nil, fmt.Errorf("%v: the parameter objects is missing: the URL of storage that this program and its workers reach, such as s3://BUCKET/PREFIX, or file:///DIR on one machine", o.Address)
	}
	if o.Slots == 0 {
		o.Slots = 1024
	}
	if o.Beat == 0 {
		o.Beat = defaultBeat
	}
	if o.Unfit == 0 {
		o.Unfit = 30 * time.Second
	}
	if o.Grace == 0 {
		o.Grace = 25 * time.Second
	}
	e := &Executor{o: o, slots: make(chan struct{}, o.Slots), said: map[string]bool{}, groups: map[string]*following{}, gaveUp: make(chan struct{})}
	if e.store, err = objects.Open(ctx, o.Address.Objects, objects.Options{Cache: o.Cache, Parallel: capacity.Transfers}); err != nil {
		return nil, err
	}
	if e.client, err = o.Address.dial(o.Log); err != nil {
		return nil, errors.Join(err, e.store.Close())
	}
	e.ctx, e.close = context.WithCancel(context.Background())
	check, cancel := context.WithTimeout(ctx, connecting)
	defer cancel()
	if _, err := e.client.CheckHealth(check, &client.CheckHealthRequest{}); err != nil {
		return nil, errors.Join(fmt.Errorf("%v: %w", o.Address, err), e.Close())
	}
	return e, nil
}

// connecting is how long a server may take to answer at first, and patience how long nobody may
// serve a queue before that is said.
const (
	connecting = 10 * time.Second
	patience   = 5 * time.Second
)

// Slots implements run.Executor.
func (e *Executor) Slots() int { return e.o.Slots }

// Do implements run.Executor. The run directory is fetched when the task has ended, and what was
// saved when it was stopped.
func (e *Executor) Do(ctx context.Context, j run.Job, h run.Hooks) (r run.Result, err error) {
	select {
	case e.slots <- struct{}{}:
		defer func() { <-e.slots }()
	case <-ctx.Done():
		return r, ctx.Err()
	}
	in, err := e.input(ctx, j)
	if err != nil {
		return r, err
	}
	f, err := e.follow(j.Group)
	if err != nil {
		return r, err
	}
	if f.isCancelled() {
		return r, cancelledError(j)
	}
	in.Paused = f.isPaused()
	// As many as are handed over with this one.
	in.Beat, in.Silence = capacity.Pace(e.o.Beat, e.o.Silence, len(e.slots))
	id := f.id(in.Key)
	watch := f.watch(id)
	defer f.forget(id)
	done := make(chan answer, 1)
	waiting, leave := context.WithCancel(context.WithoutCancel(ctx))
	defer leave()
	go func() {
		var a answer
		a.out, a.err = e.train(waiting, f, id, in)
		done <- a
	}()
	hooks := &told{h: h, reached: -1, judged: -1}
	cancelled := ctx.Done()
	var late <-chan time.Time
	stop := func() {
		if late == nil {
			late = time.After(e.o.Grace + in.Beat) // It hears of it when it beats.
			go e.cancel(id)
		}
	}
	for {
		select {
		case p := <-watch:
			if hooks.pulse(p) != nil {
				stop()
			}
		case <-e.gaveUp:
			return r, fmt.Errorf("%s: %w", in.Job.ID, e.unfitErr)
		case <-cancelled:
			cancelled = nil
			stop()
		case <-late:
			if hooks.refused != nil {
				return r, hooks.refused
			}
			return r, ctx.Err() // Workers go on; the task is found again by its key.
		case a := <-done:
			if a.err == nil {
				hooks.pulse(pulse{Evaluations: a.out.Evaluations, Progress: a.out.Progress})
			}
			return e.ended(ctx, in, a, hooks)
		}
	}
}

// answer is what has come of a task.
type answer struct {
	out output
	err error
}

// ended makes of an answer what Do returns.
func (e *Executor) ended(ctx context.Context, in input, a answer, hooks *told) (r run.Result, err error) {
	whole := context.WithoutCancel(ctx)
	switch {
	case hooks.refused != nil:
		return r, hooks.refused
	case a.err != nil && ctx.Err() != nil:
		return r, ctx.Err()
	case a.err != nil:
		return r, fmt.Errorf("%v, %s: %w", e.o.Address, in.Job.ID, a.err)
	}
	if a.out.Differs != "" {
		e.note(a.out.Differs)
	}
	switch {
	case a.out.Stopped:
		if a.out.Saved != "" {
			if err := e.fetch(whole, a.out.Saved, in.Job.Dir); err != nil {
				return r, err
			}
		}
		if err := ctx.Err(); err != nil {
			return r, err
		}
		return r, cancelledError(in.Job)
	case a.out.Failure != nil:
		return r, a.out.Failure.Err()
	case a.out.Tree != "":
		if err := e.fetch(whole, a.out.Tree, in.Job.Dir); err != nil {
			return r, err
		}
	}
	return a.out.Result, nil
}

func cancelledError(j run.Job) error {
	return fmt.Errorf("%s was cancelled by somebody else: %w", j.ID, context.Canceled)
}

// fetch makes a directory what a tree has.
func (e *Executor) fetch(ctx context.Context, tree objects.Digest, dir string) error {
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return err
	}
	came, old := dir+".incoming", dir+".outgoing"
	if err := errors.Join(os.RemoveAll(came), os.RemoveAll(old)); err != nil {
		return err
	}
	if err := e.store.GetTree(ctx, tree, came); err != nil {
		return err
	}
	if err := os.Rename(dir, old); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return errors.Join(os.Rename(came, dir), os.RemoveAll(old))
}

// input is a task, with what it needs in the storage.
func (e *Executor) input(ctx context.Context, j run.Job) (in input, err error) {
	in = input{Job: j, Hello: e.o.Hello, Strict: e.o.Address.Strict, Objects: e.o.Address.Objects}
	if j.Checkpoint != "" {
		if in.Checkpoint, err = e.store.PutTree(ctx, j.Checkpoint); err != nil {
			return in, fmt.Errorf("%s: %w", j.Checkpoint, err)
		}
	}
	if j.Dir != "" && run.Holds(j.Dir) {
		if in.Saved, err = e.store.PutTree(ctx, j.Dir); err != nil {
			return in, fmt.Errorf("%s: %w", j.Dir, err)
		}
	}
	// The result of the task does not depend on what was saved of it, nor on where it is trained.
	what := in
	what.Saved, what.Hello = "", worker.Hello{}
	text, err := json.Marshal(what)
	if err != nil {
		return in, err
	}
	sum := sha256.Sum256(text)
	in.Key = j.ID + "@" + hex.EncodeToString(sum[:6])
	return in, nil
}

// train hands a task over and waits for what comes of it, through everything that the server may do
// meanwhile. One that was handed over before goes on, and what has come of it is what comes of it
// now, unless that was to be stopped. That is looked at where the directory of the group was found.
func (e *Executor) train(ctx context.Context, f *following, id string, in input) (out output, err error) {
	found := f.found
	var task client.WorkflowRun
	for wait := 100 * time.Millisecond; ; wait = min(2*wait, 5*time.Second) {
		if err = nil; found {
			if err = e.stopping(ctx, id); err == nil {
				found = false
			}
		}
		if err == nil && task == nil {
			task, err = e.client.ExecuteWorkflow(ctx, client.StartWorkflowOptions{
				ID: id, TaskQueue: e.o.Address.Queue,
				WorkflowIDConflictPolicy: enums.WORKFLOW_ID_CONFLICT_POLICY_USE_EXISTING, WorkflowIDReusePolicy: enums.WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE_FAILED_ONLY,
			}, taskName, in)
			// It may not have been there yet when the others were told. An error is that it has
			// ended.
			if err == nil && !in.Paused && f.isPaused() {
				_ = e.client.SignalWorkflow(ctx, id, "", pauseName, nil)
			}
			if err == nil && f.isCancelled() {
				_ = e.client.CancelWorkflow(ctx, id, "")
			}
		}
		if err == nil {
			wait = 100 * time.Millisecond
			if err = task.Get(ctx, &out); err == nil {
				return out, nil
			}
		}
		var cancelled *sdk.CanceledError
		var gone *serviceerror.NotFound
		switch {
		case ctx.Err() != nil:
			return out, ctx.Err()
		case errors.As(err, &cancelled):
			out = output{Stopped: true}
			return out, cancelled.Details(&out.Saved)
		case errors.As(err, &gone):
			task = nil // Somebody has deleted it.
		case isDown(err):
			e.note(fmt.Sprintf("%v does not answer (%v); it is tried again", e.o.Address, err))
		default:
			return out, err
		}
		select {
		case <-ctx.Done():
			return out, ctx.Err()
		case <-time.After(wait):
		}
	}
}

// stopping waits for a task that was asked to stop by whoever handed it over before.
func (e *Executor) stopping(ctx context.Context, id string) error {
	d, err := e.client.DescribeWorkflowExecution(ctx, id, "")
	var missing *serviceerror.NotFound
	if errors.As(err, &missing) {
		return nil
	}
	if err != nil || d.GetWorkflowExecutionInfo().GetStatus() != enums.WORKFLOW_EXECUTION_STATUS_RUNNING || !d.GetWorkflowExtendedInfo().GetCancelRequested() {
		return err
	}
	err = e.client.GetWorkflow(ctx, id, d.GetWorkflowExecutionInfo().GetExecution().GetRunId()).Get(ctx, nil)
	if isDown(err) || ctx.Err() != nil {
		return err
	}
	return nil // However it has ended.
}

// isDown reports whether the server does not answer.
func isDown(err error) bool {
	var unavailable *serviceerror.Unavailable
	var late *serviceerror.DeadlineExceeded
	return errors.As(err, &unavailable) || errors.As(err, &late)
}

// cancel asks a task to stop. A server that does not answer is asked again for as long as it takes
// a task to be given up.
func (e *Executor) cancel(id string) {
	ctx, cancel := context.WithTimeout(e.ctx, e.o.Grace)
	defer cancel()
	for wait := 100 * time.Millisecond; e.client.CancelWorkflow(ctx, id, "") != nil && ctx.Err() == nil; wait *= 2 {
		select {
		case <-ctx.Done():
		case <-time.After(wait):
		}
	}
}

// note says what was not said yet.
func (e *Executor) note(text string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.o.Note != nil && !e.said[text] {
		e.said[text] = true
		e.o.Note(text)
	}
}

// Close disconnects.
func (e *Executor) Close() error {
	e.mu.Lock()
	closed := e.closed
	e.closed = true
	e.mu.Unlock()
	if closed {
		return nil
	}
	e.close()
	e.polls.Wait()
	e.client.Close()
	return e.store.Close()
}

// told are hooks that receive each thing once.
type told struct {
	h               run.Hooks
	reached, judged int64
	refused         error
}

// pulse tells what an interval has said, and returns what the program has refused.
func (t *told) pulse(p pulse) error {
	if t.refused != nil {
		return t.refused
	}
	if q := p.Progress; q != nil && q.EnvSteps >= t.reached {
		t.reached = q.EnvSteps
		if t.h.Progress != nil {
			t.h.Progress(nil, *q)
		}
	}
	for _, v := range p.Evaluations {
		if v.EnvSteps <= t.judged || t.h.Evaluated == nil {
			continue
		}
		t.judged = v.EnvSteps
		if t.refused = t.h.Evaluated(nil, v.EnvSteps, v.Metrics); t.refused != nil {
			return t.refused
		}
	}
	return nil
}
