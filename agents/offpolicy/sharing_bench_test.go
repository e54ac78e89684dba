package offpolicy_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/onnxrl/onnxrl/agents"
	"github.com/onnxrl/onnxrl/agents/agenttest"
	"github.com/onnxrl/onnxrl/agents/offpolicy"
	"github.com/onnxrl/onnxrl/agents/replay"
	"github.com/onnxrl/onnxrl/agents/sac"
	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/envs/classic"
	"github.com/onnxrl/onnxrl/envs/vector"
	"github.com/onnxrl/onnxrl/runtime/rng"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// goal is a [agenttest.Point] that is paid for each step near one corner, and never told where that
// is.
type goal struct{ agenttest.Point }

// Step implements envs.Env.
func (g *goal) Step(action *tensor.Tensor, ts *envs.TimeStep) error {
	if err := g.Point.Step(action, ts); err != nil {
		return err
	}
	if at := ts.Obs[0].Float32s(); math.Hypot(float64(at[0])-0.75, float64(at[1])-0.75) < 0.3 {
		ts.Reward = 1
	}
	return nil
}

// BenchmarkSharing asks whether three SAC experts learn more from each other's transitions than
// from their own alone, with as many env steps and updates. Seeds are paired: all arms begin with
// the same parameters and environments. An arm wins where the interval of 95 % (t, 10 seeds) of the
// difference to the experts that are apart, in the mean return of their greedy policies, lies above
// 0. Arms with V-trace are compared with experts that are apart with V-trace.
func BenchmarkSharing(b *testing.B) {
	const experts, seeds = 3, 10
	type arm struct {
		name, than string
		shared     bool
		change     func(c *sac.Config)
	}
	traced := func(c *sac.Config) { c.VTrace.Length = 4 }
	arms := []arm{
		{"apart", "", false, func(*sac.Config) {}},
		{"shared", "apart", true, func(*sac.Config) {}},
		{"shared, weighed", "apart", true, func(c *sac.Config) { c.Sharing = &offpolicy.Sharing{ClipRho: 1} }},
		{"apart, v-trace", "", false, traced},
		{"shared, v-trace", "apart, v-trace", true, traced},
	}
	for _, world := range []struct {
		name   string
		rounds int
		make   func(t testing.TB) *vector.Local
	}{
		{"pendulum", 1000, func(t testing.TB) *vector.Local {
			return agenttest.Vector(t, 1, func() (*classic.Env, error) { return classic.NewPendulum(classic.PendulumDefaults()) })
		}},
		{"navigation", 600, func(t testing.TB) *vector.Local {
			return agenttest.Vector(t, 1, func() (*goal, error) { return &goal{}, nil })
		}},
	} {
		returns := map[string][]float64{}
		for _, a := range arms {
			b.Run(world.name+"/"+a.name, func(b *testing.B) {
				for b.Loop() {
					returns[a.name] = nil
					for seed := range seeds {
						returns[a.name] = append(returns[a.name], taught(b, experts, seed, a.shared, world.rounds, world.make, a.change))
					}
				}
				all := returns[a.name]
				mean, _ := spread(all)
				b.ReportMetric(mean, "return")
				if a.than == "" {
					return
				}
				for i := range all {
					all[i] -= returns[a.than][i]
				}
				mean, half := spread(all)
				b.ReportMetric(mean-half, "low")
				b.ReportMetric(mean+half, "high")
			})
		}
	}
}

// taught is the mean return of experts after so many rounds, each with four updates.
func taught(t testing.TB, experts, seed int, shared bool, rounds int, world func(t testing.TB) *vector.Local, change func(c *sac.Config)) float64 {
	c := sac.Defaults()
	c.Hidden, c.BatchSize, c.BufferSize, c.LearningRate, c.GradientSteps, c.LearningStarts = []int{64, 64}, 64, 10_000, 1e-3, 4, 100
	change(&c)
	m, key := made(t, c, sac.NewMaker), rng.New(uint64(seed))
	var store *replay.Shared
	var list []*agenttest.Training
	for i := range experts {
		v := world(t)
		if err := v.Reset(key.Split("world", i)); err != nil {
			t.Fatal(err)
		}
		if shared && store == nil {
			l, err := offpolicy.LayoutOf(v.Spec(), true, nil)
			if err == nil {
				store, err = replay.NewShared(l, replay.SharedConfig{Capacity: 10_000, ChunkRows: 64, Name: "experts"})
			}
			if err != nil {
				t.Fatal(err)
			}
			agenttest.Closing(t, store)
		}
		list = append(list, agenttest.NewTraining(t, agenttest.Agent(t, m, v, engineOf(t), 1, func(s *agents.Setup) {
			if s.Key = key.Split("expert", i); shared {
				s.Replay = store.Member(fmt.Sprint("expert ", i), int32(i), replay.SamplerConfig{})
			}
		}), v))
	}
	for round := range rounds {
		for i, r := range list {
			if err := agents.Collect(t.Context(), r.Env, r.Actor, r.Agent.Recorder(), key.Split("act", i), round, 1, nil); err != nil {
				t.Fatal(err)
			}
			if r.Agent.Learner().Ready() {
				r.Learn(t)
			}
		}
	}
	sum := 0.0
	for _, r := range list {
		sum += agenttest.Return(t, r.Agent, world(t), 20)
	}
	return sum / float64(experts)
}

// spread is the mean of ten numbers and half of its interval of 95 %, of Student's t with 9 degrees
// of freedom.
func spread(x []float64) (mean, half float64) {
	n, square := float64(len(x)), 0.0
	for _, v := range x {
		mean += v / n
	}
	for _, v := range x {
		square += (v - mean) * (v - mean)
	}
	return mean, 2.262 * math.Sqrt(square/(n-1)/n)
}
