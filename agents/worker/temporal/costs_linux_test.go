package temporal

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.temporal.io/api/command/v1"
	common "go.temporal.io/api/common/v1"
	enums "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	queues "go.temporal.io/api/taskqueue/v1"
	"go.temporal.io/api/workflowservice/v1"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/onnxrl/onnxrl/agents/worker/capacity"
	"github.com/onnxrl/onnxrl/runtime/objects"
)

// bare speaks with a server as a program and a worker do of which nothing else is measured: it
// begins workflows, polls for what is to be done and answers, all by itself.
type bare struct {
	t         testing.TB
	w         workflowservice.WorkflowServiceClient
	namespace string
	queue     string
	n         int
}

// legs are how long it takes from the call that has a task go on until the other side, which waits
// for that, has it, and how long the call itself takes; in the order of a task.
type legs struct{ delivered, answered [4]time.Duration }

// open is a task whose interval has begun.
type open struct {
	id    string
	token []byte
	l     legs
	ended <-chan time.Time
}

// polled is a poll that is out.
type polled struct {
	token []byte
	at    time.Time
	err   error
}

func (b *bare) pollWorkflow(ctx context.Context) <-chan polled {
	c := make(chan polled, 1)
	go func() {
		for {
			r, err := b.w.PollWorkflowTaskQueue(ctx, &workflowservice.PollWorkflowTaskQueueRequest{Namespace: b.namespace, TaskQueue: &queues.TaskQueue{Name: b.queue}, Identity: "bare"})
			if err != nil || len(r.GetTaskToken()) > 0 {
				c <- polled{r.GetTaskToken(), time.Now(), err}
				return
			}
		}
	}()
	return c
}

func (b *bare) pollActivity(ctx context.Context) <-chan polled {
	c := make(chan polled, 1)
	go func() {
		for {
			r, err := b.w.PollActivityTaskQueue(ctx, &workflowservice.PollActivityTaskQueueRequest{Namespace: b.namespace, TaskQueue: &queues.TaskQueue{Name: b.queue}, Identity: "bare"})
			if err != nil || len(r.GetTaskToken()) > 0 {
				c <- polled{r.GetTaskToken(), time.Now(), err}
				return
			}
		}
	}()
	return c
}

// begin hands a task over and takes its interval.
func (b *bare) begin(ctx context.Context) (o open, err error) {
	b.n++
	o.id = fmt.Sprintf("%s-%d", b.queue, b.n)
	w, a := b.pollWorkflow(ctx), b.pollActivity(ctx)
	at := time.Now()
	_, err = b.w.StartWorkflowExecution(ctx, &workflowservice.StartWorkflowExecutionRequest{
		Namespace: b.namespace, WorkflowId: o.id, WorkflowType: &common.WorkflowType{Name: "bare"}, TaskQueue: &queues.TaskQueue{Name: b.queue}, RequestId: o.id,
	})
	if err != nil {
		return o, err
	}
	o.l.answered[0] = time.Since(at)
	ended := make(chan time.Time, 1)
	go func() {
		for ctx.Err() == nil {
			r, err := b.w.GetWorkflowExecutionHistory(ctx, &workflowservice.GetWorkflowExecutionHistoryRequest{
				Namespace: b.namespace, Execution: &common.WorkflowExecution{WorkflowId: o.id}, WaitNewEvent: true, HistoryEventFilterType: enums.HISTORY_EVENT_FILTER_TYPE_CLOSE_EVENT,
			})
			if err != nil || len(r.GetHistory().GetEvents()) > 0 {
				ended <- time.Now()
				return
			}
		}
	}()
	o.ended = ended
	first := <-w
	if first.err != nil {
		return o, first.err
	}
	o.l.delivered[0] = first.at.Sub(at)
	at = time.Now()
	_, err = b.w.RespondWorkflowTaskCompleted(ctx, &workflowservice.RespondWorkflowTaskCompletedRequest{Namespace: b.namespace, TaskToken: first.token, Identity: "bare", Commands: []*command.Command{{
		CommandType: enums.COMMAND_TYPE_SCHEDULE_ACTIVITY_TASK,
		Attributes: &command.Command_ScheduleActivityTaskCommandAttributes{ScheduleActivityTaskCommandAttributes: &command.ScheduleActivityTaskCommandAttributes{
			ActivityId: "1", ActivityType: &common.ActivityType{Name: "bare"}, TaskQueue: &queues.TaskQueue{Name: b.queue},
			StartToCloseTimeout: durationpb.New(time.Hour), HeartbeatTimeout: durationpb.New(time.Hour), ScheduleToCloseTimeout: durationpb.New(time.Hour), ScheduleToStartTimeout: durationpb.New(time.Hour),
		}},
	}}})
	if err != nil {
		return o, err
	}
	o.l.answered[1] = time.Since(at)
	second := <-a
	o.l.delivered[1], o.token = second.at.Sub(at), second.token
	return o, second.err
}

// end ends the interval, and the task.
func (b *bare) end(ctx context.Context, o *open) error {
	w := b.pollWorkflow(ctx)
	at := time.Now()
	if _, err := b.w.RespondActivityTaskCompleted(ctx, &workflowservice.RespondActivityTaskCompletedRequest{Namespace: b.namespace, TaskToken: o.token, Identity: "bare"}); err != nil {
		return err
	}
	o.l.answered[2] = time.Since(at)
	last := <-w
	if last.err != nil {
		return last.err
	}
	o.l.delivered[2] = last.at.Sub(at)
	at = time.Now()
	_, err := b.w.RespondWorkflowTaskCompleted(ctx, &workflowservice.RespondWorkflowTaskCompletedRequest{Namespace: b.namespace, TaskToken: last.token, Identity: "bare", Commands: []*command.Command{{
		CommandType: enums.COMMAND_TYPE_COMPLETE_WORKFLOW_EXECUTION,
		Attributes:  &command.Command_CompleteWorkflowExecutionCommandAttributes{CompleteWorkflowExecutionCommandAttributes: &command.CompleteWorkflowExecutionCommandAttributes{}},
	}}})
	if err != nil {
		return err
	}
	o.l.answered[3] = time.Since(at)
	o.l.delivered[3] = (<-o.ended).Sub(at)
	return nil
}

func (b *bare) beat(ctx context.Context, o open) error {
	_, err := b.w.RecordActivityTaskHeartbeat(ctx, &workflowservice.RecordActivityTaskHeartbeatRequest{Namespace: b.namespace, TaskToken: o.token, Identity: "bare"})
	return err
}

func (b *bare) describe(ctx context.Context, o open) error {
	_, err := b.w.DescribeWorkflowExecution(ctx, &workflowservice.DescribeWorkflowExecutionRequest{Namespace: b.namespace, Execution: &common.WorkflowExecution{WorkflowId: o.id}})
	return err
}

// load is what something costs: alone, and when many do it at once.
type load struct {
	// Alone is the mean time of one at a time, Each the time that passes for each when many are
	// done at once, CPU what processor time of the server each takes then, and Busy which share of
	// the machine's the server and this process use.
	Alone, Each, CPU time.Duration
	Busy             float64
}

// loaded calls do once at a time, then by many at once for that long. The process that serves it is
// pid, none where that is 0.
func loaded(t testing.TB, pid, at int, long time.Duration, do func(i int) error) (l load) {
	t.Helper()
	var alone []time.Duration
	for began := time.Now(); time.Since(began) < long/2 || len(alone) < 5; {
		one := time.Now()
		switch err := do(0); {
		case isTooMany(err):
			time.Sleep(tooMany)
			continue
		case err != nil:
			t.Fatal(err)
		}
		alone = append(alone, time.Since(one))
	}
	l.Alone = mean(alone)
	// Others use the machine, too: the round that is disturbed least counts.
	for range 3 {
		var n atomic.Int64
		var all sync.WaitGroup
		errs := make([]error, at)
		server, self := cpuOf(t, pid), cpuOf(t, os.Getpid())
		began := time.Now()
		for i := range at {
			all.Go(func() {
				for errs[i] == nil && time.Since(began) < long/2 {
					err := do(i)
					if isTooMany(err) {
						time.Sleep(tooMany)
						continue
					}
					errs[i] = err
					n.Add(1)
				}
			})
		}
		all.Wait()
		took := time.Since(began)
		server, self = cpuOf(t, pid)-server, cpuOf(t, os.Getpid())-self
		if err := errors.Join(errs...); err != nil {
			t.Fatal(err)
		}
		if each := took / time.Duration(n.Load()); l.Each == 0 || each < l.Each {
			l.Each, l.CPU, l.Busy = each, server/time.Duration(n.Load()), float64(server+self)/float64(took)
		}
	}
	return l
}

// isTooMany reports whether a server takes no more for now: by itself, it lets a namespace ask
// 2,400 times a second, which is then what it costs. It is asked again after tooMany.
func isTooMany(err error) bool {
	var exhausted *serviceerror.ResourceExhausted
	return errors.As(err, &exhausted)
}

const tooMany = 5 * time.Millisecond

// cpuOf is the processor time that a process has used.
func cpuOf(t testing.TB, pid int) time.Duration {
	t.Helper()
	if pid == 0 {
		return 0
	}
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		t.Fatal(err)
	}
	// Behind the name, which is in parentheses, utime and stime are fields 12 and 13, in ticks of
	// which Linux shows 100 a second.
	fields := bytes.Fields(text[bytes.LastIndexByte(text, ')')+1:])
	ticks := time.Duration(0)
	for _, f := range fields[11:13] {
		n, err := strconv.Atoi(string(f))
		if err != nil {
			t.Fatal(err)
		}
		ticks += time.Duration(n)
	}
	return ticks * 10 * time.Millisecond
}

// mean counts what is seldom and long, too: a server waits for its database now and then.
func mean(list []time.Duration) time.Duration {
	sum := time.Duration(0)
	for _, d := range list {
		sum += d
	}
	return sum / time.Duration(len(list))
}

// call is what a request costs: of what each takes when many are under way, the share that comes
// before the answer where nobody else is served is the answer itself.
func call(each, alone, delivered, cpu time.Duration) capacity.Call {
	c := capacity.Call{Service: min(each, alone).Seconds(), Answer: alone.Seconds(), Deliver: delivered.Seconds(), CPU: cpu.Seconds()}
	c.Background = each.Seconds() - c.Service
	return c
}

// costs measures the server, and the storage at a URL that the process storage serves.
func (s server) costs(t *testing.T, url string, storage int) (c capacity.Costs) {
	t.Helper()
	a := s.address(t)
	temporal, err := a.dial(quiet{})
	if err != nil {
		t.Fatal(err)
	}
	defer temporal.Close()
	const many = 16
	list := make([]*bare, many)
	for i := range list {
		list[i] = &bare{t: t, w: temporal.WorkflowService(), namespace: "default", queue: fmt.Sprint("bare-", i)}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	var delivered, answered [4][]time.Duration
	for range 15 {
		o, err := list[0].begin(ctx)
		if err == nil {
			err = list[0].end(ctx, &o)
		}
		if err != nil {
			t.Fatal(err)
		}
		for i := range 4 {
			delivered[i], answered[i] = append(delivered[i], o.l.delivered[i]), append(answered[i], o.l.answered[i])
		}
	}
	task := loaded(t, s.PID(), many, 4*time.Second, func(i int) error {
		o, err := list[i].begin(ctx)
		if err == nil {
			err = list[i].end(ctx, &o)
		}
		return err
	})
	sum := time.Duration(0)
	for i := range 4 {
		sum += mean(answered[i])
	}
	for i, to := range []*capacity.Call{&c.Start, &c.Schedule, &c.Finish, &c.Complete} {
		m := mean(answered[i])
		share := float64(m) / float64(sum)
		*to = call(time.Duration(float64(task.Each)*share), m, mean(delivered[i]), time.Duration(float64(task.CPU)*share))
	}
	opened := make([]open, many)
	for i := range opened {
		if opened[i], err = list[i].begin(ctx); err != nil {
			t.Fatal(err)
		}
	}
	beat := loaded(t, s.PID(), many, 2*time.Second, func(i int) error { return list[i].beat(ctx, opened[i]) })
	describe := loaded(t, s.PID(), many, 2*time.Second, func(i int) error { return list[i].describe(ctx, opened[i]) })
	c.Beat, c.Describe = call(beat.Each, beat.Alone, 0, beat.CPU), call(describe.Each, describe.Alone, 0, describe.CPU)
	store, err := objects.Open(ctx, url, objects.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	var n atomic.Int64
	const size = 10_000
	digests := make([]objects.Digest, 8)
	write := loaded(t, storage, 8, 2*time.Second, func(i int) (err error) {
		digests[i], err = store.Put(ctx, content(fmt.Sprint("put ", n.Add(1)), size))
		return err
	})
	stat := loaded(t, storage, 8, time.Second, func(i int) error {
		_, err := store.Put(ctx, content("put 1", size))
		return err
	})
	read := loaded(t, storage, 8, time.Second, func(i int) error {
		_, err := store.Get(ctx, digests[i])
		return err
	})
	c.Stat, c.Read = call(stat.Each, stat.Alone, 0, stat.CPU), call(read.Each, read.Alone, 0, read.CPU)
	c.Write = call(max(0, write.Each-stat.Each), max(time.Microsecond, write.Alone-stat.Alone), 0, max(0, write.CPU-stat.CPU))
	// The cost of durable files, without a storage.
	memory, err := objects.Open(ctx, "mem://"+t.Name(), objects.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer memory.Close()
	dir := t.TempDir()
	if err := fill(filepath.Join(dir, "from"), "disk", runTree); err != nil {
		t.Fatal(err)
	}
	tree, err := memory.PutTree(ctx, filepath.Join(dir, "from"))
	if err != nil {
		t.Fatal(err)
	}
	disk := loaded(t, 0, 4, time.Second, func(int) error {
		return memory.GetTree(ctx, tree, filepath.Join(dir, fmt.Sprint("to-", n.Add(1))))
	})
	c.Disk = disk.Each.Seconds() / float64(runTree.Files)
	t.Logf("task %+v, beat %+v, describe %+v, stat %+v, write %+v, read %+v, disk %+v", task, beat, describe, stat, write, read, disk)
	return c
}
