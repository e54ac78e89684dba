package train_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/onnxrl/onnxrl/agents"
	"github.com/onnxrl/onnxrl/agents/actors"
	"github.com/onnxrl/onnxrl/agents/impala"
	"github.com/onnxrl/onnxrl/agents/train"
	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/models/checkpoint"
	"github.com/onnxrl/onnxrl/runtime/longtest"
	"github.com/onnxrl/onnxrl/runtime/portable"
	"github.com/onnxrl/onnxrl/runtime/rng"
)

// withActors is a run of 30 learner steps of 5 rounds of 4 environments.
func withActors(c actors.Config) train.Config {
	cfg := small()
	cfg.Actors, cfg.Validation = c, train.Validation{EverySteps: 90}
	return cfg
}

func unroller(t testing.TB) agents.Maker {
	t.Helper()
	c := impala.Defaults()
	c.NSteps, c.NEpochs, c.Hidden, c.LearningRate = 5, 2, []int{6}, 3e-3
	m, err := impala.NewMaker(c)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// left is what a run with actors leaves.
type left struct {
	train.Result
	params []float32
	lines  []line
	log    string
	err    error
}

// act trains with actors. dir holds checkpoints, which the run continues from; stop, unless 0, ends
// the context after so many learner steps of the process, before what follows on the last.
func act(t testing.TB, cfg train.Config, f envs.Factory, dir string, stop int, changes ...func(*train.Hooks)) (out left) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var tr *train.Trainer
	var store *checkpoint.Store
	var log bytes.Buffer
	h := train.Hooks{
		Log: slog.New(slog.NewTextHandler(&log, nil)),
		Metrics: func(step int64, values map[string]float64) {
			kept := maps.Clone(values)
			maps.DeleteFunc(kept, func(k string, _ float64) bool {
				return strings.HasPrefix(k, "time/") && k != "time/total_timesteps" || strings.HasPrefix(k, "train/policy_lag")
			})
			out.lines = append(out.lines, line{step, kept})
		},
		Save: func(step int64, score *float64) error {
			if store == nil {
				return nil
			}
			_, err := store.Save(checkpoint.Meta{Kind: "train", Step: step, Score: score}, tr)
			return err
		},
		Progress: func(p train.Progress) {
			if p.Update == 0 {
				if stop--; stop == 0 {
					cancel()
				}
			}
		},
	}
	for _, change := range changes {
		change(&h)
	}
	tr, out.err = train.New(ctx, f, unroller(t), agents.Setup{Engine: portable.New(), Key: rng.New(7)}, cfg, h)
	if out.err != nil {
		return out
	}
	defer func() {
		if err := tr.Close(); err != nil {
			t.Error(err)
		}
	}()
	if dir != "" {
		var err error
		if store, err = checkpoint.OpenStore(dir, checkpoint.Options{KeepLast: 2}); err != nil {
			t.Fatal(err)
		}
		defer store.Close()
		c, err := checkpoint.Latest(dir)
		if err == nil {
			defer c.Close()
			err = c.Load(tr)
		}
		if err != nil && !errors.Is(err, checkpoint.ErrNone) {
			out.err = err
			return out
		}
	}
	out.Result, out.err = tr.Run(ctx)
	_, params := tr.Agent().Learner().Policy()
	for _, s := range params.Segments() {
		out.params = append(out.params, s.Floats()...)
	}
	out.log = log.String()
	return out
}

// TestActorsInTurns: one actor whose parameters are never behind gives the bits of a trainer that
// acts by itself, and several give the same ones each time; also when the run is stopped anywhere.
func TestActorsInTurns(t *testing.T) {
	longtest.Slow(t)
	whole := act(t, withActors(actors.Config{}), factory(t), "", 0)
	if whole.err != nil || whole.Lag != nil || whole.LearnerSteps != 30 {
		t.Fatalf("%+v %v", whole.Result, whole.err)
	}
	n := 0
	for _, count := range []int{1, 2, 4} {
		want := whole
		for _, stop := range []int{0, 1, 4, 7, 11} {
			dir := t.TempDir()
			var got left
			if stop > 0 {
				if got = act(t, withActors(actors.Config{Count: count}), factory(t), dir, 2*stop); got.err != nil || got.Stopped != train.Interrupted {
					t.Fatalf("%d actors, stopped after %d: %+v %v", count, 2*stop, got.Result, got.err)
				}
			}
			before := got.lines
			got = act(t, withActors(actors.Config{Count: count}), factory(t), dir, 0)
			if got.err != nil || got.Lag == nil || got.Lag.Max != 0 || got.EnvSteps != 600 || got.LearnerSteps != 30 {
				t.Fatalf("%d actors: %+v %v", count, got.Result, got.err)
			}
			if count > 1 && stop == 0 {
				if slices.Equal(got.params, whole.params) {
					t.Errorf("%d actors draw what one does", count)
				}
				want = got
			}
			n++
			if !slices.Equal(got.params, want.params) || !sameLines(slices.Concat(before, got.lines), want.lines) || got.Episodes != want.Episodes {
				t.Errorf("%d actors, stopped after %d learner steps: another run", count, 2*stop)
			}
		}
	}
	if n != 15 {
		t.Errorf("%d runs", n)
	}
}

// TestActorsBehind: actors that may be behind are, by no more than they may; every env step counts
// once, whether or not the run is stopped.
func TestActorsBehind(t *testing.T) {
	for _, c := range []actors.Config{{Count: 1, MaxPolicyLag: 1}, {Count: 2, MaxPolicyLag: 2}, {Count: 4, MaxPolicyLag: 1}} {
		dir := t.TempDir()
		first := act(t, withActors(c), factory(t), dir, 11)
		if first.err != nil || first.Stopped != train.Interrupted || first.LearnerSteps < 11 {
			t.Fatalf("%+v: %+v %v", c, first.Result, first.err)
		}
		second := act(t, withActors(c), factory(t), dir, 0)
		if second.err != nil || second.Stopped != "" || second.EnvSteps != 600 || second.Taken != 600-first.EnvSteps || second.LearnerSteps != 30 || second.Lag.Max > int64(c.MaxPolicyLag) || second.Lag.Mean > float64(c.MaxPolicyLag) {
			t.Errorf("%+v: %+v %+v %v", c, second.Result, second.Lag, second.err)
		}
		if m := second.Train; m["train/policy_lag_max"] > float64(c.MaxPolicyLag) || m["train/policy_lag_mean"] > m["train/policy_lag_max"] {
			t.Errorf("%+v: %v", c, m)
		}
	}
}

// TestActorsFail: an environment that fails ends the run, which says which actor's it was and goes
// on afterwards; one that hangs is given up.
func TestActorsFail(t *testing.T) {
	c := actors.Config{Count: 2, MaxPolicyLag: 1}
	dir := t.TempDir()
	fault := disturbed{factory(t), func(n int) error {
		if n == 33 {
			return errors.New("out of paper")
		}
		return nil
	}}
	o := act(t, withActors(c), fault, dir, 0)
	if o.err == nil || !strings.Contains(o.err.Error(), "actor ") || !strings.Contains(o.err.Error(), "of 2: round 32: step: ") || !strings.Contains(o.err.Error(), "out of paper") || o.EnvSteps > 120 {
		t.Errorf("%+v %v", o.Result, o.err)
	}
	if o := act(t, withActors(c), factory(t), dir, 0); o.err != nil || o.EnvSteps != 600 {
		t.Errorf("%+v %v", o.Result, o.err)
	}

	release, hung := make(chan struct{}), make(chan struct{}, 2)
	slow := disturbed{factory(t), func(n int) error {
		if n == 33 {
			hung <- struct{}{}
			<-release
		}
		return nil
	}}
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-hung
		cancel()
	}()
	tr, err := train.New(ctx, slow, unroller(t), agents.Setup{Engine: portable.New(), Key: rng.New(7)}, withActors(c), train.Hooks{Patience: time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	res, err := tr.Run(ctx)
	if err != nil || res.Stopped != train.Interrupted || res.EnvSteps > 120 {
		t.Errorf("%+v %v", res, err)
	}
	if err := tr.Close(); err != nil {
		t.Error(err)
	}
	close(release)
}

// TestActorsUnsaved: environments that cannot be saved begin new episodes in a run that goes on.
func TestActorsUnsaved(t *testing.T) {
	dir := t.TempDir()
	c := withActors(actors.Config{Count: 2})
	first := act(t, c, unsaved{factory(t)}, dir, 7)
	if first.err != nil || strings.Count(first.log, "begins new episodes") != 1 {
		t.Errorf("%v, %s", first.err, first.log)
	}
	second := act(t, c, unsaved{factory(t)}, dir, 0)
	if second.err != nil || second.EnvSteps != 600 || strings.Count(second.log, "could not be saved") != 2 {
		t.Errorf("%+v %v, %s", second.Result, second.err, second.log)
	}
}

// TestActorsRefused names what does not fit.
func TestActorsRefused(t *testing.T) {
	n := 0
	for _, c := range []struct {
		change func(*train.Config)
		want   string
	}{
		{func(c *train.Config) { c.Actors.Count = 3 }, "actors.count: is 3, expected a divisor of num_envs, which is 4"},
		{func(c *train.Config) { c.Normalize.Obs = true }, "cannot be combined with wrappers.normalize"},
		{func(c *train.Config) { c.Actors.MaxPolicyLag = -1 }, "actors.max_policy_lag"},
	} {
		cfg := withActors(actors.Config{Count: 2})
		c.change(&cfg)
		if o := act(t, cfg, factory(t), "", 0); o.err == nil || !strings.Contains(o.err.Error(), c.want) {
			t.Errorf("%v does not say %q", o.err, c.want)
		}
		n++
	}
	dir := t.TempDir()
	act(t, withActors(actors.Config{Count: 2}), factory(t), dir, 3)
	for count, want := range []string{"", "the run has more than 1 actors", "", "", "the run is not one of 4 actors"} {
		if want == "" {
			continue
		}
		if o := act(t, withActors(actors.Config{Count: count}), factory(t), dir, 0); o.err == nil || !strings.Contains(o.err.Error(), want) {
			t.Errorf("%v does not say %q", o.err, want)
		}
		n++
	}
	tr, err := train.New(t.Context(), factory(t), &maker{rollout: 20}, agents.Setup{Engine: portable.New(), Key: rng.New(7)}, withActors(actors.Config{Count: 2}), train.Hooks{})
	if err == nil {
		err = tr.Close()
	}
	if err == nil || !strings.Contains(err.Error(), "impala and appo can") {
		t.Errorf("%v", err)
	}
	if n != 5 {
		t.Errorf("%d refusals", n)
	}
}

// TestActorsAreEdited: hyper-parameters change between two calls, for the actors too.
func TestActorsAreEdited(t *testing.T) {
	var parts [2][]float32
	for i, c := range []actors.Config{{}, {Count: 1}} {
		cfg := withActors(c)
		tr, err := train.New(t.Context(), factory(t), unroller(t), agents.Setup{Engine: portable.New(), Key: rng.New(7)}, cfg, train.Hooks{})
		if err != nil {
			t.Fatal(err)
		}
		for _, at := range []int64{100, 101, 300} {
			if res, err := tr.RunTo(t.Context(), at); err != nil || res.Stopped != train.Paused {
				t.Fatalf("%+v %v", res, err)
			}
			other := impala.Defaults()
			other.NSteps, other.NEpochs, other.Hidden, other.LearningRate, other.Gamma = 5, 1, []int{6}, 1e-2, 0.8
			m, err := impala.NewMaker(other)
			if err != nil {
				t.Fatal(err)
			}
			if err := tr.Edit(t.Context(), m, cfg); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := tr.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		_, params := tr.Agent().Learner().Policy()
		for _, s := range params.Segments() {
			parts[i] = append(parts[i], s.Floats()...)
		}
		if err := tr.Close(); err != nil {
			t.Error(err)
		}
	}
	if !slices.Equal(parts[0], parts[1]) {
		t.Error("the edited run with an actor differs from one that acts by itself")
	}
}
