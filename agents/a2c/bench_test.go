package a2c

import (
	"fmt"
	"testing"

	"github.com/onnxrl/onnxrl/agents/agenttest"
	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/envs/classic"
	"github.com/onnxrl/onnxrl/runtime/engine/testengines"
)

// BenchmarkTraining measures complete training, environment included, with the shipped sizes:
// windows of 20 bars of 16 assets with 30 features, TimeCNN of three layers of 128, rollouts of 50
// rounds.
func BenchmarkTraining(b *testing.B) {
	for _, share := range []string{Off, On} {
		for _, n := range []int{1, 8} {
			for _, threads := range []int{1, 2} {
				b.Run(fmt.Sprintf("share=%s/envs=%d/threads=%d", share, n, threads), func(b *testing.B) {
					c := qtmrl()
					c.ShareWindows = share
					v := markets(b, market(2700, 16, 30, false), n, nil)
					r := agenttest.NewTraining(b, agent(b, c, v, testengines.Fastest(b), threads), v)
					update := func() { r.Update(b) }
					// The engine allocates with its first runs.
					for range 2 {
						update()
					}
					b.ReportAllocs()
					for b.Loop() {
						update()
					}
					b.ReportMetric(float64(b.N*n*c.NSteps)/b.Elapsed().Seconds(), "env-steps/s")
				})
			}
		}
	}
}

// BenchmarkCartPole measures complete training with Stable-Baselines3's defaults.
func BenchmarkCartPole(b *testing.B) {
	for _, n := range []int{1, 8} {
		b.Run(fmt.Sprintf("envs=%d", n), func(b *testing.B) {
			c := Defaults()
			v := agenttest.Vector(b, n, func() (envs.Env, error) { return classic.NewCartPole(classic.CartPoleDefaults()) })
			r := agenttest.NewTraining(b, agent(b, c, v, testengines.Fastest(b), 1), v)
			update := func() { r.Update(b) }
			for range 10 {
				update()
			}
			b.ReportAllocs()
			for b.Loop() {
				update()
			}
			b.ReportMetric(float64(b.N*n*c.NSteps)/b.Elapsed().Seconds(), "env-steps/s")
		})
	}
}
