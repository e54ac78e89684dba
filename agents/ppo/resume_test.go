package ppo

import (
	"maps"
	"slices"
	"testing"

	"github.com/onnxrl/onnxrl/agents"
	"github.com/onnxrl/onnxrl/agents/agenttest"
	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/envs/classic"
	"github.com/onnxrl/onnxrl/envs/vector"
	"github.com/onnxrl/onnxrl/models/lora"
	"github.com/onnxrl/onnxrl/runtime/engine"
	"github.com/onnxrl/onnxrl/runtime/engine/testengines"
	"github.com/onnxrl/onnxrl/runtime/longtest"
	"github.com/onnxrl/onnxrl/runtime/optim"
	"github.com/onnxrl/onnxrl/runtime/rng"
	"github.com/onnxrl/onnxrl/runtime/sorted"
)

// saved is a variant whose environments can be saved.
type saved struct {
	name   string
	world  func(t testing.TB) *vector.Local
	change func(c *Config)
}

func savable(t testing.TB) []saved {
	cart, pendulum := own(t, 4, 2), own(t, 3, 1)
	pendulums := func(t testing.TB) *vector.Local {
		return agenttest.Vector(t, 3, func() (*classic.Env, error) {
			c := classic.PendulumDefaults()
			c.MaxSteps = 9
			return classic.NewPendulum(c)
		})
	}
	carts := func(t testing.TB) *vector.Local { return cartpoles(t, 3) }
	masked := func(t testing.TB) *vector.Local {
		return invalid(t, 3, func(c *classic.InvalidActionConfig) {
			c.Space, c.Dims, c.Invalid, c.MaxSteps = classic.SpaceMultiDiscrete, []int{3, 4}, 3, 7
		})
	}
	memory := Recurrent{LSTM, 5, 1, Separate, 4}
	return []saved{
		{"discrete, schedules", carts, func(c *Config) {
			c.LearningRateSchedule, c.ClipRangeSchedule, c.TargetKL, c.ClipRangeVF = optim.Schedule{Kind: "linear"}, optim.Schedule{Kind: "linear"}, 0.05, 0.2
		}},
		{"masks", masked, nil},
		{"Gaussian", pendulums, nil},
		{"gSDE", pendulums, func(c *Config) { c.UseSDE, c.SDESampleFreq = true, 4 }},
		{"gSDE once in a rollout", pendulums, func(c *Config) { c.UseSDE = true }},
		{"V-trace", carts, func(c *Config) { c.Correction = VTrace }},
		{"dropout", carts, func(c *Config) { dropping(t, c) }},
		{"dropout, lstm, V-trace", carts, func(c *Config) { dropping(t, c); c.Recurrent, c.Correction = memory, VTrace }},
		{"lora", func(t testing.TB) *vector.Local { return agenttest.Toys(t, 3, agenttest.Series(t)) }, adapted(t)},
		{"lora, lstm", func(t testing.TB) *vector.Local { return agenttest.Toys(t, 3, agenttest.Series(t)) }, func(c *Config) { adapted(t)(c); c.Recurrent = memory }},
		{"lstm", carts, func(c *Config) { c.Recurrent = memory }},
		{"lstm, gSDE, V-trace, frozen critic", pendulums, func(c *Config) {
			c.Recurrent, c.UseSDE, c.Correction, c.Freeze = memory, true, VTrace, []string{"critic.hidden.*"}
			c.Recurrent.Critic = Shared
		}},
		{"lstm, masks", masked, func(c *Config) { c.Recurrent = memory }},
		{"a user-supplied policy with a memory", carts, func(c *Config) { c.Policy, c.Recurrent.Length = cart, 4 }},
		{"such a one, lstm for the value, gSDE, V-trace", pendulums, func(c *Config) { c.Policy, c.Recurrent, c.UseSDE, c.Correction = pendulum, memory, true, VTrace }},
	}
}

func (s saved) start(t testing.TB, e engine.Compiler) *agenttest.Training {
	c := lone()
	if s.change != nil {
		s.change(&c)
	}
	v := s.world(t)
	return agenttest.NewTraining(t, agentOf(t, c, v, e, 2, func(s *agents.Setup) { s.TotalEnvSteps = 400 }), v)
}

// adapted has adapters in its encoders.
func adapted(t testing.TB) func(c *Config) {
	return func(c *Config) { c.Encoder, c.LoRA = agenttest.TinyEncoder(t, 0), &lora.Config{Rank: 2, Alpha: 4} }
}

func TestLoRA(t *testing.T) {
	list := map[string]agenttest.Variant{}
	for what, change := range sorted.All(map[string]func(c *Config){
		"lora":         func(*Config) {},
		"lora, shared": func(c *Config) { c.Encoders = Shared },
	}) {
		c := lone()
		adapted(t)(&c)
		change(&c)
		m, err := NewMaker(c)
		if err != nil {
			t.Fatal(err)
		}
		list[what] = agenttest.Variant{Maker: m, Spec: agenttest.Series(t)}
	}
	agenttest.LoRA(t, list, 36)
}

// TestStops stops runs of every kind of observation and action wherever that can be, and goes on.
func TestStops(t *testing.T) {
	longtest.Slow(t)
	n := 0
	for _, x := range append(variants(t), constrainedVariants()...) {
		within := agenttest.Stops(t, x.name, func() *agenttest.Training {
			c := x.config()
			v := agenttest.Toys(t, 3, x.spec)
			return agenttest.NewTraining(t, agentOf(t, c, v, testengines.Fastest(t), 1), v)
		}, 2*lone().NSteps+2)
		if n++; within == 0 {
			t.Errorf("%s: never stopped within an update", x.name)
		}
	}
	if n < 13+4 {
		t.Errorf("%d variants", n)
	}
}

// TestCutOff: where environments begin new episodes in the middle of a rollout, sequences begin
// again, too.
func TestCutOff(t *testing.T) {
	v := cartpoles(t, 3)
	r := agenttest.NewTraining(t, agentOf(t, lone(), v, testengines.Fastest(t), 1), v)
	r.Run(t, 5)
	if err := v.Reset(rng.New(12)); err != nil {
		t.Fatal(err)
	}
	r.Round(t)
	if l := r.Agent.Learner().(*learner); l.Rollout.T != 5 || slices.Contains(l.begins[4*3:5*3], false) {
		t.Errorf("%d rounds, begun %v", l.Rollout.T, l.begins[:5*3])
	}
	if m := r.Update(t); m["train/n_updates"] == 0 {
		t.Errorf("%v", m)
	}
}

// TestResume saves after some updates, loads into a fresh agent, and compares with never having
// stopped, bit by bit. Between, policies are evaluated. It also compares two runs of one seed. The
// fastest engine runs all variants, others the first.
func TestResume(t *testing.T) {
	longtest.Slow(t)
	testResume(t, 1)
}

// TestResumeOnEveryEngine is TestResume of all variants on every engine.
func TestResumeOnEveryEngine(t *testing.T) {
	longtest.Nightly(t)
	testResume(t, len(savable(t)))
}

// testResume has at most so many variants on engines other than the fastest.
func testResume(t *testing.T, most int) {
	agenttest.SplitSmall(t)
	n, within := 0, 0
	engines := testengines.All(t)
	for i, e := range engines {
		list := savable(t)
		if i < len(engines)-1 {
			list = list[:most]
		}
		for _, x := range list {
			within += agenttest.Stops(t, e.Name()+", "+x.name, func() *agenttest.Training { return x.start(t, e) }, 2*lone().NSteps+2)
			r, twin := x.start(t, e), x.start(t, e)
			updates(t, r, 3)
			path := agenttest.Save(t, r.Agent)
			world, err := r.Env.(*vector.Local).SaveState()
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range []agents.Mode{agents.Greedy, agents.Explore} {
				if err := agents.Collect(t.Context(), x.world(t), agenttest.Actor(t, r.Agent, m, 3), nil, rng.New(1), 0, 15, nil); err != nil {
					t.Fatal(err)
				}
			}
			last := maps.Clone(updates(t, r, 4))

			fresh := x.start(t, e)
			// A loaded state replaces everything.
			fresh.Update(t)
			if err := fresh.Env.(*vector.Local).LoadState(world); err != nil {
				t.Fatal(err)
			}
			if err := agenttest.Load(t, path, fresh.Agent); err != nil {
				t.Fatal(err)
			}
			fresh.Done = 3 * lone().NSteps
			for what, other := range sorted.All(map[string]*agenttest.Training{"resumed": fresh, "of the same seed": twin}) {
				k := 4
				if other == twin {
					k = 7
				}
				if m := updates(t, other, k); !maps.Equal(m, last) {
					t.Errorf("%s, %s: the metrics of a run %s are %v, expected %v", e.Name(), x.name, what, m, last)
				}
				for i, s := range r.Agent.Learner().(*learner).Params.Segments() {
					if n++; !slices.Equal(s.Floats(), other.Agent.Learner().(*learner).Params.Segments()[i].Floats()) {
						t.Errorf("%s, %s: the %v parameters differ from those of a run %s", e.Name(), x.name, s.Role, what)
					}
				}
				l := other.Agent.Learner().(*learner)
				if l.Updates != 7 || l.envSteps != 7*33 {
					t.Errorf("%d updates, %d env steps", l.Updates, l.envSteps)
				}
			}
		}
	}
	if within < 15 {
		t.Errorf("%d runs went on between two gradient steps", within)
	}
	// Three variants have more segments than one.
	segments := map[int]int{1: 1, 15: 15 + 1 + 2}
	if want := ((len(engines)-1)*segments[most] + segments[15]) * 2; n != want {
		t.Errorf("%d comparisons of %d", n, want)
	}
}

func TestMisuse(t *testing.T) {
	c := lone()
	c.Recurrent = Recurrent{LSTM, 4, 1, Separate, 0}
	m, err := NewMaker(c)
	if err != nil {
		t.Fatal(err)
	}
	agenttest.Misuse(t, "ppo", agenttest.Variant{Maker: m, Spec: spec(envs.Discrete{N: 3}, true)})
}

// TestOutOfTurn: a decision of a policy whose states nobody has, and a reward that is no number.
func TestOutOfTurn(t *testing.T) {
	v := cartpoles(t, 2)
	c := lone()
	c.Recurrent = Recurrent{LSTM, 4, 1, Separate, 0}
	a := agentOf(t, c, v, testengines.Fastest(t), 1)
	d, err := agenttest.Actor(t, a, agents.Greedy, 2).Act(t.Context(), rng.New(1), v.Batch())
	if err != nil {
		t.Fatal(err)
	}
	if err := a.Recorder().Begin(v.Batch(), d); err == nil {
		t.Error("a decision of a policy whose states nobody has is accepted")
	}
	agenttest.NewTraining(t, a, v).Rollout(t)
	a.learner.Rollout.Reward[0] = nan
	if _, err = a.Learner().Step(t.Context()); err == nil {
		t.Error("a gradient that is not finite is accepted")
	}
}
