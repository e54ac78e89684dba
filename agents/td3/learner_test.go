package td3

import (
	"maps"
	"math"
	"slices"
	"testing"
	"time"

	"onnxrl/agents"
	"onnxrl/envs"
	"onnxrl/envs/vector"
	"onnxrl/models/encoder/kinds"
	"onnxrl/runtime/engine/testengines"
	"onnxrl/runtime/rng"
)

// TestWarmUp: actions are uniform and nothing is learnt before learning_starts, counted over all environments; then there are as many updates as asked for.
func TestWarmUp(t *testing.T) {
	n := 0
	for _, x := range []struct{ envs, starts, freq, steps, rounds, updates int }{
		{1, 10, 1, 1, 30, 20},
		{3, 10, 1, 1, 30, 27},
		{2, 8, 5, 3, 20, 12},
		{2, 8, 5, -1, 20, 40},
		{1, 0, 1, 2, 5, 10},
	} {
		c := small()
		c.LearningStarts, c.TrainFreq, c.GradientSteps = x.starts, x.freq, x.steps
		v := toys(t, x.envs, boxToy())
		r := newTraining(t, agent(t, c, v, testengines.Fastest(t), 1), v)
		uniform := 0
		for range x.rounds {
			before := r.a.updates
			if err := r.run(t.Context(), 1, func(*vector.Batch) error { return nil }); err != nil {
				t.Fatal(err)
			}
			if a := r.actor.(*actor); !slices.Equal(a.d.Drawn.Float32s(), a.squashed) {
				uniform++
			}
			if _, ok := r.last["train/loss"]; ok != (r.a.updates > 0) {
				t.Errorf("%+v: train/loss %v after %d updates", x, ok, r.a.updates)
			}
			if before < r.a.updates && int(r.a.envSteps()) <= x.starts {
				t.Errorf("%+v: an update after %d env steps", x, r.a.envSteps())
			}
		}
		if int(r.a.updates) != x.updates || uniform != (x.starts+x.envs-1)/x.envs {
			t.Errorf("%+v: %d updates, %d rounds of uniform actions", x, r.a.updates, uniform)
		}
		n++
	}
	if n != 5 {
		t.Errorf("%d cases", n)
	}
}

// TestMetrics: the tags are Stable-Baselines3's, and the learning rate follows its schedule.
func TestMetrics(t *testing.T) {
	c := small()
	c.Schedule.Kind = "linear"
	v := toys(t, 1, boxToy())
	m, err := NewMaker(c)
	if err != nil {
		t.Fatal(err)
	}
	now := time.Time{}
	p := agents.NewProfile(func() time.Time { now = now.Add(time.Second); return now })
	made, err := m.New(t.Context(), agents.Setup{Spec: v.Spec(), Envs: 1, TotalEnvSteps: 80, Engine: testengines.Fastest(t), Encoders: kinds.All(), Key: rng.New(5), Profile: p})
	if err != nil {
		t.Fatal(err)
	}
	closing(t, made)
	r := newTraining(t, made.(*Agent), v)
	if err := r.run(t.Context(), 20, nil); err != nil {
		t.Fatal(err)
	}
	want := []string{"train/actor_loss", "train/critic_loss", "train/learning_rate", "train/loss", "train/n_updates"}
	if got := slices.Sorted(maps.Keys(r.last)); !slices.Equal(got, want) {
		t.Errorf("metrics %v", got)
	}
	if got := r.last["train/learning_rate"]; math.Abs(got-0.75*c.LearningRate) > 1e-9 || math.Abs(float64(r.a.criticHalf.groups[0].LR)-got) > 1e-9 {
		t.Errorf("a learning rate of %g after a quarter of the run, and of %g for the critics", got, r.a.criticHalf.groups[0].LR)
	}
	for _, phase := range []agents.Phase{agents.Sampling, agents.Gradient, agents.Optimising} {
		if _, calls := p.Spent(phase); calls < 8 {
			t.Errorf("%v was measured %d times", phase, calls)
		}
	}
	// Where nobody knows how long the run is, the schedule stays where it begins.
	r = newTraining(t, agent(t, c, v, testengines.Fastest(t), 1), v)
	if err := r.run(t.Context(), 20, nil); err != nil {
		t.Fatal(err)
	}
	if got := r.last["train/learning_rate"]; got != c.LearningRate {
		t.Errorf("a learning rate of %g", got)
	}
}

// TestNoise holds mean, deviation and memory of the noises against their definitions, and clips.
func TestNoise(t *testing.T) {
	s, x := rng.New(2).Stream(), make([]float32, 2)
	none := newNoise(Noise{Kind: None, Sigma: 9}, 1, 2)
	if none.add(x, s); x[0] != 0 || x[1] != 0 {
		t.Errorf("no noise is %v", x)
	}
	wild := newNoise(Noise{Kind: Normal, Sigma: 100}, 1, 2)
	for range 20 {
		x[0], x[1] = 0.5, -0.5
		if wild.add(x, s); max(x[0], x[1]) > 1 || min(x[0], x[1]) < -1 {
			t.Errorf("actions of %v", x)
		}
	}
	const draws = 40_000
	for _, c := range []struct {
		noise     Noise
		std, next float64
	}{
		{Noise{Kind: Normal, Sigma: 0.1, Dt: 1}, 0.1, 0},
		// A stationary Ornstein-Uhlenbeck process in steps: variance σ²·dt/(1 − (1 − θ·dt)²), and the correlation of neighbours is 1 − θ·dt.
		{Noise{Kind: OU, Sigma: 0.2, Theta: 0.5, Dt: 0.2}, 0.2 * math.Sqrt(0.2/(1-0.81)), 0.9},
	} {
		z := newNoise(c.noise, 1, 1)
		var square, product, last float64
		for range draws {
			e := make([]float32, 1)
			z.add(e, s)
			v := float64(e[0])
			square, product, last = square+v*v, product+v*last, v
		}
		if std, next := math.Sqrt(square/draws), product/square; math.Abs(std/c.std-1) > 0.05 || math.Abs(next-c.next) > 0.03 {
			t.Errorf("%s: a deviation of %g, expected %g, and a correlation of %g, expected %g", c.noise.Kind, std, c.std, next, c.next)
		}
	}
}

// TestNoiseRestartsWithEpisodes: the state of ou is 0 where an episode has begun, and only there.
func TestNoiseRestartsWithEpisodes(t *testing.T) {
	c := small()
	c.ActionNoise.Kind = OU
	v := toys(t, 3, boxToy())
	r := newTraining(t, agent(t, c, v, testengines.Fastest(t), 1), v)
	restarts := 0
	for range 40 {
		if err := r.run(t.Context(), 1, nil); err != nil {
			t.Fatal(err)
		}
		for e := range 3 {
			ended := v.Batch().Type[e] == envs.Last
			for _, x := range r.a.rec.noise.x[2*e:][:2] {
				if (x == 0) != ended {
					t.Fatalf("environment %d: noise %v, ended %v", e, x, ended)
				}
			}
			if ended {
				restarts++
			}
		}
	}
	if restarts < 5 {
		t.Errorf("%d restarts", restarts)
	}
	// A second exploring actor has noise of its own.
	before := slices.Clone(r.a.rec.noise.x)
	if _, err := actorOf(t, r.a, agents.Explore, 3).Act(t.Context(), rng.New(9), v.Batch()); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(before, r.a.rec.noise.x) {
		t.Error("another actor has moved the noise")
	}
}

// TestPolicyDelay counts the updates of the actor.
func TestPolicyDelay(t *testing.T) {
	c := small()
	c.LearningStarts, c.PolicyDelay = 0, 3
	v := toys(t, 1, boxToy())
	r := newTraining(t, agent(t, c, v, testengines.Fastest(t), 1), v)
	for k := range 9 {
		if err := r.run(t.Context(), 1, nil); err != nil {
			t.Fatal(err)
		}
		if got := r.a.actorHalf.opt.Steps(); got != uint64((k+1)/3) {
			t.Errorf("%d updates of the actor after %d of the critics", got, k+1)
		}
		if _, ok := r.last["train/actor_loss"]; ok != (k >= 2) {
			t.Errorf("train/actor_loss is there after %d updates: %v", k+1, ok)
		}
	}
}
