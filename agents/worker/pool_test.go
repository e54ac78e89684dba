package worker

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/onnxrl/onnxrl/agents"
	"github.com/onnxrl/onnxrl/agents/experiment/kinds"
	"github.com/onnxrl/onnxrl/agents/run"
	"github.com/onnxrl/onnxrl/agents/train"
	"github.com/onnxrl/onnxrl/agents/tune"
	"github.com/onnxrl/onnxrl/agents/worker/workertest"
	"github.com/onnxrl/onnxrl/models/checkpoint"
	"github.com/onnxrl/onnxrl/runtime/longtest"
	"github.com/onnxrl/onnxrl/runtime/portable"
	"github.com/onnxrl/onnxrl/runtime/rng"
)

// differ is the first line in which two texts do.
func differ(got, want string) string {
	a, b := strings.Split(got, "\n"), strings.Split(want, "\n")
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return a[i] + "\nexpected\n" + b[i]
		}
	}
	return fmt.Sprintf("%d lines, expected %d", len(a), len(b))
}

// startedWorkers are the processes of workers that were started.
type startedWorkers struct {
	mu   sync.Mutex
	list []*os.Process
}

func (p *startedWorkers) add(started *os.Process) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.list = append(p.list, started)
}

// newest are the processes that were started last.
func (p *startedWorkers) newest(n int) []*os.Process {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.list[max(0, len(p.list)-n):]
}

// TestPopulation: however many workers train a population, it has the log of one that this process
// trains, digests of states included; also where workers are killed all the time.
func TestPopulation(t *testing.T) {
	longtest.Slow(t)
	path, dir := workertest.Population(t, "generations: 3", "generations: 4"), t.TempDir()
	want, err := workertest.Evolve(t.Context(), path, filepath.Join(dir, "here"), nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(want, "\n"); n != 16 {
		t.Fatalf("%d records:\n%s", n, want)
	}
	for _, n := range []int{1, 3} {
		got, err := workertest.Evolve(t.Context(), path, filepath.Join(dir, fmt.Sprint(n)), workers(t, Options{Workers: n}, "plain", nil), nil)
		if err != nil || got != want {
			t.Errorf("%d workers: %v\n%s", n, err, differ(got, want))
		}
	}
}

// TestKilled: workers are killed after env steps that a seed draws, again and again, and what comes
// of the search is the same.
func TestKilled(t *testing.T) {
	longtest.Slow(t)
	path, dir := workertest.Population(t, "generations: 3", "generations: 4"), t.TempDir()
	want, err := workertest.Evolve(t.Context(), path, filepath.Join(dir, "here"), nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	const searches = 3
	kills := 0
	for seed := range uint64(searches) {
		var ps startedWorkers
		pool := workers(t, Options{Workers: 2, Tries: 1000}, "plain", ps.add)
		draws := rng.New(seed).Stream()
		var mu sync.Mutex
		next := func() int64 { return int64(300 + draws.Uint64()%1200) }
		left := next()
		got, err := workertest.Evolve(t.Context(), path, filepath.Join(dir, fmt.Sprint(seed)), pool, func(n int64) {
			mu.Lock()
			defer mu.Unlock()
			if left -= n; left > 0 {
				return
			}
			left = next()
			list := ps.newest(2)
			if list[draws.Uint64()%uint64(len(list))].Kill() == nil {
				kills++
			}
		})
		if err != nil || got != want {
			t.Errorf("seed %d, %d kills: %v\n%s", seed, kills, err, differ(got, want))
		}
	}
	if kills < 2*searches {
		t.Errorf("%d kills in %d searches", kills, searches)
	}
}

// TestStopped: a search that is stopped saves where its members are, and goes on in this process,
// or in other ones, with the same log.
func TestStopped(t *testing.T) {
	longtest.Slow(t)
	path, dir := workertest.Population(t, "generations: 3", "generations: 4"), t.TempDir()
	want, err := workertest.Evolve(t.Context(), path, filepath.Join(dir, "here"), nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	pool := workers(t, Options{Workers: 2}, "plain", nil)
	stopped := filepath.Join(dir, "stopped")
	got, stops := "", 0
	for err = context.Canceled; errors.Is(err, context.Canceled); stops++ {
		// Later every time, so that it comes to an end.
		ctx, cancel := context.WithCancel(t.Context())
		timer := time.AfterFunc(time.Duration(200*(stops+1))*time.Millisecond, cancel)
		got, err = workertest.Evolve(ctx, path, stopped, pool, nil)
		timer.Stop()
		cancel()
	}
	if err != nil || got != want || stops < 2 {
		t.Errorf("%d stops: %v\n%s", stops, err, differ(got, want))
	}
}

// TestSeeds: runs of several seeds in workers have the files of those of this process, but for
// times and places.
func TestSeeds(t *testing.T) {
	dir := t.TempDir()
	e := portable.New()
	defer e.Close()
	trained := func(name string, x run.Executor) string {
		to := filepath.Join(dir, name)
		steps := map[uint64]int64{}
		var mu sync.Mutex
		p, err := run.New(t.Context(), kinds.All(), run.Job{Name: "corridor", Config: workertest.Document(t, "publish.observations=100"), Dir: to, Seeds: []uint64{1, 2, 3}}, run.Options{Engine: e, Parallel: 2, Executor: x, Hooks: run.Hooks{Progress: func(r *run.Run, p train.Progress) {
			mu.Lock()
			defer mu.Unlock()
			steps[r.Seed()] = p.EnvSteps
		}}})
		if err != nil {
			t.Fatal(err)
		}
		defer p.Close()
		sum, err := p.Train(t.Context())
		if err != nil || len(sum.Runs) != 3 || len(sum.Unfinished) > 0 || steps[1] != 1000 || steps[2] != 1000 || steps[3] != 1000 {
			t.Fatalf("%s: %+v, %v; %v", name, sum, err, steps)
		}
		// Trained again, it is only summarised.
		again, err := run.Open(t.Context(), kinds.All(), "", run.Job{Resume: to}, run.Options{Engine: e, Executor: x})
		if err != nil {
			t.Fatal(err)
		}
		defer again.Close()
		if s, err := again.Train(t.Context()); err != nil || len(s.Runs) != 3 {
			t.Errorf("%s again: %+v, %v", name, s, err)
		}
		return to
	}
	here, there := trained("here", nil), trained("there", workers(t, Options{Workers: 2}, "plain", nil))
	compared := 0
	for _, seed := range []string{"seed-1", "seed-2", "seed-3"} {
		for _, name := range []string{run.ConfigFile, run.SourcesFile, "best.onnx"} {
			a, err := os.ReadFile(filepath.Join(here, seed, name))
			if err != nil {
				t.Fatal(err)
			}
			b, err := os.ReadFile(filepath.Join(there, seed, name))
			if err != nil || string(a) != string(b) {
				t.Errorf("%s/%s differs: %v", seed, name, err)
			}
			compared++
		}
		if a, b := newest(t, filepath.Join(here, seed)), newest(t, filepath.Join(there, seed)); !reflect.DeepEqual(a.Files, b.Files) || !reflect.DeepEqual(a.Sections, b.Sections) {
			t.Errorf("%s ends with %v, expected %v", seed, b.Sections, a.Sections)
		}
	}
	for _, name := range []string{run.ConfigFile} {
		a, err := os.ReadFile(filepath.Join(here, name))
		if err != nil {
			t.Fatal(err)
		}
		if b, err := os.ReadFile(filepath.Join(there, name)); err != nil || string(a) != string(b) {
			t.Errorf("%s differs: %v", name, err)
		}
		compared++
	}
	if compared != 10 {
		t.Errorf("%d files", compared)
	}
}

// newest is the manifest of a run's last checkpoint.
func newest(t *testing.T, dir string) checkpoint.Manifest {
	t.Helper()
	list, err := checkpoint.List(filepath.Join(dir, run.CheckpointDir))
	if err != nil || len(list) == 0 {
		t.Fatalf("%v, %v", list, err)
	}
	c, err := checkpoint.Open(list[len(list)-1].Path)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	return c.Manifest
}

// TestTrials: a search for hyper-parameters has the same trials, evaluations and prunings, also
// where its worker is killed: evaluations that a trial has told already are not told again.
func TestTrials(t *testing.T) {
	longtest.Slow(t)
	path := workertest.Write(t, "tuned.yaml", strings.Replace(workertest.Base, "checkpoint: {every_steps: 100}", "validation: {every_steps: 200}", 1)+`
tune:
  trials: 6
  sampler: random
  prune_after: 1
  direction: minimize
  prune_warmup: 1
  space: {agent.learning_rate: {kind: loguniform, low: 1.0e-4, high: 1.0e-1}}
`)
	searched := func(x run.Executor, changed func(tune.Trial)) []tune.Trial {
		e := portable.New()
		defer e.Close()
		var last []tune.Trial
		s, err := tune.OpenSearch(t.Context(), kinds.All(), path, tune.SearchOptions{Engine: e, Dir: t.TempDir(), Executor: x, Changed: func(t tune.Trial, _ *tune.Trial) {
			changed(t)
			if t.State != tune.Running {
				last = append(last, t)
			}
		}})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		if _, err := s.Begin(); err != nil {
			t.Fatal(err)
		}
		if err := s.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		for i := range last {
			last[i].Seconds = 0
		}
		return last
	}
	want := searched(nil, func(tune.Trial) {})
	pruned := 0
	for _, w := range want {
		if w.State == tune.Pruned {
			pruned++
		}
	}
	if len(want) != 6 || pruned == 0 {
		t.Fatalf("%+v", want)
	}
	var ps startedWorkers
	killed := map[int]bool{}
	got := searched(workers(t, Options{Workers: 1}, "plain", ps.add), func(t tune.Trial) {
		if len(t.Intermediate) == 2 && !killed[t.Number] {
			killed[t.Number] = true
			_ = ps.newest(1)[0].Kill() // It may have ended already.
		}
	})
	if len(killed) < 4 {
		t.Errorf("%d workers were killed", len(killed))
	}
	if fmt.Sprintf("%+v", got) != fmt.Sprintf("%+v", want) {
		t.Errorf("%+v, expected %+v", got, want)
	}
}

// TestBadWorkers: what is no worker, or not one that fits, is an error that says so.
func TestBadWorkers(t *testing.T) {
	longtest.Slow(t)
	e := portable.New()
	defer e.Close()
	cases := []struct {
		role, want string
		notes      int
	}{
		{"old", " (build 0123456789ab), expected ", 0},
		{"garbage", "exit status 3: no such library; it was tried 3 times", 1},
		{"silent", "it has said nothing for 2s; it was tried 3 times", 1},
		{"dies", "the worker has ended: exit status 9; it was tried 3 times", 1},
		{"other", "", 1},
	}
	for _, c := range cases {
		t.Run(c.role, func(t *testing.T) {
			t.Parallel()
			var notes []string
			o := Options{Workers: 1, Note: func(text string) { notes = append(notes, text) }}
			if c.role == "silent" {
				o.Silence = 2 * time.Second
			}
			pool := workers(t, o, c.role, nil)
			steps := "train.total_env_steps=1000"
			if c.role == "dies" {
				steps = "train.total_env_steps=100000000"
			}
			_, err := run.Job{Config: workertest.Document(t, steps), Name: "x", Dir: filepath.Join(t.TempDir(), "run"), NoPublish: true}.Train(t.Context(), kinds.All(), run.Options{Engine: e, Executor: pool})
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) || len(notes) != c.notes {
				t.Errorf("%v, expected %q; %q", err, c.want, notes)
			}
		})
	}
	pool := &Pool{o: Options{Workers: 1, Silence: time.Second, Command: func() *exec.Cmd { return exec.Command(filepath.Join(t.TempDir(), "none")) }}, idle: make(chan *process, 1)}
	pool.idle <- nil
	if _, err := pool.Do(t.Context(), run.Job{}, run.Hooks{}); err == nil || !strings.Contains(err.Error(), "start a worker") {
		t.Errorf("no program: %v", err)
	}
	if _, err := NewPool(Options{}); err == nil || !strings.Contains(err.Error(), "0 workers") {
		t.Errorf("no workers: %v", err)
	}
	if _, err := (run.Job{Config: workertest.Document(t)}).Train(t.Context(), kinds.All(), run.Options{Engine: e, Executor: pool, Replay: func(*run.Run) (agents.Replay, error) { return nil, nil }}); err == nil || !strings.Contains(err.Error(), "a replay that runs share") {
		t.Errorf("a shared replay: %v", err)
	}
}
