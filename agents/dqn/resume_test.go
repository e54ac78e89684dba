package dqn

import (
	"maps"
	"slices"
	"testing"

	"onnxrl/agents"
	"onnxrl/configs"
	"onnxrl/envs/vector"
	"onnxrl/models"
	"onnxrl/models/checkpoint"
	"onnxrl/models/encoder/timecnn"
	"onnxrl/runtime/engine/testengines"
	"onnxrl/runtime/optim"
)

// small learns quickly from toys, with a replay that is soon full.
func small(t testing.TB) Config {
	c := Defaults()
	e := timecnn.Defaults()
	e.DModel, e.NLayers = 4, 1
	var err error
	if c.Encoder, err = configs.NewKinded("timecnn", e); err != nil {
		t.Fatal(err)
	}
	c.Hidden, c.BatchSize, c.BufferSize, c.LearningStarts, c.TrainFreq, c.GradientSteps, c.TargetUpdateInterval, c.LearningRate = []int{8}, 6, 50, 12, 3, 2, 10, 1e-2
	return c
}

// variants changes a configuration in every way that the state depends on.
var variants = map[string]func(c *Config){
	"plain": func(*Config) {},
	"all": func(c *Config) {
		c.Double, c.Duelling, c.NSteps, c.Prioritised.Enabled, c.Tau = true, true, 3, true, 0.3
	},
	"freeze": func(c *Config) { c.Freeze = []string{"encoder.*"} },
	"rms, linear": func(c *Config) {
		c.Optimizer = optim.Config{Kind: "rmsprop"}
		c.Schedule.Kind = "linear"
		c.GradientSteps = -1
	},
}

// curve is what two runs are compared by.
type curve struct {
	params, target []float32
	metrics        []agents.Metrics
	actions        []int64
}

func (r *run) curve(t testing.TB, steps int) (c curve) {
	for range steps {
		c.metrics = append(c.metrics, maps.Clone(r.update(t)))
		c.actions = append(c.actions, r.actor.(*actor).d.Actions.Int64s()...)
	}
	c.params = slices.Clone(r.a.params.Segment(models.Trainable).Floats())
	c.target = slices.Clone(r.a.target.Segment(models.Trainable).Floats())
	return c
}

func (c curve) equal(d curve) bool {
	return slices.Equal(c.params, d.params) && slices.Equal(c.target, d.target) && slices.Equal(c.actions, d.actions) && slices.EqualFunc(c.metrics, d.metrics, maps.Equal)
}

// TestResume saves after some learner steps, loads into a fresh agent, and compares with never having stopped, bit by bit.
func TestResume(t *testing.T) {
	splitSmall(t)
	n := 0
	for _, e := range testengines.All(t) {
		for what, change := range variants {
			c := small(t)
			change(&c)
			v := toys(t, 2)
			r := newRun(t, agent(t, c, v, e, 2, 300), v)
			r.curve(t, 15)
			store, err := checkpoint.OpenStore(t.TempDir(), checkpoint.Options{})
			if err != nil {
				t.Fatal(err)
			}
			closing(t, store)
			path, err := store.Save(checkpoint.Meta{Kind: "dqn", Step: 3}, r.a.Learner())
			if err != nil {
				t.Fatal(err)
			}
			world, err := v.(*vector.Local).SaveState()
			if err != nil {
				t.Fatal(err)
			}
			want := r.curve(t, 15)

			w := toys(t, 2)
			if err := w.(*vector.Local).LoadState(world); err != nil {
				t.Fatal(err)
			}
			s := newRun(t, agent(t, c, w, e, 2, 300), w)
			s.round = r.round - 15*c.TrainFreq
			saved, err := checkpoint.Open(path)
			if err != nil {
				t.Fatal(err)
			}
			closing(t, saved)
			if err := saved.Load(s.a.Learner()); err != nil {
				t.Fatal(err)
			}
			if got := s.curve(t, 15); !got.equal(want) {
				t.Errorf("%s, %s: a resumed run differs from one that was not stopped", e.Name(), what)
			}
			if !r.a.learner.buffer.Full() {
				t.Errorf("%s, %s: the replay is not full, so that nothing of it was replaced", e.Name(), what)
			}
			n++
		}
	}
	if n < len(variants) {
		t.Errorf("%d comparisons", n)
	}
}

// splitSmall makes small work count as worth splitting over cores.
func splitSmall(t testing.TB) {
	before := shardFLOPs
	shardFLOPs = 0
	t.Cleanup(func() { shardFLOPs = before })
}

// TestSameSeedSameBits trains twice.
func TestSameSeedSameBits(t *testing.T) {
	splitSmall(t)
	n := 0
	for _, e := range testengines.All(t) {
		for what, change := range variants {
			c := small(t)
			change(&c)
			one := func() curve {
				v := toys(t, 2)
				return newRun(t, agent(t, c, v, e, 2, 300), v).curve(t, 20)
			}
			if a, b := one(), one(); !a.equal(b) {
				t.Errorf("%s, %s: two runs of one seed differ", e.Name(), what)
			}
			n++
		}
	}
	if n < len(variants) {
		t.Errorf("%d comparisons", n)
	}
}

// TestLoadRefuses loads what another configuration saved.
func TestLoadRefuses(t *testing.T) {
	v := toys(t, 2)
	r := newRun(t, agent(t, small(t), v, testengines.Fastest(t), 1, 300), v)
	r.curve(t, 8)
	store, err := checkpoint.OpenStore(t.TempDir(), checkpoint.Options{})
	if err != nil {
		t.Fatal(err)
	}
	closing(t, store)
	path, err := store.Save(checkpoint.Meta{Kind: "dqn", Step: 3}, r.a.Learner())
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for what, change := range map[string]func(c *Config){
		"buffer": func(c *Config) { c.BufferSize = 60 }, "steps": func(c *Config) { c.NSteps = 2 }, "gamma": func(c *Config) { c.Gamma = 0.5 },
		"width": func(c *Config) { c.Hidden = []int{9} }, "priorities": func(c *Config) { c.Prioritised.Enabled = true },
	} {
		c := small(t)
		change(&c)
		saved, err := checkpoint.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		closing(t, saved)
		if err := saved.Load(agent(t, c, toys(t, 2), testengines.Fastest(t), 1, 300).Learner()); err == nil {
			t.Errorf("%s: loaded", what)
		}
		n++
	}
	if err := r.a.Recorder().Begin(v.Batch(), &agents.Decision{Actions: v.Batch().Actions}); err != nil {
		t.Fatal(err)
	}
	if _, err := store.Save(checkpoint.Meta{Kind: "dqn", Step: 4}, r.a.Learner()); err == nil {
		t.Error("saved in the middle of a round")
	}
	if n != 5 {
		t.Errorf("%d cases", n)
	}
}
