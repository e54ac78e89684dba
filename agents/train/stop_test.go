package train_test

import (
	"context"
	"errors"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/onnxrl/onnxrl/agents"
	"github.com/onnxrl/onnxrl/agents/train"
	"github.com/onnxrl/onnxrl/configs"
	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/envs/corridor"
	"github.com/onnxrl/onnxrl/envs/wrap"
	"github.com/onnxrl/onnxrl/runtime/longtest"
	"github.com/onnxrl/onnxrl/runtime/portable"
	"github.com/onnxrl/onnxrl/runtime/rng"
	"github.com/onnxrl/onnxrl/runtime/sorted"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// rewards evaluates to given mean rewards, one after the other.
func rewards(list ...float64) train.Evaluator {
	inner := scripted(list...)
	return func(ctx context.Context, a agents.Agent, at int64) (map[string]float64, error) {
		m, err := inner(ctx, a, at)
		return map[string]float64{"edge": m["edge"], "mean_reward": m["edge"], "mean_length": 7}, err
	}
}

// TestStopOnReward: an untrained policy that is good enough does not end the run, and neither does
// a NaN.
func TestStopOnReward(t *testing.T) {
	cfg := small()
	threshold := 0.6
	cfg.Stop.RewardThreshold = &threshold
	o := run(t, options{cfg: cfg, hooks: train.Hooks{Evaluate: rewards(9, 0.5, math.NaN(), 0.6, 1, 1), Publish: &publisher{}}})
	if o.err != nil || o.Stopped != train.RewardReached || o.EnvSteps != 280 || o.Best.EnvSteps != 280 || o.steps[len(o.steps)-1] != 280 {
		t.Errorf("%+v %v, checkpoints %v", o.Result, o.err, o.steps)
	}
	if v := o.lines[0].values; v["eval/mean_ep_length"] != 7 || v["eval/mean_reward"] != 9 {
		t.Errorf("%v", v)
	}
	if o := run(t, options{cfg: cfg, hooks: train.Hooks{Evaluate: scripted(1, 1)}}); o.err == nil || !strings.Contains(o.err.Error(), `stop.reward_threshold: evaluation has no metric "mean_reward"; it has edge`) {
		t.Errorf("%v", o.err)
	}
	cfg.Validation.EverySteps = 0
	if o := run(t, options{cfg: cfg}); o.err == nil || !strings.Contains(o.err.Error(), "stop.reward_threshold: needs evaluations") {
		t.Errorf("%v", o.err)
	}
}

// TestStopOnEpisodes counts episodes for each environment, evaluates the last policy, and says so
// again when it is resumed.
func TestStopOnEpisodes(t *testing.T) {
	cfg := small()
	cfg.TotalEnvSteps, cfg.Stop.MaxEpisodes = 5000, 3
	dir := t.TempDir()
	o := run(t, options{cfg: cfg, dir: dir, hooks: train.Hooks{Evaluate: evaluator(t)}})
	if o.err != nil || o.Stopped != train.EpisodesReached || o.Episodes < 12 || o.Episodes > 12+40 || o.Last.EnvSteps != o.EnvSteps || o.steps[len(o.steps)-1] != o.EnvSteps {
		t.Errorf("%+v %v, last %+v, checkpoints %v", o.Result, o.err, o.Last, o.steps)
	}
	if again := run(t, options{cfg: cfg, dir: dir, hooks: train.Hooks{Evaluate: evaluator(t)}}); again.Stopped != train.EpisodesReached || again.Taken != 0 {
		t.Errorf("%+v", again.Result)
	}
}

// TestMinEvals lets evaluations go by before patience begins to wear.
func TestMinEvals(t *testing.T) {
	cfg := small()
	cfg.Validation.Patience = 2
	scores := []float64{0, 0.9, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1}
	for minimum, ended := range sorted.All(map[int]int64{0: 280, 1: 280, 4: 540}) {
		cfg.Validation.MinEvals = minimum
		o := run(t, options{cfg: cfg, hooks: train.Hooks{Evaluate: scripted(scores...)}})
		// The evaluations of a trained policy are at 100, 180, 280, 360, 460 …
		if o.err != nil || o.Stopped != train.EarlyStopped || o.EnvSteps != ended {
			t.Errorf("min_evals %d: %+v %v", minimum, o.Result, o.err)
		}
	}
	cfg.Validation.Patience, cfg.Validation.MinEvals = 0, 4
	if o := run(t, options{cfg: cfg}); o.err == nil || !strings.Contains(o.err.Error(), "validation.min_evals") {
		t.Errorf("%v", o.err)
	}
}

// TestCallbacks are called at their multiples, once each whether or not the run is stopped in
// between, and may end it.
func TestCallbacks(t *testing.T) {
	cfg := small()
	at := func(list *[]int64) train.Hooks {
		return train.Hooks{Every: []train.Callback{{Steps: 70, Do: func(_ context.Context, tr *train.Trainer) error {
			*list = append(*list, tr.EnvSteps())
			return nil
		}}}}
	}
	var whole, parts []int64
	if o := run(t, options{cfg: cfg, hooks: at(&whole)}); o.err != nil || !slices.Equal(whole, []int64{80, 140, 220, 280, 360, 420, 500, 560}) {
		t.Errorf("called at %v, %v", whole, o.err)
	}
	for stop := 1; stop < 30; stop += 3 * longtest.Every(t, 4) {
		dir := t.TempDir()
		parts = nil
		run(t, options{cfg: cfg, hooks: at(&parts), dir: dir, stop: stop})
		run(t, options{cfg: cfg, hooks: at(&parts), dir: dir})
		if !slices.Equal(parts, whole) {
			t.Errorf("stopped after %d learner steps: called at %v", stop, parts)
		}
	}
	fault := errors.New("full")
	for want, err := range sorted.All(map[string]error{train.CallbackStopped: train.ErrStop, "full": fault}) {
		o := run(t, options{cfg: cfg, hooks: train.Hooks{Every: []train.Callback{{Steps: 100, Do: func(context.Context, *train.Trainer) error { return err }}}}})
		if o.EnvSteps != 100 || o.Stopped != want && (o.err == nil || !strings.Contains(o.err.Error(), "env step 100: callback: full")) {
			t.Errorf("%s: %+v %v", want, o.Result, o.err)
		}
	}
	if o := run(t, options{cfg: cfg, hooks: train.Hooks{Every: []train.Callback{{}}}}); o.err == nil || !strings.Contains(o.err.Error(), "callback 0") {
		t.Errorf("%v", o.err)
	}
}

// TestBestKeepsLimits: the best policy is one that keeps its limits, whatever others score, and of
// those that do not the one that passes them least; patience waits for that.
func TestBestKeepsLimits(t *testing.T) {
	for _, x := range []struct {
		excess []float64
		best   float64
		refs   int
	}{
		{[]float64{math.MaxFloat64, 0.5, 0, 0, 0.2, 0, 0, 0}, 0.7, 4},
		{[]float64{0.9, 0.4, 0.4, 0.8, 0.5, 0.6, 0.7, 0.7}, 0.8, 2},
		{nil, 0.9, 1},
	} {
		cfg := small()
		cfg.Validation.Patience = 4
		o := run(t, options{cfg: cfg, maker: &maker{rollout: 20, excess: x.excess}, hooks: train.Hooks{Evaluate: scripted(0, 0.9, 0.8, 0.6, 0.7, 0.5, 0.3, 0.2, 0.1), Publish: &publisher{}}})
		if o.err != nil || o.Best == nil || o.Best.Score != x.best || len(o.refs) != x.refs {
			t.Errorf("%v: best %+v, published %q, %v", x.excess, o.Best, o.refs, o.err)
		}
	}
}

// TestWarmup: a learner that only fills its replay has trained nothing, is saved and stopped all
// the same, and its policy is no candidate for the best.
func TestWarmup(t *testing.T) {
	cfg := small()
	o := run(t, options{cfg: cfg, maker: &maker{rollout: 20, warmup: 15}, hooks: train.Hooks{Evaluate: scripted(9, 9, 9, 9, 0.5, 0.6, 0.7, 0.8), Publish: &publisher{}}})
	if o.err != nil || o.Best == nil || o.Best.Score != 0.8 || len(o.refs) != 4 || !strings.HasPrefix(o.refs[0], "360:") {
		t.Errorf("%+v %v, best %+v, published %q", o.Result, o.err, o.Best, o.refs)
	}
	if first := o.lines[1].values; first["train/n_updates"] != 0 || first["time/iterations"] != 0 {
		if _, ok := first["train/loss"]; ok {
			t.Errorf("%v", first)
		}
	}
	for _, stop := range []int{3, 15, 16} {
		dir := t.TempDir()
		hooks := train.Hooks{Evaluate: evaluator(t)}
		whole := run(t, options{cfg: cfg, maker: &maker{rollout: 20, warmup: 15}, hooks: hooks})
		first := run(t, options{cfg: cfg, maker: &maker{rollout: 20, warmup: 15}, hooks: hooks, dir: dir, stop: stop})
		second := run(t, options{cfg: cfg, maker: &maker{rollout: 20, warmup: 15}, hooks: hooks, dir: dir})
		if first.Stopped != train.Interrupted || second.err != nil || !slices.Equal(second.weights, whole.weights) || !sameLines(append(first.lines, second.lines...), whole.lines) {
			t.Errorf("stopped after %d learner steps: %v, %v", stop, first.err, second.err)
		}
	}
}

// TestSetup: the length of the run reaches the agent, for its schedules; when a run grows it is the
// new one.
func TestSetup(t *testing.T) {
	m := &maker{rollout: 20}
	run(t, options{cfg: small(), maker: m})
	if m.setup.TotalEnvSteps != 595 || m.setup.Envs != 4 || m.setup.Threads != 1 {
		t.Errorf("%+v", m.setup)
	}
}

// TestProfileOfARun has every phase of the loop, and what the learner does not measure as the rest
// of its step.
func TestProfileOfARun(t *testing.T) {
	clock := time.Unix(0, 0)
	p := agents.NewProfile(func() time.Time { clock = clock.Add(time.Microsecond); return clock })
	tr, err := train.New(t.Context(), factory(t), &maker{rollout: 20}, agents.Setup{Engine: portable.New(), Key: rng.New(1), Profile: p}, small(), train.Hooks{})
	if err != nil {
		t.Fatal(err)
	}
	defer tr.Close()
	if _, err := tr.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	got := p.ByName()
	want := map[string]time.Duration{"act": 150, "env": 150, "record": 300, "learner rest": 30, "sync": 30}
	for name := range sorted.All(want) {
		want[name] *= time.Microsecond
	}
	if tr.Profile() != p || !maps.Equal(got, want) {
		t.Errorf("%v, expected %v", got, want)
	}
}

// succeeding tells at an episode's end whether it was short.
type succeeding struct {
	envs.Env
	n int
}

func (e *succeeding) Spec() envs.Spec {
	s := e.Env.Spec()
	s.Info = []string{"other", "is_success"}
	return s
}

func (e *succeeding) Reset(key rng.Key, ts *envs.TimeStep) error {
	e.n = 0
	return e.Env.Reset(key, ts)
}

func (e *succeeding) Step(a *tensor.Tensor, ts *envs.TimeStep) error {
	err := e.Env.Step(a, ts)
	e.n++
	ts.Info[1] = 0
	if e.n < 12 {
		ts.Info[1] = 1
	}
	return err
}

func (e *succeeding) SaveState() ([]byte, error) { return envs.SaveState(e.Env) }
func (e *succeeding) LoadState(s []byte, ts *envs.TimeStep) error {
	return envs.LoadState(e.Env, s, ts)
}

type wrapped struct {
	envs.Factory
	around func(envs.Env) envs.Env
}

func (f wrapped) New(s envs.Split, i int) (envs.Env, error) {
	e, err := f.Factory.New(s, i)
	if err != nil {
		return nil, err
	}
	return f.around(e), nil
}

func TestSuccessRate(t *testing.T) {
	cfg := small()
	cfg.TotalEnvSteps = 3000
	var last map[string]float64
	hooks := train.Hooks{Metrics: func(_ int64, v map[string]float64) { last = maps.Clone(v) }}
	f := wrapped{factory(t), func(e envs.Env) envs.Env { return &succeeding{Env: e} }}
	tr, err := train.New(t.Context(), f, &maker{rollout: 20}, agents.Setup{Engine: portable.New(), Key: rng.New(1)}, cfg, hooks)
	if err != nil {
		t.Fatal(err)
	}
	defer tr.Close()
	if _, err := tr.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if r := last["rollout/success_rate"]; !(r > 0.3 && r <= 1) {
		t.Errorf("success rate %v of %v", r, last)
	}
}

// TestNormalizedRun resumes bit for bit with statistics, hands them to the publisher, shows actors
// what the policy was trained on, and reports raw rewards.
func TestNormalizedRun(t *testing.T) {
	cfg := small()
	cfg.Normalize = wrap.Defaults().Normalize
	cfg.Normalize.Obs, cfg.Normalize.Reward = true, true
	cfg.Validation.Metric = "mean_reward"
	var published []train.Policy
	hooks := func() train.Hooks {
		return train.Hooks{Evaluate: evaluator(t), Publish: publishes(func(p train.Policy) { published = append(published, p) })}
	}
	whole := run(t, options{cfg: cfg, hooks: hooks()})
	plain := run(t, options{cfg: small(), hooks: train.Hooks{Evaluate: evaluator(t)}})
	if whole.err != nil || slices.Equal(whole.weights, plain.weights) || len(published) == 0 {
		t.Fatalf("%+v", whole)
	}
	n := published[0].Normalizers
	if len(n) != 1 || n[0].Field != "position" || n[0].Clip != 10 || n[0].Epsilon != 1e-8 || !(n[0].Mean[0] > 0.1 && n[0].Mean[0] < 0.9) || !(n[0].Var[0] > 0.01 && n[0].Var[0] < 0.2) {
		t.Errorf("published %+v", n)
	}
	// An episode of the corridor earns 1; scaled it would not.
	for _, l := range whole.lines {
		if r, ok := l.values["rollout/ep_rew_mean"]; ok && r != 1 {
			t.Errorf("env step %d: %v", l.step, r)
		}
	}
	for stop := 1; stop < 30; stop += 4 * longtest.Every(t, 3) {
		dir := t.TempDir()
		first := run(t, options{cfg: cfg, hooks: hooks(), dir: dir, stop: stop})
		second := run(t, options{cfg: cfg, hooks: hooks(), dir: dir})
		if second.err != nil || !slices.Equal(second.weights, whole.weights) || !slices.Equal(second.best, whole.best) || !sameLines(append(first.lines, second.lines...), whole.lines) {
			t.Errorf("stopped after %d learner steps: differs from the run that was not, %v", stop, second.err)
		}
	}

	tr, err := train.New(t.Context(), factory(t), &maker{rollout: 20}, agents.Setup{Engine: portable.New(), Key: rng.New(7)}, cfg, hooks())
	if err != nil {
		t.Fatal(err)
	}
	defer tr.Close()
	if _, err := tr.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	last := tr.Normalizers()
	if err := tr.UseBest(t.Context()); err != nil {
		t.Fatal(err)
	}
	best := tr.Normalizers()
	if want := published[len(published)-1].Normalizers; !slices.Equal(best[0].Mean, want[0].Mean) || !slices.Equal(best[0].Var, want[0].Var) {
		t.Errorf("the best policy's statistics are %+v, expected %+v", best, want)
	}
	if len(last) != 1 {
		t.Errorf("%+v", last)
	}
}

// publishes makes a publisher of a function.
type publishes func(train.Policy)

func (f publishes) Publish(_ context.Context, p train.Policy) (string, error) {
	f(p)
	return "", nil
}

// TestUnsavable resumes in new episodes where environments cannot be saved, with the statistics
// that the run had.
func TestUnsavable(t *testing.T) {
	cfg := small()
	cfg.Normalize = wrap.Defaults().Normalize
	cfg.Normalize.Obs, cfg.Normalize.Reward = true, true
	c, err := configs.NewKinded("corridor", corridor.Defaults())
	if err != nil {
		t.Fatal(err)
	}
	inner, err := envs.Open(t.Context(), []envs.Kind{corridor.Kind}, c)
	if err != nil {
		t.Fatal(err)
	}
	f := wrapped{inner, func(e envs.Env) envs.Env { return struct{ envs.Env }{e} }}
	dir := t.TempDir()
	first := run(t, options{cfg: cfg, dir: dir, stop: 10, factory: f})
	second := run(t, options{cfg: cfg, dir: dir, factory: f})
	if first.err != nil || first.Stopped != train.Interrupted || second.err != nil || second.EnvSteps != 600 || second.Taken != 400 {
		t.Errorf("%+v, then %+v", first.Result, second.Result)
	}
}

// TestPace has learner steps of a second, and evaluations of an hour, which do not count: progress
// and result tell one speed, of a run that continues that of the newer call.
func TestPace(t *testing.T) {
	cfg, dir := small(), t.TempDir()
	cfg.TotalEnvSteps, cfg.LogIntervalSteps = 600, 100
	now, told := time.Unix(0, 0), []float64{}
	hooks := train.Hooks{Now: func() time.Time { return now }}
	progress := func(p train.Progress) {
		now = now.Add(time.Second)
		told = append(told, p.StepsPerSecond)
	}
	inner := evaluator(t)
	hooks.Evaluate = func(ctx context.Context, p agents.Agent, at int64) (map[string]float64, error) {
		now = now.Add(time.Hour)
		return inner(ctx, p, at)
	}
	o := run(t, options{cfg: cfg, dir: dir, pauses: []int64{300}, hooks: hooks, progress: progress})
	if o.err != nil {
		t.Fatal(o.err)
	}
	if o.Taken != 300 || o.StepsPerSecond < 15 || o.StepsPerSecond > 22 || told[len(told)-1] != o.StepsPerSecond {
		t.Errorf("%+v, progress %v", o.Result, told)
	}
	for i, v := range told {
		if v != 0 && v < 15 || v > 40 { // 0 before a step was taken.
			t.Errorf("%v env steps/s at progress %d", v, i)
		}
	}
}
