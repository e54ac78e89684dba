package offpolicy_test

import (
	"errors"
	"math"
	"slices"
	"testing"

	"github.com/onnxrl/onnxrl/agents"
	"github.com/onnxrl/onnxrl/agents/agenttest"
	"github.com/onnxrl/onnxrl/agents/offpolicy"
	"github.com/onnxrl/onnxrl/agents/replay"
	"github.com/onnxrl/onnxrl/configs"
	"github.com/onnxrl/onnxrl/envs/vector"
	"github.com/onnxrl/onnxrl/models"
	"github.com/onnxrl/onnxrl/runtime/optim"
	"github.com/onnxrl/onnxrl/runtime/pool"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// TestClock counts rounds of two environments.
func TestClock(t *testing.T) {
	cases := 0
	for _, c := range []struct{ starts, freq, steps, rounds, updates int }{{0, 1, 1, 1, 1}, {4, 2, 3, 2, 0}, {3, 2, 3, 2, 3}, {0, 2, -1, 5, 10}} {
		spec := agenttest.Choice()
		layout := replay.LayoutOf(spec, replay.Column{Name: "action", DType: tensor.Int64})
		b, err := replay.NewUniform(layout, replay.Config{Capacity: 100, Envs: 2, NSteps: 1, Gamma: 1})
		if err != nil {
			t.Fatal(err)
		}
		agenttest.Closing(t, b)
		v, rec := agenttest.Toys(t, 2, spec), b
		s := offpolicy.Defaults()
		s.LearningStarts, s.TrainFreq, s.GradientSteps, s.LearningRateSchedule.Kind = c.starts, offpolicy.TrainFreq(c.freq), c.steps, "linear"
		k, endless := offpolicy.NewClock(&s, &agents.Setup{Envs: 2, TotalEnvSteps: 40}, rec), offpolicy.NewClock(&s, &agents.Setup{Envs: 2}, rec)
		for done := range c.rounds {
			if _, err := k.Begin(); (err == nil) != (done >= c.freq) || (err == nil) != (k.Stepped > 0) {
				t.Fatalf("%+v: after %d rounds a learner step is %v", c, done, err)
			}
			k.Stepped, k.Owed = 0, 0
			if k.Waiting() != (2*done < c.starts) {
				t.Errorf("%+v: waiting %v after %d rounds", c, k.Waiting(), done)
			}
			actions := &vector.Decision{Actions: tensor.Of([]int64{0, 1}, 2)}
			if err := errors.Join(rec.Begin(v.Batch(), actions), v.Step(actions.Actions), rec.End(v.Batch())); err != nil {
				t.Fatal(err)
			}
		}
		if begun, err := k.Begin(); err != nil || !begun || k.Of != c.updates || k.Owed != c.updates || k.Stepped != int64(c.rounds) || k.Ready() != (c.updates > 0) {
			t.Errorf("%+v: %d updates, %v", c, k.Of, err)
		}
		for k.Owed > 0 {
			if begun, err := k.Begin(); err != nil || begun || k.Of != c.updates || !k.Ready() {
				t.Errorf("%+v: %d of %d updates are owed: begun anew: %v, %v", c, k.Owed, k.Of, begun, err)
			}
			k.Owed--
		}
		if k.Ready() {
			t.Errorf("%+v: ready after all updates", c)
		}
		want := float64(2*c.rounds) / 40
		if part, known := k.Progress(); part != want || !known || math.Abs(k.Factor()-(1-want)) > 1e-12 {
			t.Errorf("%+v: %g of the run, a factor of %g", c, part, k.Factor())
		}
		if part, known := endless.Progress(); part != 0 || known || endless.Factor() != 1 {
			t.Errorf("%+v: %g of a run of unknown length, a factor of %g", c, part, endless.Factor())
		}
		cases++
	}
	if cases != 4 {
		t.Errorf("%d cases", cases)
	}
}

// TestFollower: target networks move by tau, alone and by a pool, and nothing else does; neighbours
// in both segments are one range.
func TestFollower(t *testing.T) {
	specs := []models.Spec{
		{Name: "actor.w", Shape: []int{5}}, {Name: "critic.a", Shape: []int{3}}, {Name: "critic.b", Shape: []int{20_000}}, {Name: "other.c", Shape: []int{7}}, {Name: "critic.d", Shape: []int{2}},
	}
	for i := range specs {
		specs[i].Role = models.Trainable
	}
	frozen := []models.Spec{{Name: "base", Shape: []int{4}, Role: models.Frozen}}
	for _, i := range []int{1, 2, 4} {
		frozen = append(frozen, models.Spec{Name: "target." + specs[i].Name, Shape: specs[i].Shape, Role: models.Frozen})
	}
	workers, compared := pool.New(3, pool.Spin), 0
	defer workers.Close()
	for _, by := range []*pool.Pool{nil, workers} {
		p, err := models.NewParams(&models.Network{Specs: append(slices.Clone(specs), frozen...)}, nil)
		if err != nil {
			t.Fatal(err)
		}
		agenttest.Closing(t, p)
		for _, s := range p.Segments() {
			for i := range s.Specs() {
				for k := range s.View(i).Float32s() {
					s.View(i).Float32s()[k] = float32(k%10) + 1
				}
			}
		}
		for _, s := range frozen {
			clear(p.View(s.Name).Float32s())
		}
		f := offpolicy.NewFollower(p, 0.5, by)
		if len(f.Pairs) != 2 {
			t.Errorf("%d ranges, expected 2", len(f.Pairs))
		}
		f.Move()
		for _, s := range frozen {
			for k, x := range p.View(s.Name).Float32s() {
				want := (float32(k%10) + 1) / 2
				if s.Name == "base" {
					want = 0
				}
				if compared++; x != want {
					t.Fatalf("%s[%d] is %g, expected %g", s.Name, k, x, want)
				}
			}
		}
	}
	if compared != 2*(4+3+20_000+2) {
		t.Errorf("%d elements", compared)
	}
}

// TestDescent: the rate follows the schedule, the gradient is clipped, and what is no number
// changes nothing.
func TestDescent(t *testing.T) {
	o, err := optim.New(optim.Config{Kind: "sgd"})
	if err != nil {
		t.Fatal(err)
	}
	x, g := []float32{1, 1}, []float32{3, 4}
	d := &offpolicy.Descent{Optimizer: o, Groups: []optim.Group{{Name: "x", Params: x, Grads: g, LRScale: 1}}, Rate: 0.2, Clip: 1}
	agenttest.Has(t, d.Step(math.NaN(), 1), "NaN", "learning rate")
	agenttest.Has(t, d.Step(math.Inf(1), 1), "Inf")
	if x[0] != 1 || x[1] != 1 {
		t.Errorf("parameters became %v", x)
	}
	if err := d.Step(1, 0.5); err != nil || math.Abs(float64(x[0])-0.94) > 1e-6 || math.Abs(float64(x[1])-0.92) > 1e-6 {
		t.Errorf("parameters became %v, expected 0.94 and 0.92; %v", x, err)
	}
	agenttest.Has(t, offpolicy.Unmatched(optim.Config{NoDecay: []string{"*.bias", "fc.*"}}, []optim.Param{{Name: "fc.weight"}}), "*.bias")
}

// TestSettings reports all problems at once.
func TestSettings(t *testing.T) {
	s := offpolicy.Defaults()
	s.LearningRate = 1e-3
	if err := configs.Validate(s); err != nil {
		t.Error(err)
	}
	agenttest.Has(t, configs.Validate(offpolicy.Settings{GradientSteps: -2, Gamma: 2}), "learning_rate", "buffer_size", "batch_size", "n_steps", "gamma", "train_freq", "gradient_steps")
	agenttest.Has(t, configs.Validate(offpolicy.CriticSettings{CriticLearningRate: -1, CriticHidden: []int{0}}), "critic_learning_rate", "n_critics", "critic_hidden")
	if c := (offpolicy.CriticSettings{}); !slices.Equal(c.Layers([]int{4}), []int{4}) {
		t.Error("critics without layers of their own do not have the actor's")
	}
}

// TestNoUpdatesWithoutTransitions: as long as all rows were absent there is nothing to learn from,
// whatever learning_starts says.
func TestNoUpdatesWithoutTransitions(t *testing.T) {
	v := agenttest.Toys(t, 2, agenttest.Choice())
	rec, err := replay.NewUniform(replay.LayoutOf(v.Spec(), replay.Column{Name: "action", DType: tensor.Int64}), replay.Config{Capacity: 100, Envs: 2, NSteps: 1, Gamma: 1})
	if err != nil {
		t.Fatal(err)
	}
	agenttest.Closing(t, rec)
	s := offpolicy.Defaults()
	s.LearningStarts = 4
	k := offpolicy.NewClock(&s, &agents.Setup{Envs: 2}, rec)
	b, d := v.Batch(), &vector.Decision{Actions: tensor.Of([]int64{0, 1}, 2)}
	b.Present = make([]bool, 2)
	for round, want := range []int{0, 0, 0, 0, 1, 1} {
		b.Present[1] = round == 4
		if err := errors.Join(rec.Begin(b, d), v.Step(d.Actions), rec.End(b)); err != nil {
			t.Fatal(err)
		}
		if _, err := k.Begin(); err != nil || k.Of != want || k.EnvSteps() != 2*int64(round+1) {
			t.Errorf("after %d rounds: %d updates at env step %d, expected %d, %v", round+1, k.Of, k.EnvSteps(), want, err)
		}
		k.Owed = 0
	}
	if rec.Len() != 1 {
		t.Errorf("%d transitions", rec.Len())
	}
}
