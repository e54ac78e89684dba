package dqn

import (
	"testing"
	"time"

	"github.com/onnxrl/onnxrl/agents"
	"github.com/onnxrl/onnxrl/agents/agenttest"
	"github.com/onnxrl/onnxrl/agents/offpolicy"
	"github.com/onnxrl/onnxrl/agents/replay"
	"github.com/onnxrl/onnxrl/agents/valuebased"
	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/envs/classic"
	"github.com/onnxrl/onnxrl/envs/vector"
	"github.com/onnxrl/onnxrl/models/lora"
	"github.com/onnxrl/onnxrl/runtime/engine"
	"github.com/onnxrl/onnxrl/runtime/engine/testengines"
	"github.com/onnxrl/onnxrl/runtime/longtest"
	"github.com/onnxrl/onnxrl/runtime/optim"
	"github.com/onnxrl/onnxrl/runtime/sorted"
)

// small learns quickly from toys, with a replay that is soon full.
func small() Config {
	c := Defaults()
	c.Hidden, c.BatchSize, c.BufferSize, c.LearningStarts, c.TrainFreq, c.GradientSteps, c.TargetUpdateInterval, c.LearningRate = []int{8}, 6, 50, 12, 3, 2, 10, 1e-2
	return c
}

// windows has a window beside a vector and a discrete field, and masked actions.
func windows(t testing.TB) envs.Spec {
	s := agenttest.Choice()
	s.Observation = append(envs.Dict{{Name: "window", Space: envs.Unbounded(8, 2), Window: agenttest.Window(t, 40, 2)}}, s.Observation...)
	return s
}

// training begins a run of so many env steps on one core.
func training(t testing.TB, c Config, v vector.Env, e engine.Compiler, total int64) (*agenttest.Training, *valuebased.Learner) {
	t.Helper()
	m, err := NewMaker(c)
	if err != nil {
		t.Fatal(err)
	}
	a := agenttest.Agent(t, m, v, e, 1, func(s *agents.Setup) { s.TotalEnvSteps = total })
	return agenttest.NewTraining(t, a, v), a.Learner().(*valuebased.Learner)
}

// flat begins a run in n toys without a window.
func flat(t testing.TB, c Config, n int, total int64) (*agenttest.Training, *valuebased.Learner) {
	t.Helper()
	return training(t, c, agenttest.Toys(t, n, agenttest.Choice()), testengines.Fastest(t), total)
}

// variants change a configuration in every way that the state depends on, with a window and
// without.
func variants(t testing.TB) map[string]agenttest.Variant {
	list, tiny := map[string]agenttest.Variant{}, agenttest.TinyEncoder(t, 0)
	for what, change := range sorted.All(map[string]func(c *Config){
		"plain": func(*Config) {},
		"all": func(c *Config) {
			c.Double, c.Duelling, c.NSteps, c.Prioritised.Enabled, c.Tau = true, true, 3, true, 0.3
		},
		"duelling":   func(c *Config) { c.Duelling = true },
		"episodes":   func(c *Config) { c.TrainFreq, c.GradientSteps = offpolicy.EachEpisode, -1 },
		"many steps": func(c *Config) { c.Double, c.TrainFreq, c.GradientSteps = true, 3, 5 },
		"lora":       func(c *Config) { c.LoRA = &lora.Config{Rank: 2} },
		"freeze":     func(c *Config) { c.Freeze = []string{"hidden.*"} },
		"rms, linear": func(c *Config) {
			c.Optimizer = optim.Config{Kind: "rmsprop"}
			c.LearningRateSchedule.Kind = "linear"
			c.GradientSteps = -1
		},
	}) {
		for where, spec := range sorted.All(map[string]envs.Spec{"": agenttest.Choice(), ", windows": windows(t)}) {
			c := small()
			if where != "" {
				c.Encoder = tiny
			}
			change(&c)
			if c.LoRA != nil && where == "" {
				continue
			}
			m, err := NewMaker(c)
			if err != nil {
				t.Fatal(err)
			}
			list[what+where] = agenttest.Variant{Maker: m, Spec: spec}
		}
	}
	return list
}

func TestPolicyIsTheActor(t *testing.T) { agenttest.PolicyIsTheActor(t, variants(t), nil) }

func TestLoRA(t *testing.T) { agenttest.LoRA(t, variants(t), 90) }

// TestResume stops where the replay is full already, and in the middle of the rounds between two
// learner steps.
func TestResume(t *testing.T) {
	longtest.Slow(t)
	agenttest.SplitSmall(t)
	agenttest.Resume(t, variants(t), 46, 90, 40)
}

// TestResumeOnEveryEngine is TestResume of all variants on every engine.
func TestResumeOnEveryEngine(t *testing.T) {
	longtest.Nightly(t)
	agenttest.SplitSmall(t)
	agenttest.ResumeEverywhere(t, variants(t), 46, 90, 40)
}

func TestTrainingAllocatesNothing(t *testing.T) { agenttest.NoAllocations(t, variants(t), 90) }

// TestLoadRefuses loads what another configuration saved.
func TestLoadRefuses(t *testing.T) {
	r, l := flat(t, small(), 2, 300)
	r.Run(t, 46)
	if !l.Buffer.(*replay.Uniform).Full() {
		t.Error("the replay is not full, so that nothing of it was replaced")
	}
	path, n := agenttest.Save(t, r.Agent), 0
	for what, change := range sorted.All(map[string]func(c *Config){
		"buffer": func(c *Config) { c.BufferSize = 60 }, "width": func(c *Config) { c.Hidden = []int{9} }, "priorities": func(c *Config) { c.Prioritised.Enabled = true },
	}) {
		c := small()
		change(&c)
		if other, _ := flat(t, c, 2, 300); agenttest.Load(t, path, other.Agent) == nil {
			t.Errorf("%s: loaded", what)
		}
		n++
	}
	if n != 3 {
		t.Errorf("%d cases", n)
	}
	if other, _ := flat(t, small(), 2, 300); agenttest.Load(t, path, other.Agent) != nil {
		t.Error("the same configuration is not loaded")
	}
	b := r.Env.Batch()
	if err := r.Agent.Recorder().Begin(b, &vector.Decision{Actions: b.Actions}); err != nil {
		t.Fatal(err)
	}
	other, _ := flat(t, small(), 2, 300)
	if err := agenttest.Load(t, agenttest.Save(t, r.Agent), other.Agent); err != nil {
		t.Error("a round that has only begun is not left out", err)
	}
}

// TestLearnsIdentity has the threshold and the number of steps of Stable-Baselines3's
// tests/test_identity.py.
func TestLearnsIdentity(t *testing.T) {
	c := Defaults()
	c.Gamma, c.LearningRate, c.LearningStarts, c.ExplorationFraction, c.TargetUpdateInterval, c.TrainFreq, c.BufferSize = 0.4, 2e-3, 100, 0.2, 100, 1, 1200
	identity := func() (*classic.Env, error) { return classic.NewIdentity(classic.IdentityDefaults()) }
	r, l := training(t, c, agenttest.Vector(t, 1, identity), testengines.Fastest(t), 1200)
	for l.EnvSteps() < 1200 {
		r.Update(t)
	}
	if got := agenttest.Return(t, r.Agent, agenttest.Vector(t, 1, identity), 20); got < 90 {
		t.Errorf("a return of %g, expected at least 90", got)
	}
}

// zoo are the settings of RL-Zoo for CartPole.
func zoo() Config {
	c := Defaults()
	c.LearningRate, c.BatchSize, c.BufferSize, c.LearningStarts, c.TargetUpdateInterval = 2.3e-3, 64, 100_000, 1000, 10
	c.TrainFreq, c.GradientSteps, c.ExplorationFraction, c.ExplorationFinal, c.Hidden = 256, 128, 0.16, 0.04, []int{256, 256}
	return c
}

// BenchmarkTraining is the time of an env step of a whole training on CartPole.
func BenchmarkTraining(b *testing.B) {
	for _, bench := range []struct {
		name    string
		c       Config
		threads int
	}{{"default", Defaults(), 1}, {"zoo", zoo(), 1}, {"zoo-2threads", zoo(), 2}} {
		b.Run(bench.name, func(b *testing.B) {
			v := agenttest.Vector(b, 1, func() (*classic.Env, error) { return classic.NewCartPole(classic.CartPoleDefaults()) })
			m, err := NewMaker(bench.c)
			if err != nil {
				b.Fatal(err)
			}
			p := agents.NewProfile(time.Now)
			a := agenttest.Agent(b, m, v, testengines.Fastest(b), bench.threads, func(s *agents.Setup) { s.TotalEnvSteps, s.Profile = 50_000, p })
			r, l := agenttest.NewTraining(b, a, v), a.Learner().(*valuebased.Learner)
			for l.EnvSteps() < 20_000 {
				r.Update(b)
			}
			before := p.ByName()
			b.ReportAllocs()
			for b.Loop() {
				r.Update(b)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*int(bench.c.TrainFreq)), "ns/env-step")
			for name, d := range sorted.All(p.ByName()) {
				b.ReportMetric(float64((d-before[name]).Nanoseconds())/float64(b.N*int(bench.c.TrainFreq)), "ns-"+name[:3])
			}
		})
	}
}
