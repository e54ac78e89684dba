package temporal

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/converter"
	sdk "go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"
	sdkworker "go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/onnxrl/onnxrl/agents/run"
	"github.com/onnxrl/onnxrl/agents/worker"
	"github.com/onnxrl/onnxrl/runtime/longtest"
	"github.com/onnxrl/onnxrl/runtime/objects"
	"github.com/onnxrl/onnxrl/runtime/sorted"
)

// played runs the workflow of a task whose interval is played by do, on a clock that is not that of
// the world. At each time since its begin something is done.
func played(t *testing.T, in input, do func(ctx context.Context, in input) (output, error), at map[time.Duration]func(e *testsuite.TestWorkflowEnvironment)) (out output, err error) {
	t.Helper()
	var suite testsuite.WorkflowTestSuite
	suite.SetLogger(quiet{})
	e := suite.NewTestWorkflowEnvironment()
	e.RegisterWorkflowWithOptions(Task, workflow.RegisterOptions{Name: taskName})
	e.RegisterActivityWithOptions(do, activity.RegisterOptions{Name: activityName})
	e.SetTestTimeout(time.Minute)
	e.SetWorkerOptions(sdkworker.Options{DeadlockDetectionTimeout: time.Minute})
	for when, what := range sorted.All(at) {
		e.RegisterDelayedCallback(func() { what(e) }, when)
	}
	e.ExecuteWorkflow(taskName, in)
	if !e.IsWorkflowCompleted() {
		t.Fatal("the workflow has not ended")
	}
	if err = e.GetWorkflowError(); err == nil {
		err = e.GetWorkflowResult(&out)
	}
	return out, err
}

// TestTask: an interval ends with what has come of it, or with the error of a worker.
func TestTask(t *testing.T) {
	longtest.Slow(t)
	out, err := played(t, input{Key: "one"}, func(_ context.Context, in input) (output, error) {
		return output{Worker: in.Key, Result: run.Result{Until: 3}}, nil
	}, nil)
	if err != nil || out.Worker != "one" || out.Result.Until != 3 {
		t.Errorf("%+v, %v", out, err)
	}
	_, err = played(t, input{Key: "bad"}, func(context.Context, input) (output, error) {
		return output{}, sdk.NewNonRetryableApplicationError("no disk", "worker", nil)
	}, nil)
	if err == nil || !contains(err.Error(), "no disk") {
		t.Error(err)
	}
}

// TestTaskPaused: a pause stops the interval and holds the task, also one that begins paused; one
// that is cancelled ends with what was saved, in a pause, too. The environment takes no result of
// an interval that it has cancelled: that one goes on from what it has saved is for [TestControl].
func TestTaskPaused(t *testing.T) {
	longtest.Slow(t)
	signal := func(name string) func(*testsuite.TestWorkflowEnvironment) {
		return func(e *testsuite.TestWorkflowEnvironment) { e.SignalWorkflow(name, nil) }
	}
	cancel := func(e *testsuite.TestWorkflowEnvironment) { e.CancelWorkflow() }
	for _, c := range []struct {
		name string
		in   input
		at   map[time.Duration]func(*testsuite.TestWorkflowEnvironment)
		// begun is how often the interval is begun, the first of which do not end by themselves.
		begun, hang int
		tree        objects.Digest
	}{
		{name: "paused and resumed", begun: 2, hang: 1, tree: "whole", at: map[time.Duration]func(*testsuite.TestWorkflowEnvironment){2 * time.Second: signal(pauseName), 6 * time.Second: signal(resumeName)}},
		{name: "begins paused", in: input{Paused: true}, begun: 1, tree: "whole", at: map[time.Duration]func(*testsuite.TestWorkflowEnvironment){6 * time.Second: signal(resumeName)}},
		{name: "paused twice", begun: 3, hang: 2, tree: "whole", at: map[time.Duration]func(*testsuite.TestWorkflowEnvironment){
			2 * time.Second: signal(pauseName), 3 * time.Second: signal(pauseName), 6 * time.Second: signal(resumeName), 8 * time.Second: signal(pauseName), 9 * time.Second: signal(resumeName),
		}},
		{name: "cancelled", begun: 1, hang: 1, at: map[time.Duration]func(*testsuite.TestWorkflowEnvironment){2 * time.Second: cancel}},
		{name: "cancelled in a pause", begun: 1, hang: 1, at: map[time.Duration]func(*testsuite.TestWorkflowEnvironment){2 * time.Second: signal(pauseName), 6 * time.Second: cancel}},
		{name: "cancelled before it began", in: input{Paused: true}, at: map[time.Duration]func(*testsuite.TestWorkflowEnvironment){6 * time.Second: cancel}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()      // While an interval goes on, the time is that of the world.
			var mu sync.Mutex // The one before may not have seen yet that it was stopped.
			begun := 0
			c.in.Key, c.in.Saved = "one", "first"
			out, err := played(t, c.in, func(ctx context.Context, in input) (output, error) {
				mu.Lock()
				begun++
				hangs := begun <= c.hang
				mu.Unlock()
				if !hangs {
					return output{Tree: "whole"}, nil
				}
				<-ctx.Done()
				return output{}, ctx.Err()
			}, c.at)
			mu.Lock()
			defer mu.Unlock()
			if begun != c.begun || out.Tree != c.tree {
				t.Errorf("begun %d times, expected %d; %+v", begun, c.begun, out)
			}
			if c.tree != "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			var cancelled *sdk.CanceledError
			var saved objects.Digest
			if !errors.As(err, &cancelled) || cancelled.Details(&saved) != nil || saved != "first" {
				t.Errorf("%v, saved %q", err, saved)
			}
		})
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
	if _, err := NewWorker(WorkerOptions{Address: a, Do: &worker.Local{}}); err == nil || !contains(err.Error(), "ca: open none.pem") {
		t.Error(err)
	}
}

// TestBeats: a worker says that an interval goes on as often as it does so by itself, or less often
// where the program says so.
func TestBeats(t *testing.T) {
	for _, c := range []struct {
		own, asked time.Duration
		beats      bool
	}{
		{10 * time.Millisecond, 0, true},
		{10 * time.Millisecond, 20 * time.Millisecond, true},
		{10 * time.Millisecond, time.Hour, false},
		{time.Hour, 10 * time.Millisecond, false},
	} {
		w := &Worker{o: WorkerOptions{Do: waits{200 * time.Millisecond}, Hello: testHello(), Dir: t.TempDir(), Save: time.Hour, Beat: c.own}, stores: map[string]*objects.Store{}}
		var suite testsuite.WorkflowTestSuite
		suite.SetLogger(quiet{})
		e := suite.NewTestActivityEnvironment()
		var n atomic.Int64
		e.SetOnActivityHeartbeatListener(func(*activity.Info, converter.EncodedValues) { n.Add(1) })
		e.RegisterActivityWithOptions(w.interval, activity.RegisterOptions{Name: activityName})
		v, err := e.ExecuteActivity(activityName, input{Hello: testHello(), Job: run.Job{ID: "one", Dir: "dir"}, Objects: "mem://" + t.Name(), Beat: c.asked})
		if err != nil {
			t.Fatal(err)
		}
		var out output
		if err := v.Get(&out); err != nil || out.Tree == "" {
			t.Errorf("%+v, %v", out, err)
		}
		if (n.Load() > 0) != c.beats {
			t.Errorf("%v by itself, %v as the program says: %d beats, expected some: %v", c.own, c.asked, n.Load(), c.beats)
		}
	}
}
