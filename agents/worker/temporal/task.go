package temporal

import (
	"cmp"
	"time"

	sdk "go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/onnxrl/onnxrl/agents"
	"github.com/onnxrl/onnxrl/agents/run"
	"github.com/onnxrl/onnxrl/agents/train"
	"github.com/onnxrl/onnxrl/agents/worker"
	"github.com/onnxrl/onnxrl/agents/worker/capacity"
	"github.com/onnxrl/onnxrl/runtime/objects"
)

// Names in Temporal's histories. A change of the workflow that an older history could not be
// replayed with is guarded by workflow.GetVersion, or gets another name.
const (
	taskName     = "onnxrl-task-1"
	activityName = "onnxrl-interval-1"
	pauseName    = "pause"
	resumeName   = "resume"
)

// How the workflow treats an interval.
const (
	// silence is how long a worker may say nothing of an interval before it counts as lost, where
	// the program does not say it.
	silence = capacity.Silence
	// longest bounds an interval in one worker.
	longest = 30 * 24 * time.Hour
	// attempts is how often an interval is begun, each time after a longer while.
	attempts = 100
)

// input is a task as it is in its history.
type input struct {
	// Key says which task of the group it is: the same for a task that is sent again.
	Key string  `json:"key"`
	Job run.Job `json:"job"`
	// Hello is what the program is that results are for; a worker that does not fit refuses.
	Hello  worker.Hello `json:"hello"`
	Strict bool         `json:"strict,omitempty"`
	// Silence is how long a worker may say nothing before it counts as lost; 0 is silence.
	Silence time.Duration `json:"silence,omitempty"`
	// Beat is how often a worker says that it goes on, unless it does so less often by itself.
	Beat time.Duration `json:"beat,omitempty"`
	// Objects is the storage that the trees are in: the checkpoint to go on from, and what an
	// earlier attempt has saved.
	Objects    string         `json:"objects"`
	Checkpoint objects.Digest `json:"checkpoint,omitempty"`
	Saved      objects.Digest `json:"saved,omitempty"`
	// Paused says that the task waits until somebody lets it go on.
	Paused bool `json:"paused,omitempty"`
}

// output is what has come of an interval.
type output struct {
	Result  run.Result      `json:"result"`
	Failure *worker.Failure `json:"failure,omitempty"`
	// Tree is the run directory, of one that was stopped Saved.
	Tree  objects.Digest `json:"tree,omitempty"`
	Saved objects.Digest `json:"saved,omitempty"`
	// Stopped says that the interval was to stop before its end.
	Stopped     bool         `json:"stopped,omitempty"`
	Evaluations []evaluation `json:"evaluations,omitempty"`
	// Differs says why the last bits may not be those of the program's machine.
	Differs string `json:"differs,omitempty"`
	// Progress is the last that the interval has said.
	Progress *train.Progress `json:"progress,omitempty"`
	Worker   string          `json:"worker"`
}

type evaluation struct {
	EnvSteps int64          `json:"env_steps"`
	Metrics  agents.Metrics `json:"metrics"`
}

// Task is the workflow of a task: it has a worker train the interval, again after each pause, until
// that has ended or is cancelled. What comes of one that is cancelled is an error whose detail is
// the digest of what was saved.
func Task(ctx workflow.Context, in input) (output, error) {
	var stop workflow.CancelFunc // Of the interval that goes on.
	workflow.Go(ctx, func(ctx workflow.Context) {
		s := workflow.NewSelector(ctx)
		s.AddReceive(workflow.GetSignalChannel(ctx, pauseName), func(c workflow.ReceiveChannel, _ bool) {
			c.Receive(ctx, nil)
			if in.Paused = true; stop != nil {
				stop()
			}
		})
		s.AddReceive(workflow.GetSignalChannel(ctx, resumeName), func(c workflow.ReceiveChannel, _ bool) {
			c.Receive(ctx, nil)
			in.Paused = false
		})
		for ctx.Err() == nil {
			s.Select(ctx)
		}
	})
	for {
		if err := workflow.Await(ctx, func() bool { return !in.Paused }); err != nil {
			return output{}, sdk.NewCanceledError(in.Saved)
		}
		inner, cancel := workflow.WithCancel(workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
			StartToCloseTimeout: longest, HeartbeatTimeout: cmp.Or(in.Silence, silence), WaitForCancellation: true,
			RetryPolicy: &sdk.RetryPolicy{InitialInterval: time.Second, BackoffCoefficient: 2, MaximumInterval: time.Minute, MaximumAttempts: attempts},
		}))
		stop = cancel
		var out output
		err := workflow.ExecuteActivity(inner, activityName, in).Get(inner, &out)
		stop = nil
		asked := inner.Err() != nil
		cancel()
		switch {
		case err != nil && !asked:
			return out, err
		case err == nil && !out.Stopped:
			return out, nil
		case err == nil && out.Saved != "":
			in.Saved = out.Saved
		}
		// With an error, it was stopped before a worker had it or had something to save, or failed
		// when it was.
		if ctx.Err() != nil {
			return output{}, sdk.NewCanceledError(in.Saved)
		}
	}
}
