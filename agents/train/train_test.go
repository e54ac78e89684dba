package train_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/onnxrl/onnxrl/agents"
	"github.com/onnxrl/onnxrl/agents/train"
	"github.com/onnxrl/onnxrl/configs"
	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/envs/corridor"
	"github.com/onnxrl/onnxrl/envs/vector"
	"github.com/onnxrl/onnxrl/models/checkpoint"
	"github.com/onnxrl/onnxrl/runtime/longtest"
	"github.com/onnxrl/onnxrl/runtime/portable"
	"github.com/onnxrl/onnxrl/runtime/rng"
	"github.com/onnxrl/onnxrl/runtime/sorted"
)

func corridors(t testing.TB, n int) *vector.Local {
	t.Helper()
	var list []envs.Env
	for range n {
		e, err := corridor.New(corridor.Defaults())
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, e)
	}
	v, err := vector.New(list, vector.Options{Workers: 1})
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func factory(t testing.TB) envs.Factory {
	t.Helper()
	c, err := configs.NewKinded("corridor", corridor.Defaults())
	if err != nil {
		t.Fatal(err)
	}
	f, err := envs.Open(t.Context(), []envs.Kind{corridor.Kind}, c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

// small is a run of 30 learner steps of 20 env steps each, in 4 environments; intervals are no
// multiples of these.
func small() train.Config {
	c := train.Defaults()
	c.NumEnvs, c.TotalEnvSteps, c.LogIntervalSteps, c.Threads = 4, 595, 50, 1
	c.Checkpoint = train.Checkpoint{EverySteps: 70, KeepLast: 2, KeepBest: 1}
	c.Validation = train.Validation{EverySteps: 90, Metric: "edge"}
	return c
}

// line is one record of metrics.
type line struct {
	step   int64
	values map[string]float64
}

// outcome is everything that a run leaves.
type outcome struct {
	train.Result
	weights []float32
	best    []float32
	lines   []line
	steps   []int64
	scores  []*float64
	refs    []string
	err     error
}

type options struct {
	cfg   train.Config
	maker *maker
	hooks train.Hooks
	// dir holds checkpoints, which a run continues from; stop ends the context after this many
	// learner steps of the process.
	dir  string
	stop int
	// pauses are env steps at which the run pauses, and edit is done at each.
	pauses []int64
	edit   func(tr *train.Trainer) error
	seed   uint64
	// factory, unless nil, makes other environments than corridors.
	factory envs.Factory
	// ctx, unless nil, ends the run; progress receives where it is.
	ctx      context.Context
	progress func(train.Progress)
	// during is called in every evaluation.
	during func(cancel func())
}

// publisher remembers what it was given.
type publisher struct {
	refs []string
	fail error
}

func (p *publisher) Publish(_ context.Context, b train.Policy) (string, error) {
	ref := fmt.Sprintf("%d:%s:%.6f:%v", b.EnvSteps, b.Metric, b.Score, b.Params.View("weight").Float32s())
	p.refs = append(p.refs, ref)
	return ref, p.fail
}

func run(t testing.TB, o options) outcome {
	t.Helper()
	if o.maker == nil {
		o.maker = &maker{rollout: 20}
	}
	if o.seed == 0 {
		o.seed = 7
	}
	if o.ctx == nil {
		o.ctx = t.Context()
	}
	ctx, cancel := context.WithCancel(o.ctx)
	defer cancel()
	var out outcome
	var tr *train.Trainer
	var store *checkpoint.Store
	from := int64(-1)
	h := o.hooks
	if h.Evaluate != nil && o.during != nil {
		inner := h.Evaluate
		h.Evaluate = func(ctx context.Context, a agents.Agent, at int64) (map[string]float64, error) {
			o.during(cancel)
			return inner(ctx, a, at)
		}
	}
	h.Metrics = func(step int64, values map[string]float64) {
		kept := maps.Clone(values)
		maps.DeleteFunc(kept, func(k string, _ float64) bool { return strings.HasPrefix(k, "time/") && k != "time/total_timesteps" })
		out.lines = append(out.lines, line{step, kept})
	}
	h.Save = func(step int64, score *float64) error {
		out.steps, out.scores = append(out.steps, step), append(out.scores, score)
		if store == nil {
			return nil
		}
		_, err := store.Save(checkpoint.Meta{Kind: "train", Step: step, Score: score}, tr)
		return err
	}
	left := o.stop
	h.Progress = func(p train.Progress) {
		if o.progress != nil {
			o.progress(p)
		}
		if left--; left == 0 {
			cancel()
		}
	}
	var err error
	if o.factory == nil {
		o.factory = factory(t)
	}
	tr, err = train.New(ctx, o.factory, o.maker, agents.Setup{Engine: portable.New(), Key: rng.New(o.seed)}, o.cfg, h)
	if err != nil {
		out.err = err
		return out
	}
	defer func() {
		if err := tr.Close(); err != nil {
			t.Error(err)
		}
	}()
	if o.dir != "" {
		if store, err = checkpoint.OpenStore(o.dir, checkpoint.Options{KeepLast: 3}); err != nil {
			t.Fatal(err)
		}
		defer store.Close()
		c, err := checkpoint.Latest(o.dir)
		if err == nil {
			defer c.Close()
			if err := c.Load(tr); err != nil {
				t.Fatal(err)
			}
			from = c.Step
		} else if !errors.Is(err, checkpoint.ErrNone) {
			t.Fatal(err)
		}
	}
	for _, at := range o.pauses {
		res, err := tr.RunTo(ctx, at)
		if err != nil || res.Stopped != train.Paused || tr.Finished() || res.EnvSteps != (at+19)/20*20 || len(out.steps) == 0 || out.steps[len(out.steps)-1] != res.EnvSteps {
			t.Errorf("paused at %d with %+v, %v; saved at %v", at, res, err, out.steps)
		}
		if o.edit != nil {
			if err := o.edit(tr); err != nil {
				t.Error(err)
			}
		}
	}
	out.Result, out.err = tr.Run(ctx)
	out.weights = slices.Concat(o.maker.made.params.View("weight").Float32s(), o.maker.made.params.View("bias").Float32s())
	if err := tr.UseBest(context.Background()); err != nil {
		t.Fatal(err)
	}
	out.best = slices.Concat(o.maker.made.params.View("weight").Float32s(), o.maker.made.params.View("bias").Float32s())
	if p, ok := h.Publish.(*publisher); ok {
		out.refs = p.refs
	}
	if from >= 0 && tr.EnvSteps() < from {
		t.Errorf("resumed at %d and ended at %d", from, tr.EnvSteps())
	}
	return out
}

// sameLines compares metrics as they end up in a file: those of a resumed run after the step it
// resumed from are its own. NaN equals NaN.
func sameLines(a, b []line) bool {
	return slices.EqualFunc(a, b, func(x, y line) bool {
		return x.step == y.step && maps.EqualFunc(x.values, y.values, func(p, q float64) bool { return math.Float64bits(p) == math.Float64bits(q) })
	})
}

func TestRunLearnsAndCounts(t *testing.T) {
	cfg := small()
	cfg.TotalEnvSteps = 6000
	p := &publisher{}
	clock := time.Unix(0, 0)
	o := run(t, options{cfg: cfg, hooks: train.Hooks{Evaluate: evaluator(t), Publish: p, Now: func() time.Time { clock = clock.Add(time.Second); return clock }}})
	if o.err != nil {
		t.Fatal(o.err)
	}
	if o.EnvSteps != 6000 || o.LearnerSteps != 300 || o.Taken != 6000 || o.Stopped != "" || o.Episodes < 300 {
		t.Errorf("%+v", o.Result)
	}
	// From a random walk to almost always right.
	if o.Last.Metrics["mean_reward"] < 0.15 || o.lines[0].values["eval/edge"] > 0.6 || o.Best.Score < 0.7 {
		t.Errorf("mean reward %v, before training %v, best %+v", o.Last.Metrics, o.lines[0].values, o.Best)
	}
	last := o.lines[len(o.lines)-2].values
	for _, tag := range []string{"train/loss", "rollout/ep_rew_mean", "rollout/ep_len_mean", "rollout/reward_mean", "time/total_timesteps"} {
		if _, ok := last[tag]; !ok {
			t.Errorf("the last record has no %s: %v", tag, last)
		}
	}
	if last["rollout/ep_rew_mean"] != 1 || last["rollout/ep_len_mean"] > 10 {
		t.Errorf("%v", last)
	}
	if !slices.IsSorted(o.steps) || o.steps[0] != 0 || o.steps[len(o.steps)-1] != 6000 {
		t.Errorf("checkpoints at %v", o.steps)
	}
	if len(p.refs) < 3 || o.Published != p.refs[len(p.refs)-1] {
		t.Errorf("published %q", p.refs)
	}
}

// TestIntervals: what is due happens at the first learner step at or after each multiple of its
// interval, and at the ends.
func TestIntervals(t *testing.T) {
	cfg := small()
	cfg.Checkpoint.KeepBest = 0
	o := run(t, options{cfg: cfg, hooks: train.Hooks{Evaluate: evaluator(t)}})
	if o.err != nil {
		t.Fatal(o.err)
	}
	var logged, evaluated []int64
	for _, l := range o.lines {
		if _, ok := l.values["eval/edge"]; ok {
			evaluated = append(evaluated, l.step)
		} else {
			logged = append(logged, l.step)
		}
	}
	for what, c := range sorted.All(map[string][2][]int64{
		"metrics":     {logged, {60, 100, 160, 200, 260, 300, 360, 400, 460, 500, 560, 600}},
		"evaluations": {evaluated, {0, 100, 180, 280, 360, 460, 540, 600}},
		"checkpoints": {o.steps, {0, 80, 140, 220, 280, 360, 420, 500, 560, 600}},
	}) {
		if !slices.Equal(c[0], c[1]) {
			t.Errorf("%s at %v, expected %v", what, c[0], c[1])
		}
	}
	// A checkpoint has a score exactly where the policy was evaluated at the same step.
	for i, s := range o.steps {
		if slices.Contains(evaluated, s) != (o.scores[i] != nil) {
			t.Errorf("checkpoint of step %d: score %v", s, o.scores[i])
		}
	}
}

// TestResumeEqualsUninterrupted stops a run after every one of its learner steps, and in the middle
// of every evaluation, and requires the bits of the uninterrupted run.
func TestResumeEqualsUninterrupted(t *testing.T) {
	longtest.Slow(t)
	cfg := small()
	hooks := func() train.Hooks { return train.Hooks{Evaluate: evaluator(t), Publish: &publisher{}} }
	whole := run(t, options{cfg: cfg, hooks: hooks()})
	if whole.err != nil || whole.LearnerSteps != 30 || len(whole.refs) < 2 {
		t.Fatalf("%+v", whole)
	}
	check := func(what string, first, second outcome) {
		t.Helper()
		if first.err != nil || second.err != nil || second.Stopped != "" {
			t.Fatalf("%s: %v, %v, %q", what, first.err, second.err, second.Stopped)
		}
		if !slices.Equal(second.weights, whole.weights) || !slices.Equal(second.best, whole.best) {
			t.Errorf("%s: weights %v and best %v, expected %v and %v", what, second.weights, second.best, whole.weights, whole.best)
		}
		if !sameLines(append(first.lines, second.lines...), whole.lines) {
			t.Errorf("%s: other metrics:\n%v\n%v\nexpected\n%v", what, first.lines, second.lines, whole.lines)
		}
		if refs := append(first.refs, second.refs...); !slices.Equal(refs, whole.refs) {
			t.Errorf("%s: published %q, expected %q", what, refs, whole.refs)
		}
		second.Taken, second.Train = whole.Taken, whole.Train
		if fmt.Sprint(second.Best, second.Last, second.Published, second.Episodes) != fmt.Sprint(whole.Best, whole.Last, whole.Published, whole.Episodes) {
			t.Errorf("%s: result %+v, expected %+v", what, second.Result, whole.Result)
		}
	}
	for stop := 1; stop < 30; stop++ {
		dir := t.TempDir()
		first := run(t, options{cfg: cfg, hooks: hooks(), dir: dir, stop: stop})
		if first.Stopped != train.Interrupted || first.LearnerSteps != int64(stop) {
			t.Fatalf("stopped after %d learner steps: %+v", stop, first.Result)
		}
		check(fmt.Sprintf("stopped after learner step %d", stop), first, run(t, options{cfg: cfg, hooks: hooks(), dir: dir}))
	}
	evaluations := 8
	for n := 1; n <= evaluations; n++ {
		dir, count := t.TempDir(), 0
		first := run(t, options{cfg: cfg, hooks: hooks(), dir: dir, during: func(cancel func()) {
			if count++; count == n {
				cancel()
			}
		}})
		if first.Stopped != train.Interrupted {
			t.Fatalf("stopped in evaluation %d: %+v", n, first)
		}
		check(fmt.Sprintf("stopped in evaluation %d", n), first, run(t, options{cfg: cfg, hooks: hooks(), dir: dir}))
	}
	// A context that has ended before the run begins, and one that ends after each learner step.
	dir := t.TempDir()
	var all outcome
	for n := 0; ; n++ {
		o := run(t, options{cfg: cfg, hooks: hooks(), dir: dir, stop: 1})
		if o.Stopped == "" {
			check("one learner step at a time", all, o)
			break
		}
		all.lines, all.refs = append(all.lines, o.lines...), append(all.refs, o.refs...)
		if n > 40 {
			t.Fatal("the run does not end")
		}
	}
}

// TestCrash loses what came after the newest checkpoint and does it again.
func TestCrash(t *testing.T) {
	cfg := small()
	whole := run(t, options{cfg: cfg, hooks: train.Hooks{Evaluate: evaluator(t)}})
	fault := errors.New("lightning")
	cases := 0
	every := longtest.Every(t, 3)
	for at := 5; at <= 30; at += 5 * every {
		dir := t.TempDir()
		first := run(t, options{cfg: cfg, hooks: train.Hooks{Evaluate: evaluator(t)}, dir: dir, maker: &maker{rollout: 20, poison: at, fail: fault}})
		if !errors.Is(first.err, fault) || !strings.Contains(first.err.Error(), fmt.Sprintf("learner step %d", at)) {
			t.Fatalf("%v", first.err)
		}
		second := run(t, options{cfg: cfg, hooks: train.Hooks{Evaluate: evaluator(t)}, dir: dir})
		from := first.steps[len(first.steps)-1]
		kept := slices.DeleteFunc(first.lines, func(l line) bool { return l.step > from })
		if second.err != nil || !slices.Equal(second.weights, whole.weights) || !sameLines(append(kept, second.lines...), whole.lines) {
			t.Errorf("crash at learner step %d: differs from the uninterrupted run", at)
		}
		cases++
	}
	if cases != 6/every {
		t.Errorf("%d cases", cases)
	}
}

// TestEvaluationDisturbsNothing compares runs with and without it, and with another amount of it.
func TestEvaluationDisturbsNothing(t *testing.T) {
	cfg := small()
	rare := cfg
	rare.Validation.EverySteps = 300
	off := cfg
	off.Validation.EverySteps = 0
	whole := run(t, options{cfg: cfg, hooks: train.Hooks{Evaluate: evaluator(t)}})
	training := func(o outcome) []line {
		return slices.DeleteFunc(slices.Clone(o.lines), func(l line) bool { _, ok := l.values["eval/edge"]; return ok })
	}
	for what, o := range sorted.All(map[string]outcome{
		"without an evaluator": run(t, options{cfg: cfg}),
		"never":                run(t, options{cfg: off, hooks: train.Hooks{Evaluate: evaluator(t)}}),
		"seldom":               run(t, options{cfg: rare, hooks: train.Hooks{Evaluate: evaluator(t)}}),
	}) {
		if o.err != nil || !slices.Equal(o.weights, whole.weights) || !sameLines(training(o), training(whole)) {
			t.Errorf("%s: other weights or metrics", what)
		}
	}
	if other := run(t, options{cfg: cfg, seed: 8}); slices.Equal(other.weights, whole.weights) {
		t.Error("another seed gives the same weights")
	}
}

// scripted evaluates to given scores, one after the other.
func scripted(scores ...float64) train.Evaluator {
	return func(context.Context, agents.Agent, int64) (map[string]float64, error) {
		s := scores[0]
		scores = scores[1:]
		return map[string]float64{"edge": s}, nil
	}
}

func TestEarlyStopAndBest(t *testing.T) {
	cfg := small()
	cfg.Validation.Patience, cfg.Validation.MinDelta = 2, 0.1
	dir := t.TempDir()
	// The first score is of the untrained policy. 0.55 is better than 0.5, but not by enough to
	// reset the patience; NaN and infinity never are.
	p := &publisher{}
	o := run(t, options{cfg: cfg, dir: dir, hooks: train.Hooks{Evaluate: scripted(9, 0.5, math.Inf(1), 0.7, 0.75, math.NaN(), 1), Publish: p}})
	if o.err != nil || o.Stopped != train.EarlyStopped || o.EnvSteps != 460 || o.Best.Score != 0.75 || o.Best.EnvSteps != 360 || !math.IsNaN(o.Last.Score) {
		t.Fatalf("%+v %v, best %+v, last %+v", o.Result, o.err, o.Best, o.Last)
	}
	if len(p.refs) != 3 || !strings.HasPrefix(p.refs[2], "360:edge:0.75") {
		t.Errorf("published %q", p.refs)
	}
	if slices.Equal(o.weights, o.best) {
		t.Error("the best parameters are the last ones")
	}
	if o.steps[len(o.steps)-1] != 460 {
		t.Errorf("checkpoints at %v", o.steps)
	}
	// A run that has stopped by itself has nothing left to do, even when it may take more env
	// steps.
	cfg.TotalEnvSteps = 5000
	again := run(t, options{cfg: cfg, dir: dir, hooks: train.Hooks{Evaluate: scripted(), Publish: &publisher{}}})
	if again.err != nil || again.Taken != 0 || again.Stopped != train.EarlyStopped || !slices.Equal(again.best, o.best) || len(again.lines)+len(again.steps)+len(again.refs) != 0 {
		t.Errorf("%+v", again)
	}
}

// TestUndefinedScores: where no evaluation has a defined score there is no best policy, and the one
// at the end is published once, without a score.
func TestUndefinedScores(t *testing.T) {
	cfg := small()
	cfg.Validation.Metric = "undefined"
	dir := t.TempDir()
	o := run(t, options{cfg: cfg, dir: dir, hooks: train.Hooks{Evaluate: evaluator(t), Publish: &publisher{}}})
	if o.err != nil || o.Best != nil || o.Last == nil || len(o.refs) != 1 || !strings.HasPrefix(o.refs[0], "600::") || !slices.Equal(o.best, o.weights) {
		t.Errorf("%+v %v, published %q", o.Result, o.err, o.refs)
	}
	if len(o.scores) == 0 {
		t.Error("no checkpoints")
	}
	for i, s := range o.scores {
		if s != nil {
			t.Errorf("the checkpoint at %d has the score %g", o.steps[i], *s)
		}
	}
	if again := run(t, options{cfg: cfg, dir: dir, hooks: train.Hooks{Evaluate: evaluator(t), Publish: &publisher{}}}); len(again.refs) != 0 {
		t.Errorf("published again: %v", again.refs)
	}
}

// TestGrow lets a finished run go on.
func TestGrow(t *testing.T) {
	cfg := small()
	cfg.TotalEnvSteps = 600
	dir := t.TempDir()
	run(t, options{cfg: cfg, dir: dir})
	cfg.TotalEnvSteps = 1200
	grown, whole := run(t, options{cfg: cfg, dir: dir}), run(t, options{cfg: cfg})
	if grown.err != nil || grown.Taken != 600 || !slices.Equal(grown.weights, whole.weights) {
		t.Errorf("%+v %v", grown.Result, grown.err)
	}
}

// TestUnvalidatedRunPublishesItsEnd also asks for the last policy exactly once.
func TestUnvalidatedRunPublishesItsEnd(t *testing.T) {
	dir := t.TempDir()
	o := run(t, options{cfg: small(), dir: dir, hooks: train.Hooks{Publish: &publisher{}}})
	if o.err != nil || len(o.refs) != 1 || !strings.HasPrefix(o.refs[0], "600::") || o.Published != o.refs[0] || o.Best != nil || !slices.Equal(o.best, o.weights) {
		t.Errorf("%+v %v", o.Result, o.refs)
	}
	if again := run(t, options{cfg: small(), dir: dir, hooks: train.Hooks{Publish: &publisher{}}}); len(again.refs) != 0 || again.Published != o.Published {
		t.Errorf("published again: %v", again.refs)
	}
}

func TestErrorsSayWhere(t *testing.T) {
	fault := errors.New("no space")
	unknown := small()
	unknown.Validation.Metric = "sharp"
	bad := small()
	bad.NumEnvs, bad.Checkpoint.KeepLast = -1, 0
	n := 0
	for what, c := range sorted.All(map[string]struct {
		o    options
		says []string
	}{
		"unknown metric": {options{cfg: unknown, hooks: train.Hooks{Evaluate: evaluator(t)}}, []string{"env step 0", "train.validation.metric", `"sharp"`, "edge, mean_reward, undefined"}},
		"NaN loss":       {options{cfg: small(), maker: &maker{rollout: 20, poison: 3}}, []string{"env step 60", "learner step 3", "the loss is NaN"}},
		"publisher":      {options{cfg: small(), hooks: train.Hooks{Evaluate: evaluator(t), Publish: &publisher{fail: fault}}}, []string{"publish the policy", "no space"}},
		"configuration":  {options{cfg: bad}, []string{"num_envs", "checkpoint.keep_last"}},
		"evaluation": {options{cfg: small(), hooks: train.Hooks{Evaluate: func(context.Context, agents.Agent, int64) (map[string]float64, error) { return nil, fault }}},
			[]string{"env step 0: evaluate: no space"}},
	}) {
		o := run(t, c.o)
		if o.err == nil {
			t.Errorf("%s: no error", what)
			continue
		}
		for _, s := range c.says {
			if !strings.Contains(o.err.Error(), s) {
				t.Errorf("%s: the error does not say %q: %v", what, s, o.err)
			}
		}
		n++
	}
	if n != 5 {
		t.Errorf("%d cases", n)
	}
}

// TestRoundsAllocateNothing compares the allocations of a long run with those of a short one:
// collecting, counting and learning are the inner loop of every run.
func TestRoundsAllocateNothing(t *testing.T) {
	mallocs := func(steps int64) uint64 {
		cfg := small()
		cfg.TotalEnvSteps, cfg.LogIntervalSteps, cfg.Checkpoint.EverySteps = steps, 1<<40, 0
		tr, err := train.New(t.Context(), factory(t), &maker{rollout: 20}, agents.Setup{Engine: portable.New(), Key: rng.New(1)}, cfg, train.Hooks{})
		if err != nil {
			t.Fatal(err)
		}
		defer tr.Close()
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		if _, err := tr.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		runtime.ReadMemStats(&after)
		return after.Mallocs - before.Mallocs
	}
	// 5,000 rounds and 1,000 learner steps lie between the two.
	if short, long := mallocs(20_000), mallocs(40_000); long > short+200 {
		t.Errorf("%d allocations in 5,000 rounds, %d in 10,000", short, long)
	}
}
