package dqn

import (
	"testing"

	"onnxrl/agents"
	"onnxrl/envs"
	"onnxrl/envs/classic"
	"onnxrl/runtime/engine/testengines"
)

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
			v := vectorOf(b, 1, func(int) (envs.Env, error) { return classic.NewCartPole(classic.CartPoleDefaults()) })
			r := newRun(b, agent(b, bench.c, v, testengines.Fastest(b), bench.threads, 50_000), v)
			for r.a.learner.envSteps() < 20_000 {
				r.update(b)
			}
			p := agents.NewProfile(now)
			r.a.learner.profile = p
			b.ReportAllocs()
			for b.Loop() {
				r.update(b)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*bench.c.TrainFreq), "ns/env-step")
			for name, d := range p.ByName() {
				b.ReportMetric(float64(d.Nanoseconds())/float64(b.N*bench.c.TrainFreq), "ns-"+name[:3])
			}
		})
	}
}
