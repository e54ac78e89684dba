package a2c

import (
	"fmt"
	"testing"
)

// BenchmarkTraining measures complete training, environment included, with the shipped sizes: windows of 20 bars of 16 assets with 30 features, TimeCNN of three layers of 128, rollouts of 50 rounds.
func BenchmarkTraining(b *testing.B) {
	for _, share := range []string{Off, On} {
		for _, n := range []int{1, 8} {
			for _, threads := range []int{1, 2} {
				b.Run(fmt.Sprintf("share=%s/envs=%d/threads=%d", share, n, threads), func(b *testing.B) {
					c := Defaults()
					c.ShareWindows = share
					v := markets(b, market(2700, 16, 30, false), n, nil)
					r := newTrainingRun(b, agent(b, c, v, fastest(b), threads), v)
					update := func() {
						if _, err := r.update(b.Context()); err != nil {
							b.Fatal(err)
						}
					}
					// The engine allocates with its first runs.
					for range 2 {
						update()
					}
					b.ReportAllocs()
					for b.Loop() {
						update()
					}
					b.ReportMetric(float64(b.N*n*c.RolloutSteps)/b.Elapsed().Seconds(), "env-steps/s")
				})
			}
		}
	}
}
