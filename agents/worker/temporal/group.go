package temporal

import (
	"cmp"
	"fmt"
	"time"

	sdk "go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/onnxrl/onnxrl/agents/run"
	"github.com/onnxrl/onnxrl/agents/worker"
	"github.com/onnxrl/onnxrl/runtime/objects"
)

// Names in Temporal's histories. A change of the workflow that an older history could not be
// replayed with is guarded by workflow.GetVersion, or gets another name.
const (
	groupName    = "onnxrl-group-1"
	activityName = "onnxrl-interval-1"
	trainName    = "train"
	cancelName   = "cancel"
	pauseName    = "pause"
	resumeName   = "resume"
	closeName    = "close"
	statusName   = "status"
)

// How the workflow treats intervals.
const (
	// silence is how long a worker may say nothing of an interval before it counts as lost, where
	// the program does not say it.
	silence = 20 * time.Second
	// longest bounds an interval in one worker.
	longest = 30 * 24 * time.Hour
	// attempts is how often an interval is begun, each time after a longer while.
	attempts = 100
	// forgotten is how long a group without tasks waits for more.
	forgotten = time.Hour
	// longHistory is the number of events at which the group is continued as new as soon as no task
	// goes on, and tooLong the one from which no task is accepted before it was.
	longHistory, tooLong = 2_000, 20_000
)

// input is a task as it is in the history of a group.
type input struct {
	// Key says which task of the group it is: the same for a task that is sent again.
	Key  string   `json:"key"`
	Task run.Task `json:"task"`
	// Hello is what the program is that results are for; a worker that does not fit refuses.
	Hello  worker.Hello `json:"hello"`
	Strict bool         `json:"strict,omitempty"`
	// Silence is how long a worker may say nothing before it counts as lost; 0 is silence.
	Silence time.Duration `json:"silence,omitempty"`
	// Objects is the storage that the trees are in: the checkpoint to go on from, and what an
	// earlier attempt has saved.
	Objects    string         `json:"objects"`
	Checkpoint objects.Digest `json:"checkpoint,omitempty"`
	Saved      objects.Digest `json:"saved,omitempty"`
}

// output is what has come of an interval.
type output struct {
	Interval run.IntervalResult `json:"interval"`
	Failure  *worker.Failure    `json:"failure,omitempty"`
	// Tree is the run directory, of one that was stopped Saved.
	Tree  objects.Digest `json:"tree,omitempty"`
	Saved objects.Digest `json:"saved,omitempty"`
	// Stopped says that the interval was to stop before its end.
	Stopped     bool         `json:"stopped,omitempty"`
	Evaluations []evaluation `json:"evaluations,omitempty"`
	// Differs says why the last bits may not be those of the program's machine.
	Differs string `json:"differs,omitempty"`
	// Progress is the last that the interval has said.
	Progress *run.TaskProgress `json:"progress,omitempty"`
	Worker   string            `json:"worker"`
}

type evaluation struct {
	EnvSteps int64      `json:"env_steps"`
	Metrics  run.Values `json:"metrics"`
}

// state is what a group takes over when it is continued as new.
type state struct {
	Paused bool `json:"paused,omitempty"`
	// Saved has what intervals that were stopped have saved, by key.
	Saved map[string]objects.Digest `json:"saved,omitempty"`
	// Finished counts the tasks.
	Finished int `json:"finished"`
}

// GroupStatus is what a group says of itself; the JSON keys are stable.
type GroupStatus struct {
	Paused   bool `json:"paused"`
	Finished int  `json:"finished"`
	// Running are the keys of the tasks that go on, Waiting those that a pause holds.
	Running []string `json:"running"`
	Waiting []string `json:"waiting"`
}

// task is one that was accepted.
type task struct {
	done   bool
	out    output
	err    error
	cancel workflow.CancelFunc
	// stop says that it is to stop for good and not for a pause.
	stop bool
}

// Group is the workflow of what is trained together.
func Group(ctx workflow.Context, s state) error {
	g := &group{state: s, tasks: map[string]*task{}}
	if g.Saved == nil {
		g.Saved = map[string]objects.Digest{}
	}
	handler := workflow.UpdateHandlerOptions{Validator: func(ctx workflow.Context, in input) error {
		if workflow.GetInfo(ctx).GetCurrentHistoryLength() > tooLong {
			return sdk.NewApplicationError("the group is continued as new first", errBusy)
		}
		return nil
	}}
	if err := workflow.SetUpdateHandlerWithOptions(ctx, trainName, g.train, handler); err != nil {
		return err
	}
	if err := workflow.SetQueryHandler(ctx, statusName, func() (GroupStatus, error) { return g.status(), nil }); err != nil {
		return err
	}
	workflow.Go(ctx, g.listen)
	for {
		seen := g.accepted
		idle := func() bool { return g.running == 0 && workflow.AllHandlersFinished(ctx) }
		more, err := workflow.AwaitWithTimeout(ctx, forgotten, func() bool {
			return idle() && (g.closed || workflow.GetInfo(ctx).GetCurrentHistoryLength() > longHistory || workflow.GetInfo(ctx).GetContinueAsNewSuggested())
		})
		switch {
		case err != nil:
			return err
		case more && g.closed, !more && idle() && g.accepted == seen && !g.Paused:
			return nil
		case more:
			return workflow.NewContinueAsNewError(ctx, groupName, g.state)
		}
	}
}

// errBusy is the type of the error of a group that takes no task for the moment.
const errBusy = "busy"

// group is the state of the workflow.
type group struct {
	state
	tasks             map[string]*task
	keys              []string
	running, accepted int
	// begun counts activities.
	begun  int
	closed bool
}

func (g *group) status() GroupStatus {
	s := GroupStatus{Paused: g.Paused, Finished: g.Finished, Running: []string{}, Waiting: []string{}}
	for _, k := range g.keys {
		switch t := g.tasks[k]; {
		case t.done:
		case t.cancel == nil:
			s.Waiting = append(s.Waiting, k)
		default:
			s.Running = append(s.Running, k)
		}
	}
	return s
}

// train carries out a task, or waits for it where it is carried out already.
func (g *group) train(ctx workflow.Context, in input) (output, error) {
	g.accepted++
	t, known := g.tasks[in.Key]
	if known && t.done && (t.err != nil || t.out.Stopped) {
		known = false // It goes on.
	}
	if known {
		if err := workflow.Await(ctx, func() bool { return t.done }); err != nil {
			return output{}, err
		}
		return t.out, t.err
	}
	if _, ok := g.tasks[in.Key]; !ok {
		g.keys = append(g.keys, in.Key)
	}
	t = &task{}
	g.tasks[in.Key] = t
	g.running++
	t.out, t.err = g.carryOut(ctx, in, t)
	g.running--
	t.done = true
	if t.err == nil && !t.out.Stopped {
		g.Finished++
		delete(g.Saved, in.Key)
	}
	return t.out, t.err
}

// carryOut has workers train an interval to its end, through pauses.
func (g *group) carryOut(ctx workflow.Context, in input, t *task) (out output, err error) {
	for {
		if err := workflow.Await(ctx, func() bool { return !g.Paused || t.stop }); err != nil {
			return out, err
		}
		if t.stop {
			out.Stopped, out.Saved = true, in.Saved
			return out, nil
		}
		if saved, ok := g.Saved[in.Key]; ok {
			in.Saved = saved
		}
		g.begun++
		inner, cancel := workflow.WithCancel(workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
			// An ID is used once; whoever asks how far the interval is finds the key in front.
			ActivityID: fmt.Sprintf("%s/%d", in.Key, g.begun), StartToCloseTimeout: longest, HeartbeatTimeout: cmp.Or(in.Silence, silence), WaitForCancellation: true,
			RetryPolicy: &sdk.RetryPolicy{InitialInterval: time.Second, BackoffCoefficient: 2, MaximumInterval: time.Minute, MaximumAttempts: attempts},
		}))
		t.cancel = cancel
		out = output{} // What comes is decoded into it.
		err = workflow.ExecuteActivity(inner, activityName, in).Get(inner, &out)
		t.cancel = nil
		asked := inner.Err() != nil
		cancel()
		if err != nil && asked && ctx.Err() == nil {
			// It was stopped before a worker had it or had something to save, or failed when it
			// was.
			out, err = output{Stopped: true, Saved: in.Saved}, nil
		}
		if err != nil || !out.Stopped {
			return out, err
		}
		if out.Saved != "" {
			g.Saved[in.Key] = out.Saved
		}
		if t.stop {
			return out, nil
		}
	}
}

// listen takes signals.
func (g *group) listen(ctx workflow.Context) {
	s := workflow.NewSelector(ctx)
	on := func(name string, do func(key string)) {
		s.AddReceive(workflow.GetSignalChannel(ctx, name), func(c workflow.ReceiveChannel, _ bool) {
			var key string
			c.Receive(ctx, &key)
			do(key)
		})
	}
	on(cancelName, func(key string) {
		for _, k := range g.keys {
			if t := g.tasks[k]; (k == key || key == "") && !t.done {
				t.stop = true
				if t.cancel != nil {
					t.cancel()
				}
			}
		}
	})
	on(pauseName, func(string) {
		g.Paused = true
		for _, k := range g.keys {
			if t := g.tasks[k]; t.cancel != nil {
				t.cancel()
			}
		}
	})
	on(resumeName, func(string) { g.Paused = false })
	on(closeName, func(string) { g.closed = true })
	for ctx.Err() == nil {
		s.Select(ctx)
	}
}
