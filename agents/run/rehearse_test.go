package run_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/onnxrl/onnxrl/agents/experiment"
	"github.com/onnxrl/onnxrl/agents/experiment/kinds"
	"github.com/onnxrl/onnxrl/agents/run"
	"github.com/onnxrl/onnxrl/configs"
	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/runtime/portable"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// counted are environments whose steps are counted, and fail from one on, unless it is 0.
type counted struct {
	envs.Factory
	steps *atomic.Int64
	fails int64
}

type countedEnv struct {
	envs.Env
	of *counted
}

func (f *counted) New(split envs.Split, i int) (envs.Env, error) {
	e, err := f.Factory.New(split, i)
	return &countedEnv{e, f}, err
}

func (e *countedEnv) Step(action *tensor.Tensor, ts *envs.TimeStep) error {
	if n := e.of.steps.Add(1); e.of.fails > 0 && n >= e.of.fails {
		return errors.New("there is no such lever")
	}
	return e.Env.Step(action, ts)
}

// nobody is an executor that counts what it is handed.
type nobody struct{ tasks atomic.Int64 }

func (n *nobody) Slots() int { return 1 }
func (n *nobody) Do(context.Context, run.Job, run.Hooks) (run.Result, error) {
	n.tasks.Add(1)
	return run.Result{}, errors.New("nobody trains")
}

// TestRehearse takes two steps in each environment, with a learner step where one is due, and
// writes nothing; what refuses runs that others are to train is found before one is handed over.
func TestRehearse(t *testing.T) {
	e := portable.New()
	t.Cleanup(func() { _ = e.Close() })
	dir := filepath.Join(t.TempDir(), "runs")
	f := &counted{steps: new(atomic.Int64)}
	list := kinds.All()
	list.Envs = append(list.Envs, envs.Kind{Name: "counted", Summary: "counts", Defaults: func() any { return struct{}{} }, Open: func(ctx context.Context, _ configs.Section) (envs.Factory, error) {
		doc, err := configs.Parse("corridor.yaml", []byte(corridor))
		c := experiment.Defaults()
		if err = errors.Join(err, doc.Decode(&c)); err != nil {
			return nil, err
		}
		_, f.Factory, _, err = kinds.All().Open(ctx, c)
		return f, err
	}})
	rehearse := func(j run.Job, o run.Options, sets ...string) (*run.Plan, error) {
		t.Helper()
		f.steps.Store(0)
		o.Engine, j.Name, j.Config, j.Dir, j.Sets = e, "counted", text(t, document(t)), dir, append([]string{"env={kind: counted}"}, sets...)
		p, err := run.New(t.Context(), list, j, o)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := p.Close(); err != nil {
				t.Error(err)
			}
		})
		return p, p.Rehearse(t.Context())
	}
	for _, sets := range [][]string{nil, {"agent.rollout_steps=1", "agent.batch_size=2"}, {"train.actors.count=2"}} {
		if _, err := rehearse(run.Job{}, run.Options{}, sets...); err != nil || f.steps.Load() != 4 {
			t.Errorf("%v: %d steps, %v", sets, f.steps.Load(), err)
		}
	}
	// The policy is not published, so that these are the first steps of all.
	f.fails = 3
	if _, err := rehearse(run.Job{}, run.Options{}); err == nil || !strings.Contains(err.Error(), "there is no such lever") {
		t.Errorf("error %v", err)
	}
	x := &nobody{}
	p, _ := rehearse(run.Job{Seeds: []uint64{1, 2}}, run.Options{Executor: x})
	f.steps.Store(0)
	if _, err := p.Train(t.Context()); err == nil || !strings.Contains(err.Error(), "there is no such lever") || x.tasks.Load() > 0 {
		t.Errorf("%d tasks, %v", x.tasks.Load(), err)
	}
	if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a rehearsal has left %s: %v", dir, err)
	}
}
