package sac

import (
	"maps"
	"math"
	"slices"
	"testing"
	"time"

	"onnxrl/agents"
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
			if d := r.actor.(*actor).d; d.LogProb[0] == float32(-2*math.Ln2) {
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
	want := []string{"train/actor_loss", "train/critic_loss", "train/ent_coef", "train/ent_coef_loss", "train/entropy", "train/learning_rate", "train/loss", "train/n_updates"}
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

// TestDeviation: with gSDE there is Stable-Baselines3's train/std, which begins at exp(log_std_init).
func TestDeviation(t *testing.T) {
	c := small()
	c.UseSDE, c.LearningRate = true, 1e-9
	v := toys(t, 1, boxToy())
	r := newTraining(t, agent(t, c, v, testengines.Fastest(t), 1), v)
	if err := r.run(t.Context(), 20, nil); err != nil {
		t.Fatal(err)
	}
	if got, want := r.last["train/std"], math.Exp(c.LogStdInit); math.Abs(got-want) > 1e-6 {
		t.Errorf("train/std %g, expected %g", got, want)
	}
}

// TestTemperature: α falls while the entropy is above its target and rises while it is below, towards the target.
func TestTemperature(t *testing.T) {
	temperature, err := newTemperature(EntCoef{Auto: true, Value: 0.1}, -1)
	if err != nil {
		t.Fatal(err)
	}
	if a := temperature.alpha(); math.Abs(float64(a)-0.1) > 1e-7 {
		t.Errorf("α begins at %g", a)
	}
	// The entropy is 2, above −1.
	loss, err := temperature.step(-2, -1, 0.01)
	if want := -math.Log(0.1) * -3; err != nil || math.Abs(loss-want) > 1e-5 {
		t.Errorf("a loss of %g, expected %g; %v", loss, want, err)
	}
	low := temperature.alpha()
	if low >= 0.1 {
		t.Errorf("α rises to %g", low)
	}
	for range 10 {
		if _, err := temperature.step(3, -1, 0.01); err != nil {
			t.Fatal(err)
		}
	}
	if a := temperature.alpha(); a <= low {
		t.Errorf("α falls from %g to %g", low, a)
	}
}

// TestTemperatureReachesTheTarget: the entropy of the policy settles at the target.
func TestTemperatureReachesTheTarget(t *testing.T) {
	c := small()
	c.LearningRate, c.Gamma, c.BatchSize, c.BufferSize, c.TargetEntropy = 1e-2, 0, 64, 1000, TargetEntropy{Value: -2}
	v := toys(t, 4, boxToy())
	r := newTraining(t, agent(t, c, v, testengines.Fastest(t), 1), v)
	if err := r.run(t.Context(), 2500, nil); err != nil {
		t.Fatal(err)
	}
	sum := 0.0
	for range 100 {
		if err := r.run(t.Context(), 1, nil); err != nil {
			t.Fatal(err)
		}
		sum += r.last["train/entropy"]
	}
	if got := sum / 100; math.Abs(got+2) > 0.2 {
		t.Errorf("an entropy of %g, expected the target of -2 within a tenth of it", got)
	}
}
