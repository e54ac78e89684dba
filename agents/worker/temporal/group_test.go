package temporal

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"go.temporal.io/sdk/activity"
	sdk "go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"
	sdkworker "go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/onnxrl/onnxrl/agents/run"
	"github.com/onnxrl/onnxrl/agents/worker"
	"github.com/onnxrl/onnxrl/runtime/objects"
	"github.com/onnxrl/onnxrl/runtime/sorted"
)

// played runs a group whose intervals are played by do, and whose clock is not that of the world.
// At each time since its begin something is done.
func played(t *testing.T, s state, do func(ctx context.Context, in input) (output, error), at map[time.Duration]func(e *testsuite.TestWorkflowEnvironment)) *testsuite.TestWorkflowEnvironment {
	t.Helper()
	var suite testsuite.WorkflowTestSuite
	suite.SetLogger(quiet{})
	e := suite.NewTestWorkflowEnvironment()
	e.RegisterWorkflowWithOptions(Group, workflow.RegisterOptions{Name: groupName})
	e.RegisterActivityWithOptions(do, activity.RegisterOptions{Name: activityName})
	e.SetTestTimeout(time.Minute)
	e.SetWorkerOptions(sdkworker.Options{DeadlockDetectionTimeout: time.Minute})
	for when, what := range sorted.All(at) {
		e.RegisterDelayedCallback(func() { what(e) }, when)
	}
	e.ExecuteWorkflow(groupName, s)
	if !e.IsWorkflowCompleted() {
		t.Fatal("the workflow has not ended")
	}
	return e
}

// answers takes what has come of updates.
type answers struct {
	list     []output
	errs     []error
	rejected int
}

func (a *answers) send(e *testsuite.TestWorkflowEnvironment, in input) {
	n := fmt.Sprint("update-", len(a.list), len(a.errs), time.Now().UnixNano())
	e.UpdateWorkflow(trainName, n, &testsuite.TestUpdateCallback{
		OnReject: func(error) { a.rejected++ },
		OnAccept: func() {},
		OnComplete: func(v any, err error) {
			if err != nil {
				a.errs = append(a.errs, err)
				return
			}
			a.list = append(a.list, v.(output))
		},
	}, in)
}

// TestGroup: a task that is sent twice is carried out once; a failure is told to each; when the
// program has gone the group ends.
func TestGroup(t *testing.T) {
	var mu sync.Mutex // Intervals go on at once.
	calls := map[string]int{}
	do := func(_ context.Context, in input) (output, error) {
		mu.Lock()
		calls[in.Key]++
		mu.Unlock()
		if in.Key == "bad" {
			return output{}, sdk.NewNonRetryableApplicationError("no disk", "worker", nil)
		}
		return output{Worker: in.Key, Interval: run.IntervalResult{Until: 3}}, nil
	}
	var a answers
	e := played(t, state{}, do, map[time.Duration]func(*testsuite.TestWorkflowEnvironment){
		time.Second: func(e *testsuite.TestWorkflowEnvironment) {
			a.send(e, input{Key: "one"})
			a.send(e, input{Key: "one"})
			a.send(e, input{Key: "two"})
			a.send(e, input{Key: "bad"})
		},
		time.Minute: func(e *testsuite.TestWorkflowEnvironment) {
			a.send(e, input{Key: "one"})
			v, err := e.QueryWorkflow(statusName)
			if err != nil {
				t.Error(err)
				return
			}
			var s GroupStatus
			if err := v.Get(&s); err != nil || s.Finished != 2 || len(s.Running)+len(s.Waiting) > 0 {
				t.Errorf("%+v, %v", s, err)
			}
		},
	})
	if err := e.GetWorkflowError(); err != nil {
		t.Error(err)
	}
	if len(a.list) != 4 || len(a.errs) != 1 || calls["one"] != 1 || calls["two"] != 1 || calls["bad"] != 1 {
		t.Errorf("%+v, %v; %v", a.list, a.errs, calls)
	}
	for _, o := range a.list {
		if o.Interval.Until != 3 || !slices.Contains([]string{"one", "two"}, o.Worker) {
			t.Errorf("%+v", o)
		}
	}
}

// TestGroupPaused: a pause stops what goes on and holds it; one that is cancelled ends, and goes on
// when it is sent again. The environment takes no result of an interval that it has cancelled: that
// one goes on from what it has saved is for [TestControl].
func TestGroupPaused(t *testing.T) {
	var mu sync.Mutex
	begun := 0
	do := func(ctx context.Context, in input) (output, error) {
		mu.Lock()
		begun++
		last := begun == 3
		mu.Unlock()
		if last {
			return output{Tree: "whole"}, nil
		}
		<-ctx.Done()
		return output{}, ctx.Err()
	}
	var a answers
	signal := func(name, key string) func(*testsuite.TestWorkflowEnvironment) {
		return func(e *testsuite.TestWorkflowEnvironment) { e.SignalWorkflow(name, key) }
	}
	var paused GroupStatus
	e := played(t, state{}, do, map[time.Duration]func(*testsuite.TestWorkflowEnvironment){
		1 * time.Second: func(e *testsuite.TestWorkflowEnvironment) { a.send(e, input{Key: "one", Saved: "first"}) },
		2 * time.Second: signal(pauseName, ""),
		5 * time.Second: func(e *testsuite.TestWorkflowEnvironment) {
			v, err := e.QueryWorkflow(statusName)
			if err == nil {
				err = v.Get(&paused)
			}
			if err != nil {
				t.Error(err)
			}
		},
		6 * time.Second: signal(resumeName, ""),
		7 * time.Second: signal(cancelName, "one"),
		8 * time.Second: func(e *testsuite.TestWorkflowEnvironment) { a.send(e, input{Key: "one", Saved: "first"}) },
		9 * time.Second: signal(closeName, ""),
	})
	if err := e.GetWorkflowError(); err != nil {
		t.Error(err)
	}
	if !paused.Paused || !slices.Equal(paused.Waiting, []string{"one"}) || len(paused.Running) > 0 || begun != 3 {
		t.Errorf("%+v; begun %d times", paused, begun)
	}
	if len(a.list) != 2 || !a.list[0].Stopped || a.list[0].Saved != "first" || a.list[1].Tree != "whole" || len(a.errs) > 0 {
		t.Errorf("%+v, %v", a.list, a.errs)
	}
}

// TestGroupContinued: a long history is continued as new between tasks, with what was saved.
func TestGroupContinued(t *testing.T) {
	var a answers
	e := played(t, state{Finished: 7, Saved: map[string]objects.Digest{"other": "kept"}}, func(context.Context, input) (output, error) { return output{}, nil }, map[time.Duration]func(*testsuite.TestWorkflowEnvironment){
		time.Second: func(e *testsuite.TestWorkflowEnvironment) {
			e.SetCurrentHistoryLength(longHistory + 1)
			a.send(e, input{Key: "one"})
		},
	})
	var next *workflow.ContinueAsNewError
	if err := e.GetWorkflowError(); !errors.As(err, &next) {
		t.Fatal(err)
	}
	a = answers{}
	tell := func(name string) func(*testsuite.TestWorkflowEnvironment) {
		return func(e *testsuite.TestWorkflowEnvironment) { e.SignalWorkflow(name, "") }
	}
	// The task that a pause holds keeps the group from being continued.
	played(t, state{Paused: true}, func(context.Context, input) (output, error) { return output{}, nil }, map[time.Duration]func(*testsuite.TestWorkflowEnvironment){
		1 * time.Second: func(e *testsuite.TestWorkflowEnvironment) { a.send(e, input{Key: "one"}) },
		2 * time.Second: func(e *testsuite.TestWorkflowEnvironment) {
			e.SetCurrentHistoryLength(tooLong + 1)
			a.send(e, input{Key: "two"})
		},
		3 * time.Second: func(e *testsuite.TestWorkflowEnvironment) { e.SetCurrentHistoryLength(1) },
		4 * time.Second: tell(resumeName),
		5 * time.Second: tell(closeName),
	})
	if a.rejected != 1 || len(a.list) != 1 {
		t.Errorf("%d rejected, %+v", a.rejected, a.list)
	}
}

// TestAddress reads addresses, and says what is wrong with others without repeating secrets.
func TestAddress(t *testing.T) {
	a, err := ParseAddress("temporal://h:1/space?queue=gpu&objects=s3%3A%2F%2Fb%2Fp&strict=true&ca=c.pem")
	if want := (Address{HostPort: "h:1", Namespace: "space", Queue: "gpu", Objects: "s3://b/p", Strict: true, CA: "c.pem"}); err != nil || a != want {
		t.Errorf("%+v, %v", a, err)
	}
	a, err = ParseAddress("temporal://h")
	if want := (Address{HostPort: "h:7233", Namespace: DefaultNamespace, Queue: DefaultQueue}); err != nil || a != want || a.String() != "temporal://h:7233/default" {
		t.Errorf("%+v, %v", a, err)
	}
	for _, bad := range []string{"http://h", "temporal://", "temporal://user:secret@h", "temporal://h?queu=x", "temporal://h?strict=yes", "temporal://h?cert=x", "secret"} {
		if _, err := ParseAddress(bad); err == nil || len(err.Error()) < 20 || bad != "secret" && contains(err.Error(), "secret") {
			t.Errorf("%s: %v", bad, err)
		}
	}
	if _, err := NewExecutor(t.Context(), ExecutorOptions{Address: a}); err == nil || !contains(err.Error(), "objects is missing") {
		t.Error(err)
	}
	a.CA = "none.pem"
	if _, err := NewWorker(WorkerOptions{Address: a, Do: &worker.Tasks{}}); err == nil || !contains(err.Error(), "ca: open none.pem") {
		t.Error(err)
	}
}
