package temporal

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	enums "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/log"

	"github.com/onnxrl/onnxrl/agents/experiment/kinds"
	"github.com/onnxrl/onnxrl/agents/run"
	"github.com/onnxrl/onnxrl/agents/worker"
	"github.com/onnxrl/onnxrl/agents/worker/capacity"
	"github.com/onnxrl/onnxrl/agents/worker/temporal/temporaltest"
	"github.com/onnxrl/onnxrl/agents/worker/workertest"
	"github.com/onnxrl/onnxrl/runtime/longtest"
	"github.com/onnxrl/onnxrl/runtime/portable"
)

// envWorker makes the test binary a worker of that address.
const envWorker = "ONNXRL_TEST_TEMPORAL_WORKER"

func contains(s, part string) bool { return strings.Contains(s, part) }

func TestMain(m *testing.M) {
	if a := os.Getenv(envWorker); a != "" {
		if err := work(a); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

func testHello() worker.Hello { return worker.NewHello("portable", "here") }

// work serves an address until the process is ended.
func work(address string) error {
	a, err := ParseAddress(address)
	if err != nil {
		return err
	}
	e := portable.New()
	defer e.Close()
	t := worker.NewLocal(kinds.All(), run.Options{Engine: e})
	h := testHello()
	if v := os.Getenv("ONNXRL_TEST_BUILD"); v != "" {
		h.Build.Digest = v
	}
	o := WorkerOptions{Address: a, Do: t, Hello: h, Save: 200 * time.Millisecond, Beat: testBeat, Log: workerLog()}
	if os.Getenv(envPlain) != "" {
		o.Save, o.Beat = 0, 0
	}
	if os.Getenv(envFull) != "" {
		o.Do = full{t}
	}
	if text := os.Getenv(envWait); text != "" {
		long, err := time.ParseDuration(text)
		if err != nil {
			return err
		}
		o.Do = waits{long}
	}
	o.Dir, o.Rest = os.Getenv(envDir), 200*time.Millisecond
	w, err := NewWorker(o)
	if err != nil {
		return err
	}
	return w.Run(context.Background())
}

// envFull makes a worker of tests one whose disk is full before it trains anything; envDir is where
// it has its run directories.
const (
	envFull = "ONNXRL_TEST_FULL"
	envDir  = "ONNXRL_TEST_DIR"
)

// full is what trains on a full disk.
type full struct{ run.Executor }

func (full) Do(_ context.Context, t run.Job, _ run.Hooks) (run.Result, error) {
	return run.Result{}, fmt.Errorf("%s: %w", t.Dir, os.WriteFile("/dev/full", []byte("x"), 0o600))
}

// envPlain makes a worker of tests take the options that a program takes.
const envPlain = "ONNXRL_TEST_PLAIN"

// testBeat is shorter than anything that is waited for.
const testBeat = 20 * time.Millisecond

// quiet logs nothing.
type quiet struct{}

func (quiet) Debug(string, ...any) {}
func (quiet) Info(string, ...any)  {}
func (quiet) Warn(string, ...any)  {}
func (quiet) Error(string, ...any) {}

// server is a Temporal server with workers.
type server struct{ *temporaltest.Server }

func serve(t testing.TB) server { return server{temporaltest.Start(t)} }

func (s server) address(t testing.TB) Address {
	return Address{HostPort: s.HostPort(), Namespace: "default", Queue: DefaultQueue, Objects: "file://" + filepath.ToSlash(t.TempDir())}
}

// worker starts a process that serves the address.
func (s server) worker(t testing.TB, a Address, more ...string) *exec.Cmd {
	t.Helper()
	return s.workerBy(t, nil, a, more...)
}

// workerBy starts one by a command that is given the program as its last argument.
func (s server) workerBy(t testing.TB, by []string, a Address, more ...string) *exec.Cmd {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	by = append(by, exe)
	cmd := exec.Command(by[0], by[1:]...)
	cmd.Env = append(append(os.Environ(), envWorker+"="+a.String()+"?queue="+a.Queue), more...)
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	return cmd
}

func executor(t testing.TB, a Address, note func(string)) *Executor {
	t.Helper()
	e, err := NewExecutor(t.Context(), ExecutorOptions{Address: a, Hello: testHello(), Log: quiet{}, Note: note, Slots: 8, Beat: testBeat, Silence: 2 * time.Second, Unfit: 2 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
	return e
}

// files are those of run directories, relative, but for what tells times, and where the group is.
func files(t *testing.T, dir string) (list []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && !strings.Contains(path, "tensorboard") && d.Name() != GroupFile {
			rel, _ := filepath.Rel(dir, path)
			list = append(list, rel)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// TestPopulation: a population that workers of a server train has the log and the files of one that
// this process trains.
func TestPopulation(t *testing.T) {
	longtest.Slow(t)
	testPopulation(t, 2)
}

// TestPopulationOfWorkers is TestPopulation with fewer and more workers.
func TestPopulationOfWorkers(t *testing.T) {
	longtest.Nightly(t)
	testPopulation(t, 1, 3)
}

func testPopulation(t *testing.T, workers ...int) {
	s := serve(t)
	path, dir := workertest.Population(t), t.TempDir()
	want, err := workertest.Evolve(t.Context(), path, filepath.Join(dir, "here"), nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range workers {
		a := s.address(t)
		a.Queue = fmt.Sprint("queue-", n)
		for range n {
			s.worker(t, a)
		}
		var steps atomic.Int64
		there := filepath.Join(dir, fmt.Sprint(n))
		got, err := workertest.Evolve(t.Context(), path, there, executor(t, a, nil), func(n int64) { steps.Add(n) })
		if err != nil || got != want {
			t.Errorf("%d workers: %v\n%s\nexpected\n%s", n, err, got, want)
		}
		if want := int64(3 * 4 * 400); steps.Load() != want {
			t.Errorf("%d workers: %d env steps were told, expected %d", n, steps.Load(), want)
		}
		if a, b := files(t, filepath.Join(dir, "here")), files(t, there); !reflect.DeepEqual(a, b) {
			t.Errorf("%d workers: %v, expected %v", n, b, a)
		}
		if p, err := PlaceOf(there); err != nil || p.Group == "" {
			t.Errorf("%+v, %v", p, err)
		}
	}
}

// TestControl: a population is paused, seen to wait, and goes on; it is cancelled, and goes on from
// where it was when it is resumed.
func TestControl(t *testing.T) {
	longtest.Nightly(t)
	s := serve(t)
	path, dir := workertest.Population(t, "interval_steps: 400", "interval_steps: 8000"), t.TempDir()
	want, err := workertest.Evolve(t.Context(), path, filepath.Join(dir, "here"), nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	a := s.address(t)
	s.worker(t, a)
	there := filepath.Join(dir, "there")
	begun := make(chan struct{})
	var once sync.Once
	type end struct {
		log string
		err error
	}
	ended := make(chan end, 1)
	again := func() {
		once = sync.Once{}
		begun = make(chan struct{})
		now := begun
		e := executor(t, a, nil)
		go func() {
			log, err := workertest.Evolve(t.Context(), path, there, e, func(int64) { once.Do(func() { close(now) }) })
			ended <- end{log, err}
		}()
	}
	again()
	<-begun
	c, err := OpenControl(there, Address{}, quiet{})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := c.Pause(t.Context()); err != nil {
		t.Fatal(err)
	}
	status := func(until func(GroupStatus) bool) {
		t.Helper()
		var st GroupStatus
		for began := time.Now(); ; time.Sleep(50 * time.Millisecond) {
			var err error
			if st, err = c.Status(t.Context()); err == nil && until(st) {
				return
			}
			if time.Since(began) > 5*time.Minute {
				t.Fatalf("%+v, %v", st, err)
			}
		}
	}
	status(func(s GroupStatus) bool { return len(s.Running) == 0 && len(s.Waiting) > 0 })
	select {
	case e := <-ended:
		t.Fatalf("it has ended while it was paused: %+v", e)
	case <-time.After(time.Second):
	}
	if err := c.Resume(t.Context()); err != nil {
		t.Fatal(err)
	}
	status(func(s GroupStatus) bool { return len(s.Running) > 0 })
	if err := c.Cancel(t.Context()); err != nil {
		t.Fatal(err)
	}
	if e := <-ended; e.err == nil || !strings.Contains(e.err.Error(), "cancelled by somebody else") {
		t.Fatalf("cancelled: %v", e.err)
	}
	again()
	if e := <-ended; e.err != nil || e.log != want {
		t.Errorf("%v\n%s\nexpected\n%s", e.err, e.log, want)
	}
}

// TestMany: more tasks are with the server at once than there are workers, all held by a pause that
// was there before them, and all carried out when they may. They beat less often than few do.
func TestMany(t *testing.T) {
	longtest.Nightly(t)
	s := serve(t)
	const members = 60
	path, dir := workertest.Population(t, "population: 4", fmt.Sprint("population: ", members), "interval_steps: 400", "interval_steps: 100", "generations: 3", "generations: 1"), t.TempDir()
	want, err := workertest.Evolve(t.Context(), path, filepath.Join(dir, "here"), nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	a := s.address(t)
	s.worker(t, a)
	there := filepath.Join(dir, "there")
	if err := (Place{Address: a.String(), Group: "many", Paused: true}).write(there); err != nil {
		t.Fatal(err)
	}
	e, err := NewExecutor(t.Context(), ExecutorOptions{Address: a, Hello: testHello(), Log: quiet{}})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	ended := make(chan error, 1)
	var got string
	go func() {
		var err error
		got, err = workertest.Evolve(t.Context(), path, there, e, nil)
		ended <- err
	}()
	c, err := OpenControl(there, Address{}, quiet{})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for began := time.Now(); ; time.Sleep(50 * time.Millisecond) {
		st, err := c.Status(t.Context())
		if err == nil && len(st.Waiting) == members && len(st.Running) == 0 && st.Finished == 0 {
			break
		}
		if time.Since(began) > 5*time.Minute {
			t.Fatalf("%+v, %v: expected %d tasks that wait", st, err, members)
		}
	}
	pace, _ := capacity.Pace(time.Second, 0, members)
	slowest := time.Duration(0)
	st, err := c.Status(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range st.Waiting {
		begin, err := e.client.GetWorkflowHistory(t.Context(), "many/"+key, "", false, enums.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT).Next()
		if err != nil {
			t.Fatal(err)
		}
		var in input
		if err := json.Unmarshal(begin.GetWorkflowExecutionStartedEventAttributes().GetInput().GetPayloads()[0].GetData(), &in); err != nil {
			t.Fatal(err)
		}
		slowest = max(slowest, in.Beat)
	}
	// The last that was handed over knows of all.
	if slowest != pace || pace <= time.Second {
		t.Errorf("they beat every %v, expected %v", slowest, pace)
	}
	if err := c.Resume(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err != nil || got != want {
		t.Errorf("%v\n%s\nexpected\n%s", err, got, want)
	}
	if st, err := c.Status(t.Context()); err != nil || st.Finished != members {
		t.Errorf("%+v, %v: expected %d that are finished", st, err, members)
	}
}

// TestStopped: a program that is stopped has in its directory what its members have saved, and goes
// on with it without a server.
func TestStopped(t *testing.T) {
	longtest.Nightly(t)
	s := serve(t)
	path, dir := workertest.Population(t, "interval_steps: 400", "interval_steps: 8000"), t.TempDir()
	want, err := workertest.Evolve(t.Context(), path, filepath.Join(dir, "here"), nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	a := s.address(t)
	s.worker(t, a)
	there := filepath.Join(dir, "there")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	if _, err := workertest.Evolve(ctx, path, there, executor(t, a, nil), func(int64) { cancel() }); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	if list, err := filepath.Glob(filepath.Join(there, "generation-0000", "*", run.CheckpointDir, "*")); err != nil || len(list) == 0 {
		t.Errorf("nothing was saved: %v", err)
	}
	if got, err := workertest.Evolve(t.Context(), path, there, nil, nil); err != nil || got != want {
		t.Errorf("%v\n%s\nexpected\n%s", err, got, want)
	}
}

// TestUnserved: that nobody serves a queue is said, and so is that a worker is another build, although
// both are "(devel)"; that there are only such workers ends what waits for them.
func TestUnserved(t *testing.T) {
	longtest.Nightly(t)
	s := serve(t)
	a := s.address(t)
	a.Queue = "nobody"
	notes := make(chan string, 1000)
	e := executor(t, a, func(text string) { notes <- text })
	done := make(chan error, 1)
	go func() {
		_, err := workertest.Evolve(t.Context(), workertest.Population(t), filepath.Join(t.TempDir(), "run"), e, nil)
		done <- err
	}()
	said := func(part string) {
		t.Helper()
		select {
		case text := <-notes:
			if !strings.Contains(text, part) {
				t.Errorf("%q, expected %q", text, part)
			}
		case err := <-done:
			t.Fatalf("it has ended: %v", err)
		case <-time.After(5 * time.Minute):
			t.Fatalf("nothing is said, expected %q", part)
		}
	}
	said("no worker serves the queue nobody of temporal://127.0.0.1:")
	s.worker(t, a, "ONNXRL_TEST_BUILD=0123456789abcdef")
	said("the worker's program is " + testHello().Build.Version + " (build 0123456789ab), expected ")
	err := <-done
	if err == nil || !strings.Contains(err.Error(), "only workers that may not take its tasks serve the queue nobody") || !strings.Contains(err.Error(), "-0123456789abcdef.") {
		t.Errorf("it ends with %v", err)
	}
	// A server that is none, and a namespace that it does not have.
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	none := a
	none.HostPort = l.Addr().String()
	l.Close()
	if _, err := NewExecutor(t.Context(), ExecutorOptions{Address: none, Log: quiet{}}); err == nil || !strings.Contains(err.Error(), none.String()) {
		t.Errorf("no server: %v", err)
	}
	none = a
	none.Namespace = "missing"
	if _, err := run.Executor(executor(t, none, nil)).Do(t.Context(), run.Job{ID: "x", Group: t.TempDir()}, run.Hooks{}); err == nil || !strings.Contains(err.Error(), "missing") {
		t.Errorf("no namespace: %v", err)
	}
}

// workerLog is where a worker of tests logs: on its standard error where somebody looks for what is
// wrong.
func workerLog() log.Logger {
	if os.Getenv("ONNXRL_TEST_LOG") == "" {
		return quiet{}
	}
	return log.NewStructuredLogger(slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn})))
}
