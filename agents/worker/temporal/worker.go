package temporal

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"sync"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/log"
	sdk "go.temporal.io/sdk/temporal"
	sdkworker "go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/onnxrl/onnxrl/agents/run"
	"github.com/onnxrl/onnxrl/agents/train"
	"github.com/onnxrl/onnxrl/agents/worker"
	"github.com/onnxrl/onnxrl/runtime/objects"
)

// WorkerOptions say what a [Worker] does.
type WorkerOptions struct {
	Address Address
	// Queues are those that are served, beside that of the address where there are none.
	Queues []string
	// Do carries tasks out, as many at once as Slots.
	Do run.Executor
	// Hello is what this process says of itself.
	Hello worker.Hello
	// Dir is where run directories are while they are trained; empty for a temporary one.
	Dir string
	// Cache keeps what was fetched; nil fetches it again.
	Cache *objects.Cache
	// Log, unless nil, is where Temporal's client logs.
	Log log.Logger
	// Save is how often the run directory of an interval is saved; 0 is half a minute. Beat is how
	// often it says that it goes on, at least; 0 is a second. A program with many tasks says what
	// is often enough.
	Save, Beat time.Duration
	// Rest is how long nothing is taken instead of an interval that has failed because the disk is
	// full; 0 is 10 seconds.
	Rest time.Duration
}

// Worker carries out tasks.
type Worker struct {
	o      WorkerOptions
	client client.Client
	list   []sdkworker.Worker
	mu     sync.Mutex
	stores map[string]*objects.Store
}

// NewWorker connects to a server. Close it after use.
func NewWorker(o WorkerOptions) (*Worker, error) {
	if o.Save == 0 {
		o.Save = 30 * time.Second
	}
	if o.Beat == 0 {
		o.Beat = defaultBeat
	}
	if o.Rest == 0 {
		o.Rest = 10 * time.Second
	}
	if len(o.Queues) == 0 {
		o.Queues = []string{o.Address.Queue}
	}
	c, err := o.Address.dial(o.Log)
	if err != nil {
		return nil, err
	}
	w := &Worker{o: o, client: c, stores: map[string]*objects.Store{}}
	for _, queue := range o.Queues {
		one := sdkworker.New(c, queue, sdkworker.Options{
			Identity:                           identity(o.Hello),
			MaxConcurrentActivityExecutionSize: o.Do.Slots(), DefaultHeartbeatThrottleInterval: o.Beat, MaxHeartbeatThrottleInterval: o.Beat,
			// A machine that trains is busy: a second, which is the default, is no sign of a
			// deadlock.
			DeadlockDetectionTimeout: time.Minute,
			WorkerStopTimeout:        20 * time.Second, DisableRegistrationAliasing: true,
		})
		one.RegisterWorkflowWithOptions(Task, workflow.RegisterOptions{Name: taskName})
		one.RegisterActivityWithOptions(w.interval, activity.RegisterOptions{Name: activityName})
		w.list = append(w.list, one)
	}
	return w, nil
}

// identity is what the server calls a worker: its process, and after a space what it is.
func identity(h worker.Hello) string {
	host, _ := os.Hostname()
	return fmt.Sprintf("%d@%s %s", os.Getpid(), host, h.Kind())
}

// defaultBeat is how often an interval says that it goes on, and how often that is asked for.
const defaultBeat = time.Second

// Run serves until ctx ends. Intervals that are going on are handed back then, with what they have
// saved.
func (w *Worker) Run(ctx context.Context) error {
	// The server is asked before anything is polled for, so that what is wrong is said.
	if _, err := w.client.CheckHealth(ctx, &client.CheckHealthRequest{}); err != nil {
		return fmt.Errorf("%v: %w", w.o.Address, err)
	}
	for i, one := range w.list {
		if err := one.Start(); err != nil {
			for _, other := range w.list[:i] {
				other.Stop()
			}
			return fmt.Errorf("%v, queue %s: %w", w.o.Address, w.o.Queues[i], err)
		}
	}
	<-ctx.Done()
	var all sync.WaitGroup
	for _, one := range w.list {
		all.Go(one.Stop)
	}
	all.Wait()
	return nil
}

// Close frees what the worker has opened.
func (w *Worker) Close() error {
	w.client.Close()
	w.mu.Lock()
	defer w.mu.Unlock()
	var errs []error
	for _, s := range w.stores {
		errs = append(errs, s.Close())
	}
	return errors.Join(errs...)
}

// store opens storage once.
func (w *Worker) store(ctx context.Context, url string) (*objects.Store, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if s := w.stores[url]; s != nil {
		return s, nil
	}
	s, err := objects.Open(ctx, url, objects.Options{Cache: w.o.Cache})
	if err == nil {
		w.stores[url] = s
	}
	return s, err
}

// pulse is what an interval says while it goes on.
type pulse struct {
	Progress    *train.Progress `json:"progress,omitempty"`
	Evaluations []evaluation    `json:"evaluations,omitempty"`
	// Saved is the run directory as it was saved last.
	Saved objects.Digest `json:"saved,omitempty"`
}

// interval is the activity. What the training itself has to say of its end is a result; errors are
// of the worker, its disk or the storage, and another attempt may do better: on another machine,
// where this one's disk is full, for which this one takes nothing else for a while.
func (w *Worker) interval(ctx context.Context, in input) (output, error) {
	out, err := w.carryOut(ctx, in)
	if worker.IsDiskFull(err) {
		select {
		case <-time.After(w.o.Rest):
		case <-ctx.Done():
		case <-activity.GetWorkerStopChannel(ctx):
		}
	}
	return out, err
}

func (w *Worker) carryOut(ctx context.Context, in input) (out output, err error) {
	host, _ := os.Hostname()
	out.Worker = fmt.Sprintf("%s, process %d", host, os.Getpid())
	if out.Differs, err = in.Hello.Fits(w.o.Hello); err != nil {
		return out, err
	}
	if in.Strict && out.Differs != "" {
		return out, errors.New(out.Differs)
	}
	store, err := w.store(ctx, in.Objects)
	if err != nil {
		return out, err
	}
	scratch, err := os.MkdirTemp(w.o.Dir, "onnxrl-interval-")
	if err != nil {
		return out, err
	}
	defer os.RemoveAll(scratch)
	a := &attempt{store: store, dir: filepath.Join(scratch, "run"), save: w.o.Save, kept: in.Job.Dir != "", saved: time.Now()}
	if activity.HasHeartbeatDetails(ctx) {
		if err := activity.GetHeartbeatDetails(ctx, &a.pulse); err != nil {
			return out, err
		}
	}
	if a.pulse.Saved == "" {
		a.pulse.Saved = in.Saved
	}
	// While trees are moved it lives, too.
	beating, quiet := context.WithCancel(ctx)
	defer quiet()
	go a.beat(beating, max(w.o.Beat, in.Beat))
	j := in.Job
	if in.Checkpoint != "" {
		j.Continues, j.Checkpoint = j.Checkpoint, filepath.Join(scratch, "checkpoint")
		if err := store.GetTree(ctx, in.Checkpoint, j.Checkpoint); err != nil {
			return out, a.stopped(ctx, &out, err)
		}
	}
	if a.kept {
		if j.Dir = a.dir; a.pulse.Saved != "" {
			if err := store.GetTree(ctx, a.pulse.Saved, a.dir); err != nil {
				return out, a.stopped(ctx, &out, err)
			}
		}
	}
	// The worker that ends hands back what it has.
	training, stop := context.WithCancel(ctx)
	defer stop()
	leaving := activity.GetWorkerStopChannel(ctx)
	go func() {
		select {
		case <-leaving:
			stop()
		case <-training.Done():
		}
	}()
	out.Result, err = w.o.Do.Do(training, j, run.Hooks{Progress: func(_ *run.Run, p train.Progress) { a.progress(ctx, p) }, Evaluated: a.evaluated})
	out.Evaluations, out.Progress = a.said()
	switch {
	case err != nil && ctx.Err() != nil:
		return out, a.stopped(ctx, &out, err)
	case err != nil && training.Err() != nil:
		if err := a.put(context.WithoutCancel(ctx)); err != nil {
			return out, err
		}
		return out, sdk.NewApplicationErrorWithOptions("the worker ends", "worker", sdk.ApplicationErrorOptions{NextRetryDelay: 10 * time.Millisecond})
	case worker.IsDiskFull(err):
		return out, err
	case err != nil:
		out.Failure = worker.FailureOf(err)
		return out, nil
	}
	out.Result.Dir = in.Job.Dir
	if a.kept {
		if out.Tree, err = store.PutTree(ctx, a.dir); err != nil {
			return out, err
		}
	}
	return out, nil
}

// attempt is an interval in one worker.
type attempt struct {
	store *objects.Store
	dir   string
	save  time.Duration
	// kept says that the interval has a directory.
	kept  bool
	saved time.Time

	mu    sync.Mutex
	pulse pulse
}

// beat says again and again that the interval goes on, until ctx ends. A short one says nothing:
// for the server each time is a write.
func (a *attempt) beat(ctx context.Context, every time.Duration) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		a.mu.Lock()
		p := a.pulse
		a.mu.Unlock()
		activity.RecordHeartbeat(ctx, p)
	}
}

// progress notes how far the interval has come, and saves it now and then: between two learner
// steps, when nobody writes.
func (a *attempt) progress(ctx context.Context, p train.Progress) {
	p.Metrics = maps.Clone(p.Metrics) // The next learner step overwrites them.
	a.mu.Lock()
	a.pulse.Progress = &p
	a.mu.Unlock()
	if a.kept && time.Since(a.saved) >= a.save && run.Holds(a.dir) {
		_ = a.put(ctx) // A state that cannot be saved now is saved later, or trained again.
	}
}

// put saves the run directory.
func (a *attempt) put(ctx context.Context) error {
	if !a.kept || !run.Holds(a.dir) {
		return nil
	}
	d, err := a.store.PutTree(ctx, a.dir)
	if a.saved = time.Now(); err != nil {
		return err
	}
	a.mu.Lock()
	a.pulse.Saved = d
	p := a.pulse
	a.mu.Unlock()
	activity.RecordHeartbeat(ctx, p)
	return nil
}

func (a *attempt) evaluated(_ *run.Run, at int64, m map[string]float64) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, e := range a.pulse.Evaluations {
		if e.EnvSteps == at {
			return nil // By an earlier attempt.
		}
	}
	a.pulse.Evaluations = append(a.pulse.Evaluations[:len(a.pulse.Evaluations):len(a.pulse.Evaluations)], evaluation{EnvSteps: at, Metrics: m})
	return nil
}

// said is what the interval has said.
func (a *attempt) said() ([]evaluation, *train.Progress) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.pulse.Evaluations, a.pulse.Progress
}

// stopped is what comes of an interval that was to stop; of one that was not, its error.
func (a *attempt) stopped(ctx context.Context, out *output, err error) error {
	if ctx.Err() == nil {
		return err
	}
	if err := a.put(context.WithoutCancel(ctx)); err != nil {
		return err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	out.Stopped, out.Saved = true, a.pulse.Saved
	return nil
}
