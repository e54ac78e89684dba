package a2c

import (
	"context"
	"slices"
	"testing"

	"github.com/onnxrl/onnxrl/agents"
	"github.com/onnxrl/onnxrl/agents/agenttest"
	"github.com/onnxrl/onnxrl/envs/market/trading"
	"github.com/onnxrl/onnxrl/envs/vector"
	"github.com/onnxrl/onnxrl/models"
	"github.com/onnxrl/onnxrl/models/lora"
	"github.com/onnxrl/onnxrl/runtime/engine/testengines"
	"github.com/onnxrl/onnxrl/runtime/longtest"
	"github.com/onnxrl/onnxrl/runtime/rng"
	"github.com/onnxrl/onnxrl/runtime/sorted"
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

// TestResume saves after some updates, loads into a fresh agent, and compares with never having
// stopped, bit by bit. The fastest engine runs all variants, others the first.
func TestResume(t *testing.T) {
	longtest.Slow(t)
	testResume(t, 1)
}

// TestResumeOnEveryEngine is TestResume of all variants on every engine.
func TestResumeOnEveryEngine(t *testing.T) {
	longtest.Nightly(t)
	testResume(t, 9)
}

// testResume has at most so many variants on engines other than the fastest.
func testResume(t *testing.T, most int) {
	splitSmall(t)
	n, within := 0, 0
	engines := testengines.All(t)
	for i, e := range engines {
		tried := 0
		for what, change := range sorted.All(map[string]func(c *Config){
			"shared":      func(c *Config) { c.ShareWindows = On },
			"single":      func(c *Config) { c.ShareWindows = Off },
			"frozen":      func(c *Config) { c.Freeze = []string{"encoder.*"} },
			"dropout":     func(c *Config) { c.Encoder, c.CrossAsset.Dropout = dropping(t).Encoder, 0.3 },
			"lora":        func(c *Config) { c.LoRA = &lora.Config{Rank: 2} },
			"separate":    func(c *Config) { c.Encoders = Separate },
			"own policy":  func(c *Config) { c.Policy = ownMarket(t, 4) },
			"own, single": func(c *Config) { c.Policy, c.ShareWindows, c.Encoders = ownMarket(t, 4), Off, Separate },
			"rms, factor": func(c *Config) {
				c.Optimizer.Kind = "rmsprop"
				c.LearningRateSchedule.Kind = "cosine"
				c.LearningRateSchedule.Steps = 7
			},
		}) {
			if tried++; i < len(engines)-1 && tried > most {
				continue
			}
			c := small(t, nil)
			c.Optimizer.Kind = "adam"
			change(&c)
			world := func() vector.Env {
				return markets(t, market(70, 3, 4, false), 2, func(c *trading.Config) {
					c.Window, c.Episode.Kind, c.Episode.Length = 6, trading.Random, 13
				})
			}
			within += agenttest.Stops(t, e.Name()+", "+what, func() *agenttest.Training {
				v := world()
				return agenttest.NewTraining(t, agent(t, c, v, e, 2), v)
			}, 2*c.NSteps+3)
			v := world()
			r := agenttest.NewTraining(t, agent(t, c, v, e, 2), v)
			r.Run(t, 3*c.NSteps)
			path := agenttest.Save(t, r.Agent)
			world1, err := v.(*vector.Local).SaveState()
			if err != nil {
				t.Fatal(err)
			}
			// An evaluation in between changes nothing.
			if err := agents.Collect(t.Context(), world(), agenttest.Actor(t, r.Agent, agents.Greedy, 2), nil, rng.New(1), 0, 15, nil); err != nil {
				t.Fatal(err)
			}
			r.Run(t, 4*c.NSteps)

			v2 := world()
			if err := v2.(*vector.Local).LoadState(world1); err != nil {
				t.Fatal(err)
			}
			fresh := agenttest.NewTraining(t, agent(t, c, v2, e, 2), v2)
			for _, s := range fresh.Agent.Learner().(*learner).Params.Segments() {
				clear(s.Floats())
			}
			if err := agenttest.Load(t, path, fresh.Agent); err != nil {
				t.Fatal(err)
			}
			fresh.Done = 30
			fresh.Run(t, 4*c.NSteps)
			n += neverStopped(t, e.Name()+", "+what, r, fresh)
			if updates := fresh.Agent.Learner().(*learner).Updates; updates != 7 {
				t.Errorf("%d updates", updates)
			}
		}
	}
	if within < 7 {
		t.Errorf("%d runs went on from within an update", within)
	}
	if n < 8 {
		t.Errorf("%d comparisons", n)
	}
}

func TestLoRA(t *testing.T) {
	longtest.Slow(t)
	splitSmall(t)
	list := map[string]agenttest.Variant{}
	for what, change := range sorted.All(map[string]func(c *Config){
		"lora, shared windows": func(c *Config) { c.ShareWindows, c.Encoders = On, Shared },
		"lora, separate":       func(c *Config) { c.ShareWindows, c.Encoders = Off, Separate },
		"lora, together":       func(c *Config) { c.ShareWindows, c.Encoders = On, Separate },
	}) {
		c := small(t, nil)
		c.LoRA = &lora.Config{Rank: 2, Alpha: 4}
		change(&c)
		m, err := NewMaker(c)
		if err != nil {
			t.Fatal(err)
		}
		list[what] = agenttest.Variant{Maker: m, Spec: agenttest.Series(t)}
	}
	agenttest.LoRA(t, list, 35)
}

// neverStopped compares a run with a resumed one and returns the number of comparisons.
func neverStopped(t testing.TB, what string, whole, resumed *agenttest.Training) (n int) {
	t.Helper()
	other := resumed.Agent.Learner().(*learner).Params.Segments()
	for i, s := range whole.Agent.Learner().(*learner).Params.Segments() {
		if n++; !slices.Equal(s.Floats(), other[i].Floats()) {
			t.Errorf("%s: the %v parameters differ from those of a run that never stopped", what, s.Role)
		}
	}
	return n
}

// TestReplacedParametersAreSeen loads other parameters: features that were computed before must not
// be used again.
func TestReplacedParametersAreSeen(t *testing.T) {
	for _, freeze := range [][]string{nil, {"encoder.*"}} {
		c := small(t, nil)
		c.Freeze = freeze
		v := agenttest.Toys(t, 2, windowToy(t))
		a := agent(t, c, v, testengines.Fastest(t), 1)
		x := agenttest.Actor(t, a, agents.Explore, 2)
		value := func() []float32 {
			d, err := x.Act(context.Background(), rng.New(1), v.Batch())
			if err != nil {
				t.Fatal(err)
			}
			return slices.Clone(d.Value)
		}
		path := agenttest.Save(t, a)
		first := value()
		other := a.learner.Params.View("encoder.conv0.weight").Float32s()
		rng.New(2).Stream().FillNormal32(other, 0, 1)
		if freeze == nil {
			if err := x.Sync(t.Context()); err != nil {
				t.Fatal(err)
			}
			if slices.Equal(value(), first) {
				t.Error("other parameters are not seen after Sync")
			}
		}
		if err := agenttest.Load(t, path, a); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(value(), first) {
			t.Error("loaded parameters are not seen")
		}
	}
}

func TestMisuse(t *testing.T) {
	c := quick()
	m, err := NewMaker(c)
	if err != nil {
		t.Fatal(err)
	}
	agenttest.Misuse(t, "a2c", agenttest.Variant{Maker: m, Spec: flatToy()})
}

// TestNotFinite: a parameter that is not a number any more ends an update.
func TestNotFinite(t *testing.T) {
	v := corridors(t, 2)
	r := agenttest.NewTraining(t, agent(t, quick(), v, testengines.Fastest(t), 1), v)
	r.Rollout(t)
	l := r.Agent.Learner().(*learner)
	l.Params.Segment(models.Trainable).View(0).Float32s()[0] = float32(nan())
	if _, err := l.Step(t.Context()); err == nil {
		t.Error("a gradient that is not finite is accepted")
	}
}
