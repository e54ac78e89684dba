package temporal

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/onnxrl/onnxrl/agents/run"
	"github.com/onnxrl/onnxrl/agents/worker/capacity"
	"github.com/onnxrl/onnxrl/agents/worker/temporal/temporaltest"
	"github.com/onnxrl/onnxrl/runtime/longtest"
	"github.com/onnxrl/onnxrl/runtime/objects/s3/s3test"
)

// envCapacity names the file that TestCapacity writes what it has measured to, with more workers
// and latencies than without it.
const envCapacity = "ONNXRL_CAPACITY"

// envMachine is what the file is to say of the machine.
const envMachine = "ONNXRL_CAPACITY_MACHINE"

// checkpointTree is what an interval goes on from.
var checkpointTree = capacity.Tree{Files: 3, Bytes: 30_000}

// lab is a program and workers, each with lines to the server and the storage.
type lab struct {
	t       *testing.T
	server  server
	x       *Executor
	dir     string
	by      Address
	workers int
	pids    []int
	tasks   int
	long    time.Duration
	program *temporaltest.Line
	worker  *temporaltest.Line
	// storage is everybody's line to the storage; nil where that is a directory.
	storage *temporaltest.Line
	costs   capacity.Costs
	// slower is how much longer than its processor time something takes.
	slower float64
}

func newLab(t *testing.T, long time.Duration) *lab {
	s := serve(t)
	l := &lab{t: t, server: s, dir: t.TempDir(), long: long, by: s.address(t)}
	l.program, l.worker = temporaltest.NewLine(t, s.HostPort()), temporaltest.NewLine(t, s.HostPort())
	url, pid := l.by.Objects, 0
	a := l.by
	a.HostPort, l.by.HostPort = l.program.Address, l.worker.Address
	if os.Getenv(s3test.Variable) != "" {
		storage := s3test.Start(t)
		l.storage, pid = temporaltest.NewLine(t, storage.Address), storage.PID
		url = s3test.URL(storage.Address, "tasks")
		a.Objects = s3test.URL(l.storage.Address, "tasks")
	}
	l.costs = s.costs(t, url, pid)
	var err error
	if l.x, err = NewExecutor(t.Context(), ExecutorOptions{Address: a, Hello: testHello(), Log: quiet{}}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.x.Close(); err != nil {
			t.Error(err)
		}
	})
	return l
}

// grow starts workers until there are so many, and has each train once.
func (l *lab) grow(n int) {
	for ; l.workers < n; l.workers++ {
		l.pids = append(l.pids, l.server.worker(l.t, l.by, envPlain+"=1", envWait+"="+l.long.String()).Process.Pid)
	}
	l.run(n)
}

// delay makes the lines slow.
func (l *lab) delay(d time.Duration) {
	for _, line := range []*temporaltest.Line{l.program, l.worker, l.storage} {
		if line != nil {
			line.Delay(d)
		}
	}
}

// run has n tasks carried out at once, and returns how long that takes.
func (l *lab) run(n int) time.Duration {
	l.t.Helper()
	list := make([]run.Job, n)
	for i := range list {
		l.tasks++
		id := fmt.Sprint("task-", l.tasks)
		list[i] = run.Job{ID: id, Group: filepath.Join(l.dir, "group"), Dir: filepath.Join(l.dir, "group", id), Checkpoint: filepath.Join(l.dir, "checkpoints", id)}
		if err := fill(list[i].Checkpoint, "checkpoint "+id, checkpointTree); err != nil {
			l.t.Fatal(err)
		}
	}
	began := time.Now()
	err := run.Each(l.t.Context(), n, n, func(ctx context.Context, i int) error {
		_, err := l.x.Do(ctx, list[i], run.Hooks{})
		return err
	})
	took := time.Since(began)
	if err != nil {
		l.t.Fatal(err)
	}
	return took
}

// least is the least time of n tasks, of so many tries: others use the machine, too.
func (l *lab) least(tries, n int) time.Duration {
	least := time.Duration(math.MaxInt64)
	for range tries {
		least = min(least, l.run(n))
	}
	return least
}

// leastUntil is the least time of as many tries as it takes to be good, ten at most where whoever
// measures is not asked for a file: others only make it longer.
func (l *lab) leastUntil(tries, n int, good func(took time.Duration) bool) time.Duration {
	least := l.least(tries, n)
	for i := tries; i < 10 && os.Getenv(envCapacity) == "" && !good(least); i++ {
		least = min(least, l.run(n))
	}
	return least
}

// scenario is what run does, without a network.
func (l *lab) scenario(n int) capacity.Scenario {
	s := capacity.Defaults(l.workers, l.long.Seconds())
	s.Tasks, s.Checkpoint, s.Run, s.Network, s.Together = n, checkpointTree, runTree, capacity.Network{}, true
	s.Storage = 1 // The measured number is how many it serves.
	return s
}

// slow is the network of a delay.
func (l *lab) slow(d time.Duration) capacity.Network {
	n := capacity.Network{Program: d.Seconds(), Worker: d.Seconds()}
	if l.storage != nil {
		n.ProgramStorage, n.WorkerStorage = n.Program, n.Worker
	}
	return n
}

// simulate predicts. Processor time takes as much longer as others have the processors.
func (l *lab) simulate(s capacity.Scenario) capacity.Result {
	l.t.Helper()
	c := l.costs
	for _, x := range []*float64{
		&c.Program, &c.Worker, &c.Start.CPU, &c.Schedule.CPU, &c.Finish.CPU, &c.Complete.CPU,
		&c.Beat.CPU, &c.Describe.CPU, &c.Stat.CPU, &c.Write.CPU, &c.Read.CPU,
	} {
		*x *= l.slower
	}
	r, err := capacity.Simulate(c, s)
	if err != nil {
		l.t.Fatal(err)
	}
	return r
}

// calibrate measures what a task costs in the program and a worker, with no network in between:
// tasks that come one after the other to the only worker.
func (l *lab) calibrate(times int) {
	l.slower = slower(l.t)
	const tasks = 3
	own, worker := cpuOf(l.t, os.Getpid()), cpuOf(l.t, l.pids[0])
	list := make([]time.Duration, times)
	for i := range list {
		list[i] = l.run(tasks)
	}
	l.costs.Program = (cpuOf(l.t, os.Getpid()) - own).Seconds() / float64(times*tasks)
	l.costs.Worker = (cpuOf(l.t, l.pids[0]) - worker).Seconds() / float64(times*tasks)
	took := mean(list).Seconds()
	l.costs.Rest = max(0, took-l.simulate(l.scenario(tasks)).Makespan) / tasks
	l.t.Logf("%d tasks take %.3f s: program %.4f, worker %.4f, rest %.4f, processor time takes %.2f times as long", tasks, took, l.costs.Program, l.costs.Worker, l.costs.Rest, l.slower)
}

// slower is how much longer than its processor time something takes that is short, and waits most
// of the time, as everything here does.
func slower(t testing.TB) float64 {
	t.Helper()
	busy := time.Duration(0)
	before := cpuOf(t, os.Getpid())
	for range 100 {
		began := time.Now()
		x := 1.0
		for range 2_000_000 {
			x = math.Sqrt(x + 1)
		}
		busy += time.Since(began)
		time.Sleep(10 * time.Millisecond)
	}
	return max(1, float64(busy)/float64(cpuOf(t, os.Getpid())-before))
}

// ways is how often a task waits for a message on a line.
type ways struct {
	Line     string  `json:"line"`
	Measured float64 `json:"measured"`
	Model    float64 `json:"model"`
}

// measurement is a run, and what was predicted of it.
type measurement struct {
	Workers int     `json:"workers"`
	Tasks   int     `json:"tasks"`
	Latency float64 `json:"one_way_latency_s"`
	// Measured is the least of some runs.
	Measured  float64 `json:"measured_s"`
	Predicted float64 `json:"predicted_s"`
	// Error is that of the prediction, relative, and that of what an interval costs beside its
	// training, in seconds.
	Error         float64 `json:"error"`
	OverheadError float64 `json:"overhead_error_s"`
	First         string  `json:"first"`
}

// TestCapacity: from costs that were measured without latency the model predicts how long tasks
// take over slow lines, and how often a task waits for each of them. With ONNXRL_CAPACITY=FILE many
// are measured, and written to it.
func TestCapacity(t *testing.T) {
	longtest.Nightly(t)
	file := os.Getenv(envCapacity)
	l := newLab(t, time.Second)
	l.costs.Machine, l.costs.Command = os.Getenv(envMachine), envCapacity+"=FILE go test -count=1 -run TestCapacity ./agents/worker/temporal"
	l.grow(1)
	l.calibrate(3)
	var waited []ways
	t.Run("ways", func(t *testing.T) {
		base := l.least(3, 1)
		const d = 500 * time.Millisecond
		for _, c := range []struct {
			name string
			line *temporaltest.Line
			n    capacity.Network
			most float64
		}{
			{"program to server", l.program, capacity.Network{Program: d.Seconds()}, 0.9},
			{"worker to server", l.worker, capacity.Network{Worker: d.Seconds()}, 0.9},
			{"both to storage", l.storage, capacity.Network{ProgramStorage: d.Seconds(), WorkerStorage: d.Seconds()}, 1.9},
		} {
			if c.line == nil {
				continue
			}
			s := l.scenario(1)
			without := l.simulate(s).Makespan
			s.Network = c.n
			want := (l.simulate(s).Makespan - without) / d.Seconds()
			of := func(took time.Duration) float64 { return float64(took-base) / float64(d) }
			c.line.Delay(d)
			got := of(l.leastUntil(2, 1, func(took time.Duration) bool { return of(took)-want <= c.most }))
			c.line.Delay(0)
			waited = append(waited, ways{c.name, got, want})
			t.Logf("%s: %.2f ways, the model has %.2f", c.name, got, want)
			// A message more or less is 1, and a request to the storage 2.
			if math.Abs(got-want) > c.most {
				t.Errorf("%s: %.2f ways, the model has %.2f", c.name, got, want)
			}
		}
	})
	tries := 1
	workers, delays, most := []int{1, 4}, []time.Duration{20 * time.Millisecond}, 0.5
	if file != "" {
		tries = 2
		workers, delays = []int{1, 2, 4, 8, 16}, []time.Duration{0, 5 * time.Millisecond, 20 * time.Millisecond, 50 * time.Millisecond}
	}
	var rows []measurement
	for _, n := range workers {
		l.grow(n)
		for _, d := range delays {
			s := l.scenario(3 * n)
			s.Network = l.slow(d)
			r := l.simulate(s)
			wrong := func(took time.Duration) float64 { return r.Makespan/took.Seconds() - 1 }
			l.delay(d)
			took := l.leastUntil(tries, 3*n, func(took time.Duration) bool { return wrong(took) >= -most })
			l.delay(0)
			m := measurement{
				Workers: n, Tasks: 3 * n, Latency: d.Seconds(), Measured: took.Seconds(),
				Predicted: r.Makespan, First: r.First.Station, Error: wrong(took),
			}
			m.OverheadError = (m.Predicted - m.Measured) * float64(n) / float64(m.Tasks)
			rows = append(rows, m)
			t.Logf("%2d workers, %2d ms: measured %.2f s, predicted %.2f, error %+.0f %%; %s", n, d.Milliseconds(), m.Measured, m.Predicted, 100*m.Error, m.First)
			if file == "" && math.Abs(m.Error) > most {
				t.Errorf("%+v: the error is expected to be at most %g", m, most)
			}
		}
	}
	if file == "" {
		return
	}
	text, err := json.MarshalIndent(struct {
		Costs capacity.Costs `json:"costs"`
		Ways  []ways         `json:"ways"`
		Rows  []measurement  `json:"rows"`
	}{l.costs, waited, rows}, "", "  ")
	if err == nil {
		err = os.WriteFile(file, append(text, '\n'), 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
}
