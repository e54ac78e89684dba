package td3

import (
	"slices"
	"testing"

	"onnxrl/agents"
	"onnxrl/configs"
	"onnxrl/envs"
	"onnxrl/envs/vector"
	"onnxrl/models/checkpoint"
	"onnxrl/models/encoder/timecnn"
	"onnxrl/runtime/engine"
	"onnxrl/runtime/engine/testengines"
	"onnxrl/runtime/rng"
)

// small is a configuration that learns from the beginning on, with little work.
func small() Config {
	c := Defaults()
	c.Hidden, c.BatchSize, c.BufferSize, c.LearningStarts = []int{16, 16}, 8, 60, 12
	return c
}

// variants are configurations and environments that between them go through everything.
func variants(t testing.TB) map[string]struct {
	spec   envs.Spec
	change func(c *Config)
} {
	encoder := timecnn.Defaults()
	encoder.DModel, encoder.NLayers = 8, 1
	tiny, err := configs.NewKinded("timecnn", encoder)
	if err != nil {
		t.Fatal(err)
	}
	type variant = struct {
		spec   envs.Spec
		change func(c *Config)
	}
	return map[string]variant{
		"box":     {boxToy(), func(*Config) {}},
		"float64": {wideToy(), func(c *Config) { c.GradClip, c.NSteps, c.ActionNoise.Kind = 0.5, 3, Normal }},
		"ou":      {boxToy(), func(c *Config) { c.ActionNoise.Kind, c.TrainFreq, c.GradientSteps = OU, 5, -1 }},
		"ddpg":    {boxToy(), func(c *Config) { c.PolicyDelay, c.TargetPolicyNoise, c.Critics, c.CriticHidden = 1, 0, 1, []int{8} }},
		"series":  {seriesToy(t), func(c *Config) { c.Schedule.Kind, c.Schedule.Steps, c.Encoder = "linear", 100, tiny }},
		"assets": {assetsToy(t), func(c *Config) {
			c.PolicyDelay, c.Optimizer.Kind, c.Encoder, c.CrossAsset.NHeads, c.ActionNoise.Kind = 3, "rmsprop", tiny, 2, OU
		}},
		"frozen encoders": {seriesToy(t), func(c *Config) { c.Freeze, c.Encoder = []string{"*encoder*"}, tiny }},
	}
}

// state is everything that two equal runs have equal.
func stateOf(t testing.TB, r *training) []float32 {
	t.Helper()
	var all []float32
	for _, s := range r.a.params.Segments() {
		all = append(all, s.Floats()...)
	}
	for _, o := range []string{"actor", "critic"} {
		for _, slot := range []string{"m", "v"} {
			all = append(all, r.a.optimisersByName()[o].State()[slot]...)
		}
	}
	all = append(append(all, r.a.rec.noise.x...), r.a.batch.Reward...)
	all = append(all, float32(r.a.updates), float32(r.last["train/loss"]))
	return append(all, actionsOf(t, r)...)
}

// actionsOf returns what an exploring actor does next.
func actionsOf(t testing.TB, r *training) []float32 {
	t.Helper()
	d, err := r.actor.Act(t.Context(), rng.New(3), r.v.Batch())
	if err != nil {
		t.Fatal(err)
	}
	return d.Drawn.Float32s()
}

// TestSameSeedAndResume trains twice, and a third time with a checkpoint and a fresh agent in the middle: all have the same bits.
func TestSameSeedAndResume(t *testing.T) {
	splitSmall(t)
	n := 0
	for _, e := range testengines.All(t) {
		for what, x := range variants(t) {
			if e.Name() == "portable" && x.spec.Observation[0].Window != nil {
				// The portable engine takes its time over windows.
				continue
			}
			c := small()
			x.change(&c)
			start := func() (*training, *vector.Local) {
				v := toys(t, 2, x.spec)
				return newTraining(t, agent(t, c, v, e, 2), v), v
			}
			forward := func(r *training, rounds int) {
				t.Helper()
				if err := r.run(t.Context(), rounds, nil); err != nil {
					t.Fatalf("%s, %s: %v", e.Name(), what, err)
				}
			}
			a, _ := start()
			forward(a, 32)
			want := stateOf(t, a)
			b, v := start()
			// Between two learner steps, where train_freq leaves room for that.
			forward(b, 18)
			fresh := resumed(t, c, e, b, v, toys(t, 2, x.spec))
			forward(b, 14)
			forward(fresh, 14)
			if !slices.Equal(stateOf(t, b), want) {
				t.Errorf("%s, %s: two runs of one seed differ", e.Name(), what)
			}
			if !slices.Equal(stateOf(t, fresh), want) {
				t.Errorf("%s, %s: a resumed run differs from one that never stopped", e.Name(), what)
			}
			if a.a.updates < 10 {
				t.Errorf("%s: %d updates", what, a.a.updates)
			}
			n++
		}
	}
	if n < 4 {
		t.Errorf("%d variants", n)
	}
}

// resumed saves a run and returns it in a fresh agent, whose environments go on in v2. An evaluation in between changes nothing.
func resumed(t testing.TB, c Config, e engine.Compiler, r *training, v, v2 *vector.Local) *training {
	t.Helper()
	store, err := checkpoint.OpenStore(t.TempDir(), checkpoint.Options{})
	if err != nil {
		t.Fatal(err)
	}
	closing(t, store)
	path, err := store.Save(checkpoint.Meta{Kind: "td3", Step: 3}, r.a.Learner())
	if err != nil {
		t.Fatal(err)
	}
	world, err := v.SaveState()
	if err != nil {
		t.Fatal(err)
	}
	if err := agents.Collect(t.Context(), toys(t, 3, v.Spec()), actorOf(t, r.a, agents.Greedy, 3), nil, rng.New(1), 0, 5, nil); err != nil {
		t.Fatal(err)
	}
	if err := v2.LoadState(world); err != nil {
		t.Fatal(err)
	}
	fresh := newTraining(t, agent(t, c, v2, e, 2), v2)
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
	fresh.round = r.round
	return fresh
}

// TestTrainingAllocatesNothing counts allocations of whole rounds with their updates.
func TestTrainingAllocatesNothing(t *testing.T) {
	splitSmall(t)
	n, e := 0, testengines.Fastest(t)
	for what, x := range variants(t) {
		c := small()
		x.change(&c)
		v := toys(t, 2, x.spec)
		r := newTraining(t, agent(t, c, v, e, 2), v)
		if err := r.run(t.Context(), 60, nil); err != nil {
			t.Fatal(err)
		}
		if a := testing.AllocsPerRun(50, func() {
			if err := r.run(t.Context(), 1, nil); err != nil {
				t.Fatal(err)
			}
		}); a > testengines.Allocations(e) {
			t.Errorf("%s: %v allocations", what, a)
		}
		n++
	}
	if n != 7 {
		t.Errorf("%d variants", n)
	}
}
