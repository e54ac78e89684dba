package a2c

import (
	"context"
	"errors"
	"slices"
	"testing"

	"onnxrl/agents"
	"onnxrl/envs/market/trading"
	"onnxrl/envs/vector"
	"onnxrl/models"
	"onnxrl/models/checkpoint"
	"onnxrl/runtime/engine/testengines"
	"onnxrl/runtime/rng"
)

// TestSameSeedSameBits trains twice.
func TestSameSeedSameBits(t *testing.T) {
	splitSmall(t)
	n := 0
	for _, e := range testengines.All(t) {
		for _, share := range []string{On, Off} {
			c := small(t, nil)
			c.Optimizer.Kind, c.ShareWindows = "adam", share
			world := func() vector.Env {
				return markets(t, market(70, 3, 4, false), 3, func(c *trading.Config) {
					c.Window, c.Episode.Kind, c.Episode.Length = 6, trading.Random, 13
				})
			}
			a, b := learn(t, c, world(), e, 2, 4), learn(t, c, world(), e, 2, 4)
			if n++; !slices.Equal(a.params, b.params) || !slices.Equal(a.numbers, b.numbers) || !slices.Equal(a.actions, b.actions) || !slices.Equal(a.loss, b.loss) {
				t.Errorf("%s, share %s: two runs of one seed differ", e.Name(), share)
			}
		}
	}
	if n < 2 {
		t.Errorf("%d comparisons", n)
	}
}

// TestResume saves after some updates, loads into a fresh agent, and compares with never having stopped, bit by bit.
func TestResume(t *testing.T) {
	splitSmall(t)
	n := 0
	for _, e := range testengines.All(t) {
		for what, change := range map[string]func(c *Config){
			"shared":      func(c *Config) { c.ShareWindows = On },
			"single":      func(c *Config) { c.ShareWindows = Off },
			"frozen":      func(c *Config) { c.Freeze = []string{"encoder.*"} },
			"separate":    func(c *Config) { c.Encoders = Separate },
			"own policy":  func(c *Config) { c.Policy = ownMarket(t, 4) },
			"own, single": func(c *Config) { c.Policy, c.ShareWindows, c.Encoders = ownMarket(t, 4), Off, Separate },
			"rms, factor": func(c *Config) { c.Optimizer.Kind = "rmsprop"; c.Schedule.Kind = "cosine"; c.Schedule.Steps = 7 },
		} {
			c := small(t, nil)
			c.Optimizer.Kind = "adam"
			change(&c)
			world := func() vector.Env {
				return markets(t, market(70, 3, 4, false), 2, func(c *trading.Config) {
					c.Window, c.Episode.Kind, c.Episode.Length = 6, trading.Random, 13
				})
			}
			v := world()
			r := newTrainingRun(t, agent(t, c, v, e, 2), v)
			forward := func(r *training, k int) {
				for range k {
					if _, err := r.update(t.Context()); err != nil {
						t.Fatal(err)
					}
				}
			}
			forward(r, 3)
			store, err := checkpoint.OpenStore(t.TempDir(), checkpoint.Options{})
			if err != nil {
				t.Fatal(err)
			}
			closing(t, store)
			path, err := store.Save(checkpoint.Meta{Kind: "a2c", Step: 3}, r.a.Learner())
			if err != nil {
				t.Fatal(err)
			}
			world1, err := v.(*vector.Local).SaveState()
			if err != nil {
				t.Fatal(err)
			}
			// An evaluation in between changes nothing.
			if err := agents.Collect(t.Context(), world(), actorOf(t, r.a, agents.Greedy, 2), nil, rng.New(1), 0, 15, nil); err != nil {
				t.Fatal(err)
			}
			forward(r, 4)

			v2 := world()
			if err := v2.(*vector.Local).LoadState(world1); err != nil {
				t.Fatal(err)
			}
			fresh := newTrainingRun(t, agent(t, c, v2, e, 2), v2)
			for _, s := range fresh.a.params.Segments() {
				clear(s.Floats())
			}
			saved, err := checkpoint.Open(path)
			if err != nil {
				t.Fatal(err)
			}
			closing(t, saved)
			if err := saved.Load(fresh.a.Learner()); err != nil {
				t.Fatal(err)
			}
			fresh.round = 30
			forward(fresh, 4)
			for i, s := range r.a.params.Segments() {
				if n++; !slices.Equal(s.Floats(), fresh.a.params.Segments()[i].Floats()) {
					t.Errorf("%s, %s: the %v parameters differ from those of a run that never stopped", e.Name(), what, s.Role)
				}
			}
			if fresh.a.learner.updates != 7 {
				t.Errorf("%d updates", fresh.a.learner.updates)
			}
		}
	}
	if n < 8 {
		t.Errorf("%d comparisons", n)
	}
}

// TestReplacedParametersAreSeen loads other parameters: features that were computed before must not be used again.
func TestReplacedParametersAreSeen(t *testing.T) {
	for _, freeze := range [][]string{nil, {"encoder.*"}} {
		c := small(t, nil)
		c.Freeze = freeze
		v := toys(t, 2, windowToy(t))
		a := agent(t, c, v, testengines.Fastest(t), 1)
		x := actorOf(t, a, agents.Explore, 2)
		value := func() []float32 {
			d, err := x.Act(context.Background(), rng.New(1), v.Batch())
			if err != nil {
				t.Fatal(err)
			}
			return slices.Clone(d.Value)
		}
		store, err := checkpoint.OpenStore(t.TempDir(), checkpoint.Options{})
		if err != nil {
			t.Fatal(err)
		}
		closing(t, store)
		path, err := store.Save(checkpoint.Meta{Kind: "a2c"}, a.Learner())
		if err != nil {
			t.Fatal(err)
		}
		first := value()
		other := a.params.View("encoder.conv0.weight").Float32s()
		rng.New(2).Stream().FillNormal32(other, 0, 1)
		saved, err := checkpoint.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		closing(t, saved)
		if freeze == nil {
			if err := x.Sync(t.Context()); err != nil {
				t.Fatal(err)
			}
			if slices.Equal(value(), first) {
				t.Error("other parameters are not seen after Sync")
			}
		}
		if err := saved.Load(a.Learner()); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(value(), first) {
			t.Error("loaded parameters are not seen")
		}
	}
}

// TestOutOfTurn calls recorder and learner at the wrong time.
func TestOutOfTurn(t *testing.T) {
	v := corridors(t, 2)
	c := quick()
	c.RolloutSteps = 2
	a := agent(t, c, v, testengines.Fastest(t), 1)
	x := actorOf(t, a, agents.Explore, 2)
	d, err := x.Act(t.Context(), rng.New(1), v.Batch())
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	fails := func(what string, err error) {
		t.Helper()
		if n++; err == nil {
			t.Errorf("%s is accepted", what)
		}
	}
	r, l := a.Recorder(), a.Learner()
	fails("an end without a beginning", r.End(v.Batch()))
	_, err = l.Step(t.Context())
	fails("an empty rollout", err)
	stale := *d
	stale.Version = 3
	fails("a stale decision", r.Begin(v.Batch(), &stale))
	stale = *d
	stale.Value = nil
	fails("a decision without values", r.Begin(v.Batch(), &stale))
	fails("a batch of another size", r.Begin(corridors(t, 3).Batch(), d))
	_, err = x.Act(t.Context(), rng.New(1), corridors(t, 3).Batch())
	fails("a batch of another size", err)
	if err := r.Begin(v.Batch(), d); err != nil {
		t.Fatal(err)
	}
	fails("two beginnings", r.Begin(v.Batch(), d))
	if err := l.SaveState(&checkpoint.Writer{}); !errors.Is(err, errRecording) {
		t.Errorf("saving within a rollout: %v", err)
	}
	if err := l.LoadState(&checkpoint.Reader{}); !errors.Is(err, errRecording) {
		t.Errorf("loading within a rollout: %v", err)
	}
	for range 2 {
		if err := v.Step(d.Actions); err != nil {
			t.Fatal(err)
		}
		if err := r.End(v.Batch()); err != nil {
			t.Fatal(err)
		}
		if !l.Ready() {
			if err := r.Begin(v.Batch(), d); err != nil {
				t.Fatal(err)
			}
		}
	}
	fails("a round after the last", r.Begin(v.Batch(), d))
	_, err = a.NewActor(agents.Greedy, 0)
	fails("an actor for nobody", err)
	// A parameter that is not a number any more.
	a.params.Segment(models.Trainable).View(0).Float32s()[0] = float32(nan())
	_, err = l.Step(t.Context())
	fails("a gradient that is not finite", err)
	if n != 10 {
		t.Errorf("%d cases", n)
	}
}
