package temporal

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	enums "go.temporal.io/api/enums/v1"
	taskqueue "go.temporal.io/api/taskqueue/v1"

	"github.com/onnxrl/onnxrl/agents/run"
	"github.com/onnxrl/onnxrl/agents/worker/capacity"
	"github.com/onnxrl/onnxrl/runtime/atomicfile"
)

// GroupFile says in the directory of what is trained together where its tasks are.
const GroupFile = "executor.json"

// Place is the content of [GroupFile]; the JSON keys are stable.
type Place struct {
	// Address is that of the server, without parameters, and Group what the IDs of the workflows of
	// its tasks begin with, before a slash.
	Address string `json:"address"`
	Group   string `json:"group"`
	// Paused says that tasks are to wait until somebody has them go on.
	Paused bool `json:"paused,omitempty"`
	// Cancelled says that the program that hands tasks over is to end; one that begins forgets it.
	Cancelled bool `json:"cancelled,omitempty"`
}

// PlaceOf reads where the tasks of a directory are; fs.ErrNotExist where they are nowhere.
func PlaceOf(dir string) (p Place, err error) {
	path := filepath.Join(dir, GroupFile)
	text, err := os.ReadFile(path)
	if err == nil {
		if err = json.Unmarshal(text, &p); err != nil {
			err = fmt.Errorf("%s: %w", path, err)
		}
	}
	return p, err
}

// write makes it what a directory says.
func (p Place) write(dir string) error {
	text, err := json.MarshalIndent(p, "", "  ")
	if err == nil {
		if err = os.MkdirAll(dir, 0o755); err == nil {
			err = atomicfile.WriteBytes(filepath.Join(dir, GroupFile), append(text, '\n'))
		}
	}
	return err
}

// following watches the tasks of a group that this program waits for.
type following struct {
	e          *Executor
	dir, group string
	// found says that the directory was used before.
	found bool

	mu                sync.Mutex
	paused, cancelled bool
	// tasks receive the newest pulse, by the IDs of their workflows.
	tasks map[string]chan pulse
}

// follow returns the group of a directory, and begins to watch it. The group of a directory is the
// same whenever it is asked for; it is another one where the directory was used with another
// server.
func (e *Executor) follow(dir string) (*following, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if f := e.groups[dir]; f != nil {
		return f, nil
	}
	if e.closed {
		return nil, errors.New("the executor is closed")
	}
	p, err := PlaceOf(dir)
	found := err == nil && p.Address == e.o.Address.String() && p.Group != ""
	if errors.Is(err, fs.ErrNotExist) || err == nil && !found {
		p = Place{Address: e.o.Address.String(), Group: "onnxrl-" + filepath.Base(dir) + "-" + strings.ToLower(rand.Text()[:12])}
		err = p.write(dir)
	} else if err == nil && p.Cancelled {
		p.Cancelled = false
		err = p.write(dir)
	}
	if err != nil {
		return nil, err
	}
	f := &following{e: e, dir: dir, group: p.Group, found: found, paused: p.Paused, tasks: map[string]chan pulse{}}
	if f.paused {
		go e.note(pausedText(dir)) // It takes the lock that is held here.
	}
	e.groups[dir] = f
	e.polls.Go(f.poll)
	return f, nil
}

func pausedText(dir string) string {
	return fmt.Sprintf("%s is paused; onnxrl evolve resume %s lets it go on", dir, dir)
}

// id is that of the workflow of a task.
func (f *following) id(key string) string { return f.group + "/" + key }

func (f *following) isPaused() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.paused
}

func (f *following) isCancelled() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.cancelled
}

// watch returns the pulses of a task, the newest alone.
func (f *following) watch(id string) <-chan pulse {
	f.mu.Lock()
	defer f.mu.Unlock()
	c := make(chan pulse, 1)
	f.tasks[id] = c
	return c
}

// forget ends that.
func (f *following) forget(id string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.tasks, id)
}

// waiting are the tasks that this program waits for.
func (f *following) waiting() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Sorted(maps.Keys(f.tasks))
}

// asked is how many tasks the server is asked about at once.
const asked = 8

// poll asks again and again how far the tasks are, and says where nobody has them.
func (f *following) poll() {
	tick := time.NewTicker(f.e.o.Beat)
	defer tick.Stop()
	idle := time.Now()
	var last time.Time
	for {
		select {
		case <-f.e.ctx.Done():
			return
		case <-tick.C:
		}
		list := f.waiting()
		f.relay(list)
		if every, _ := capacity.Pace(f.e.o.Beat, f.e.o.Silence, len(list)); every > f.e.o.Beat && time.Since(last) < every {
			continue // So many that asking for all is much to ask.
		}
		last = time.Now()
		var begun atomic.Int64
		_ = run.Each(f.e.ctx, asked, len(list), func(_ context.Context, i int) error {
			if f.ask(list[i]) {
				begun.Add(1)
			}
			return nil
		})
		switch {
		case len(list) == 0, begun.Load() > 0, f.isPaused():
			idle = time.Now()
		case time.Since(idle) > patience:
			f.unserved()
		}
	}
}

// relay tells the tasks that somebody has paused the directory, lets it go on, or cancels it:
// whoever does that tells those that the server lists, which a task that was begun at the same
// moment need not be among.
func (f *following) relay(list []string) {
	p, err := PlaceOf(f.dir)
	if err != nil {
		return
	}
	f.mu.Lock()
	paused, cancelled := p.Paused != f.paused, p.Cancelled && !f.cancelled
	f.paused, f.cancelled = p.Paused, f.cancelled || p.Cancelled
	f.mu.Unlock()
	if paused && p.Paused {
		f.e.note(pausedText(f.dir))
	}
	ctx, cancel := context.WithTimeout(f.e.ctx, connecting)
	defer cancel()
	name := resumeName
	if p.Paused {
		name = pauseName
	}
	for _, id := range list {
		// An error is that the task has ended, or was told by whoever pauses or cancels.
		if cancelled {
			_ = f.e.client.CancelWorkflow(ctx, id, "")
		} else if paused {
			_ = f.e.client.SignalWorkflow(ctx, id, "", name, nil)
		}
	}
}

// ask hands on what an interval has said, and reports whether a worker has it.
func (f *following) ask(id string) (begun bool) {
	ctx, cancel := context.WithTimeout(f.e.ctx, connecting)
	defer cancel()
	d, err := f.e.client.DescribeWorkflowExecution(ctx, id, "")
	if err != nil {
		return false // Whoever waits for the task says what is wrong.
	}
	for _, a := range d.GetPendingActivities() {
		begun = begun || a.GetState() == enums.PENDING_ACTIVITY_STATE_STARTED
		if failure := a.GetLastFailure(); failure != nil {
			f.e.note(fmt.Sprintf("%s: attempt %d has failed: %s; it is begun again", strings.TrimPrefix(id, f.id("")), a.GetAttempt()-1, failure.GetMessage()))
		}
		list := a.GetHeartbeatDetails().GetPayloads()
		if len(list) == 0 {
			continue
		}
		var p pulse
		if json.Unmarshal(list[0].GetData(), &p) != nil {
			continue // Of a newer worker.
		}
		f.mu.Lock()
		if c := f.tasks[id]; c != nil {
			select {
			case <-c: // An older one that nobody has taken.
			default:
			}
			c <- p
		}
		f.mu.Unlock()
	}
	return begun
}

// unserved says that nobody serves the queue, where that is so. Where only workers serve it that may
// not take tasks of this program, what waits for tasks ends with that error after a while, which is
// long enough to start another worker.
func (f *following) unserved() {
	ctx, cancel := context.WithTimeout(f.e.ctx, connecting)
	defer cancel()
	a := f.e.o.Address
	d, err := f.e.client.DescribeTaskQueue(ctx, a.Queue, enums.TASK_QUEUE_TYPE_ACTIVITY)
	if err != nil {
		return
	}
	if len(d.GetPollers()) == 0 {
		f.e.note(fmt.Sprintf("no worker serves the queue %s of %v; start one with: onnxrl worker --executor '%v?queue=%s'", a.Queue, a, a, a.Queue))
	}
	if others := f.e.others(d.GetPollers(), time.Now()); len(others) > 0 {
		f.e.unfit(fmt.Errorf("only workers that may not take its tasks serve the queue %s of %v: %s; this program is %v: start workers of the same build", a.Queue, a, strings.Join(others, ", "), f.e.o.Hello.Build))
	} else {
		f.e.unfit(nil)
	}
}

// polling is for how long after its last call a worker counts as one that serves a queue: a call waits
// for a minute.
const polling = 70 * time.Second

// others are the workers that serve a queue, if none of them may take tasks of this program.
func (e *Executor) others(pollers []*taskqueue.PollerInfo, now time.Time) (list []string) {
	own := e.o.Hello.Kind()
	build, _, _ := strings.Cut(own, ".")
	for _, p := range pollers {
		// One of a former release has no kind.
		name, kind, _ := strings.Cut(p.GetIdentity(), " ")
		if kind == own || !e.o.Address.Strict && strings.HasPrefix(kind, build+".") {
			return nil
		}
		if now.Sub(p.GetLastAccessTime().AsTime()) < polling {
			list = append(list, fmt.Sprintf("%s (%s)", name, cmp.Or(kind, "another release")))
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// unfit has what waits for tasks end with an error that was there for as long as that takes; nil
// takes it back.
func (e *Executor) unfit(err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	switch {
	case err == nil:
		e.unfitSince = time.Time{}
	case e.unfitSince.IsZero():
		e.unfitSince = time.Now()
	case time.Since(e.unfitSince) >= e.o.Unfit && e.unfitErr == nil:
		e.unfitErr = err
		close(e.gaveUp)
	}
}
