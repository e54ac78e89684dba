package temporal

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	enums "go.temporal.io/api/enums/v1"

	"github.com/onnxrl/onnxrl/runtime/atomicfile"
)

// GroupFile says in the directory of what is trained together where its tasks are.
const GroupFile = "executor.json"

// Place is the content of [GroupFile]; the JSON keys are stable.
type Place struct {
	// Address is that of the server, without parameters, and Workflow the ID of the group there.
	Address  string `json:"address"`
	Workflow string `json:"workflow"`
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

// following watches the intervals of a group.
type following struct {
	id string
	e  *Executor

	mu    sync.Mutex
	tasks map[string]chan pulse
}

// follow returns the group of a directory, and begins to watch it. The group of a directory has the
// same ID whenever it is asked for; it is another one where the directory was used with another
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
	if errors.Is(err, fs.ErrNotExist) || err == nil && p.Address != e.o.Address.String() {
		p = Place{Address: e.o.Address.String(), Workflow: "onnxrl-" + filepath.Base(dir) + "-" + strings.ToLower(rand.Text()[:12])}
		var text []byte
		if text, err = json.MarshalIndent(p, "", "  "); err == nil {
			if err = os.MkdirAll(dir, 0o755); err == nil {
				err = atomicfile.WriteBytes(filepath.Join(dir, GroupFile), append(text, '\n'))
			}
		}
	}
	if err != nil {
		return nil, err
	}
	f := &following{id: p.Workflow, e: e, tasks: map[string]chan pulse{}}
	e.groups[dir] = f
	e.polls.Go(f.poll)
	return f, nil
}

// watch returns what is told of a task, the newest alone.
func (f *following) watch(key string) <-chan pulse {
	f.mu.Lock()
	defer f.mu.Unlock()
	c := make(chan pulse, 1)
	f.tasks[key] = c
	return c
}

// forget ends that.
func (f *following) forget(key string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.tasks, key)
}

// poll asks once a second how far the tasks are, and says where nobody has them.
func (f *following) poll() {
	tick := time.NewTicker(beat)
	defer tick.Stop()
	idle := time.Now()
	for {
		select {
		case <-f.e.ctx.Done():
			return
		case <-tick.C:
		}
		f.mu.Lock()
		waiting := len(f.tasks)
		f.mu.Unlock()
		if waiting == 0 {
			idle = time.Now()
			continue
		}
		if n := f.ask(); n > 0 {
			idle = time.Now()
		} else if time.Since(idle) > patience {
			f.unserved()
		}
	}
}

// ask hands on what intervals have said, and returns how many are in the hands of workers.
func (f *following) ask() (n int) {
	ctx, cancel := context.WithTimeout(f.e.ctx, connecting)
	defer cancel()
	d, err := f.e.client.DescribeWorkflowExecution(ctx, f.id, "")
	if err != nil {
		return 0 // Whoever waits for a task says what is wrong.
	}
	for _, a := range d.GetPendingActivities() {
		if a.GetState() == enums.PENDING_ACTIVITY_STATE_STARTED {
			n++
		}
		if failure := a.GetLastFailure(); failure != nil {
			f.e.note(fmt.Sprintf("%s: attempt %d has failed: %s; it is begun again", a.GetActivityId(), a.GetAttempt()-1, failure.GetMessage()))
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
		if c := f.tasks[a.GetActivityId()]; c != nil {
			select {
			case <-c: // An older one that nobody has taken.
			default:
			}
			c <- p
		}
		f.mu.Unlock()
	}
	return n
}

// unserved says that nobody serves the queue, where that is so.
func (f *following) unserved() {
	ctx, cancel := context.WithTimeout(f.e.ctx, connecting)
	defer cancel()
	a := f.e.o.Address
	d, err := f.e.client.DescribeTaskQueue(ctx, a.Queue, enums.TASK_QUEUE_TYPE_ACTIVITY)
	if err == nil && len(d.GetPollers()) == 0 {
		f.e.note(fmt.Sprintf("no worker serves the queue %s of %v; start one with: onnxrl worker --executor '%v?queue=%s'", a.Queue, a, a, a.Queue))
	}
}
