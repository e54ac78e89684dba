package ppo

import (
	"fmt"
	"testing"
	"time"

	"github.com/onnxrl/onnxrl/agents"
	"github.com/onnxrl/onnxrl/agents/agenttest"
	"github.com/onnxrl/onnxrl/runtime/engine/testengines"
	"github.com/onnxrl/onnxrl/runtime/optim"
	"github.com/onnxrl/onnxrl/runtime/rng"
	"github.com/onnxrl/onnxrl/runtime/sorted"
)

// zoo returns RL-Zoo's settings for CartPole.
func zoo() Config {
	c := Defaults()
	c.NSteps, c.BatchSize, c.GAELambda, c.Gamma, c.NEpochs, c.LearningRate, c.ClipRange = 32, 256, 0.8, 0.98, 20, 1e-3, 0.2
	c.LearningRateSchedule, c.ClipRangeSchedule = optim.Schedule{Kind: "linear"}, optim.Schedule{Kind: "linear"}
	return c
}

// BenchmarkCartPole measures complete training, environment included, with the defaults of
// Stable-Baselines3 and with RL-Zoo's settings.
func BenchmarkCartPole(b *testing.B) {
	for _, x := range []struct {
		name string
		c    Config
		envs int
	}{{"defaults", Defaults(), 1}, {"zoo", zoo(), 8}} {
		b.Run(fmt.Sprintf("%s/envs=%d", x.name, x.envs), func(b *testing.B) {
			v := cartpoles(b, x.envs)
			profile := agents.NewProfile(time.Now)
			r := agenttest.NewTraining(b, agentOf(b, x.c, v, testengines.Fastest(b), 1, func(s *agents.Setup) { s.Profile = profile }), v)
			updates(b, r, 2)
			for b.Loop() {
				r.Update(b)
			}
			b.ReportAllocs()
			b.ReportMetric(float64(b.N*x.envs*x.c.NSteps)/b.Elapsed().Seconds(), "env-steps/s")
			for phase, d := range sorted.All(profile.ByName()) {
				b.ReportMetric(d.Seconds()/profile.Total().Seconds(), phase+"/learner")
			}
		})
	}
}

// BenchmarkAct measures a decision on CartPole by the default network.
func BenchmarkAct(b *testing.B) {
	for _, n := range []int{1, 8} {
		b.Run(fmt.Sprintf("envs=%d", n), func(b *testing.B) {
			v := cartpoles(b, n)
			x := agenttest.Actor(b, agentOf(b, Defaults(), v, testengines.Fastest(b), 1), agents.Explore, n)
			b.ReportAllocs()
			for b.Loop() {
				if _, err := x.Act(b.Context(), rng.New(1), v.Batch()); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
