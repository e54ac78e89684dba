package train_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/onnxrl/onnxrl/agents"
	"github.com/onnxrl/onnxrl/agents/train"
	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/runtime/longtest"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// disturbed are environments of whose first one each step is announced, which may then fail or take
// its time.
type disturbed struct {
	envs.Factory
	step func(n int) error
}

func (f disturbed) New(s envs.Split, i int) (envs.Env, error) {
	e, err := f.Factory.New(s, i)
	if i > 0 || s != envs.Train {
		return e, err
	}
	return &disturbedEnv{e, f.step, 0}, err
}

type disturbedEnv struct {
	envs.Env
	step func(n int) error
	n    int
}

func (e *disturbedEnv) Step(a *tensor.Tensor, ts *envs.TimeStep) error {
	e.n++
	if err := e.step(e.n); err != nil {
		return err
	}
	return e.Env.Step(a, ts)
}

func (e *disturbedEnv) SaveState() ([]byte, error) { return envs.SaveState(e.Env) }

func (e *disturbedEnv) LoadState(data []byte, ts *envs.TimeStep) error {
	return envs.LoadState(e.Env, data, ts)
}

// TestStopAnywhere stops in every round of a run, or in the learner step after it, and goes on:
// checkpoints, metrics, evaluations and weights are those of a run that never stopped.
func TestStopAnywhere(t *testing.T) {
	longtest.Slow(t)
	cfg := small()
	hooks := train.Hooks{Evaluate: evaluator(t)}
	whole := run(t, options{cfg: cfg, hooks: hooks})
	last := 0
	for round := 1; round < 150; round += 4 {
		dir := t.TempDir()
		ctx, cancel := context.WithCancel(t.Context())
		stops := disturbed{factory(t), func(n int) error {
			if n == round {
				cancel()
			}
			return nil
		}}
		first := run(t, options{ctx: ctx, cfg: cfg, hooks: hooks, dir: dir, factory: stops})
		at := int64(4 * round)
		if first.err != nil || first.Stopped != train.Interrupted || first.EnvSteps != at || first.steps[len(first.steps)-1] != at {
			t.Fatalf("stopped in round %d: %+v %v, checkpoints %v", round, first.Result, first.err, first.steps)
		}
		second := run(t, options{cfg: cfg, hooks: hooks, dir: dir})
		if second.err != nil || !slices.Equal(second.weights, whole.weights) || !slices.Equal(second.best, whole.best) || !sameLines(append(first.lines, second.lines...), whole.lines) {
			t.Errorf("stopped in round %d: %+v %v", round, second.Result, second.err)
		}
		if all := append(first.steps[:len(first.steps)-1], second.steps...); !slices.Equal(all, whole.steps) {
			t.Errorf("stopped in round %d: checkpoints at %v, expected %v", round, all, whole.steps)
		}
		last = round
	}
	if last < 140 {
		t.Errorf("the last stop was in round %d", last)
	}
}

// TestEnvironmentFails: where an environment fails there is a checkpoint of the round before,
// without the episodes, and the run goes on from it with new ones.
func TestEnvironmentFails(t *testing.T) {
	cfg := small()
	broken := errors.New("the simulator has exploded")
	n := 0
	for _, round := range []int{1, 3, 5, 6, 36, 111} {
		dir := t.TempDir()
		var log bytes.Buffer
		fails := disturbed{factory(t), func(n int) error {
			if n == round {
				return broken
			}
			return nil
		}}
		first := run(t, options{cfg: cfg, dir: dir, factory: fails})
		want := int64(4 * (round - 1))
		if !errors.Is(first.err, broken) || first.EnvSteps != want || first.steps[len(first.steps)-1] != want {
			t.Errorf("round %d: %v at %d, checkpoints %v", round, first.err, first.EnvSteps, first.steps)
		}
		second := run(t, options{cfg: cfg, dir: dir, hooks: train.Hooks{Log: slog.New(slog.NewTextHandler(&log, nil))}})
		if second.err != nil || second.EnvSteps != 600 || second.Taken != 600-want {
			t.Errorf("round %d: %+v %v", round, second.Result, second.err)
		}
		// Where nothing was lost since the last checkpoint, that one is kept, with its episodes.
		if restarted := strings.Contains(log.String(), "new episodes begin"); restarted != (want != 0 && want != 140) {
			t.Errorf("round %d: %s", round, log.String())
		}
		n++
	}
	if n != 6 {
		t.Errorf("%d cases", n)
	}
}

// TestEvaluationFails: the state before an evaluation that fails is whole.
func TestEvaluationFails(t *testing.T) {
	cfg := small()
	cfg.Checkpoint.EverySteps = 0
	broken := errors.New("no prices")
	dir, n := t.TempDir(), 0
	fails := train.Hooks{Evaluate: func(ctx context.Context, a agents.Agent, at int64) (map[string]float64, error) {
		if n++; n == 3 {
			return nil, broken
		}
		return evaluator(t)(ctx, a, at)
	}}
	first := run(t, options{cfg: cfg, dir: dir, hooks: fails})
	whole := run(t, options{cfg: cfg, hooks: train.Hooks{Evaluate: evaluator(t)}})
	second := run(t, options{cfg: cfg, dir: dir, hooks: train.Hooks{Evaluate: evaluator(t)}})
	if !errors.Is(first.err, broken) || second.Taken != 600-first.EnvSteps || first.EnvSteps == 0 || !slices.Equal(second.weights, whole.weights) || !sameLines(append(first.lines, second.lines...), whole.lines) {
		t.Errorf("%+v %v, then %+v %v", first.Result, first.err, second.Result, second.err)
	}
}

// TestEnvironmentHangs: a run that is stopped does not wait for an environment, or an evaluation,
// that does not answer.
func TestEnvironmentHangs(t *testing.T) {
	cfg := small()
	whole := run(t, options{cfg: cfg, hooks: train.Hooks{Evaluate: evaluator(t)}})
	for _, where := range []string{"step", "evaluation"} {
		dir := t.TempDir()
		ctx, cancel := context.WithCancel(t.Context())
		release, released := make(chan struct{}), make(chan struct{})
		hang := func() {
			cancel()
			<-release
			close(released)
		}
		o := options{ctx: ctx, cfg: cfg, dir: dir, hooks: train.Hooks{Evaluate: evaluator(t), Patience: time.Millisecond}}
		if where == "step" {
			o.factory = disturbed{factory(t), func(n int) error {
				if n == 33 {
					hang()
				}
				return nil
			}}
		} else {
			n := 0
			o.during = func(func()) {
				if n++; n == 3 {
					hang()
				}
			}
		}
		first := run(t, o)
		close(release)
		<-released
		second := run(t, options{cfg: cfg, dir: dir, hooks: train.Hooks{Evaluate: evaluator(t)}})
		if first.err != nil || first.Stopped != train.Interrupted || first.EnvSteps != map[string]int64{"step": 128, "evaluation": 180}[where] || second.err != nil || second.Taken != 600-first.EnvSteps {
			t.Errorf("%s: %+v %v, then %+v %v", where, first.Result, first.err, second.Result, second.err)
		}
		if where == "evaluation" && !slices.Equal(second.weights, whole.weights) {
			t.Error("the run that was stopped in an evaluation ends elsewhere")
		}
	}
}

// TestProgressWithin: with a clock, progress is called between rounds and between the gradient
// steps of an update.
func TestProgressWithin(t *testing.T) {
	cfg := small()
	clock := time.Unix(0, 0)
	var updates []float64
	steps := map[int64]bool{}
	_ = run(t, options{cfg: cfg, maker: &maker{rollout: 20, gradientSteps: 4}, hooks: train.Hooks{
		Now: func() time.Time { clock = clock.Add(time.Minute); return clock },
	}, progress: func(p train.Progress) {
		steps[p.EnvSteps] = true
		if p.Update > 0 && len(updates) < 6 {
			updates = append(updates, p.Update)
		}
	}})
	if len(steps) != 150 || !slices.Equal(updates, []float64{0.25, 0.5, 0.75, 0.25, 0.5, 0.75}) {
		t.Errorf("progress at %d env steps, updates %v", len(steps), updates)
	}
}
