package agenttest

import (
	"math"
	"testing"

	"github.com/onnxrl/onnxrl/agents"
	"github.com/onnxrl/onnxrl/agents/constraint"
	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/envs/vector"
	"github.com/onnxrl/onnxrl/runtime/engine/testengines"
	"github.com/onnxrl/onnxrl/runtime/rng"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

const (
	// stakeSteps is the length of the episodes of [Stake].
	stakeSteps = 5
	// StakeAlpha is the level of the CVaR there, stakeTail that of a normal variable: its density at
	// its quantile, by 1 − alpha.
	StakeAlpha = 0.9
	stakeTail  = 1.754983319
)

// Stake is a problem with a limit on the tail of episodes whose solution is known. A stake a in [−1,
// 1] earns 2·a − a² and costs a·(½ + z), z normal: five equal ones cost a·(2.5 + √5·z), whose CVaR at
// 0.9 is a·6.4242, and equal ones are the best, because the reward is concave. Without a limit the
// stake is 1, the return 5 and the CVaR 6.4242; a limit of half that is met by a stake of ½ and a
// return of 3.75. A policy that sees the step alone, and not what it has paid, can do no better.
type Stake struct {
	step   int
	stream rng.Stream
}

// Spec implements envs.Env.
func (e *Stake) Spec() envs.Spec {
	return envs.Spec{
		Name: "stake", Observation: envs.Dict{{Name: "step", Space: envs.Unbounded(1)}}, Action: envs.NewBox(-1, 1, 1), Reward: envs.Range{Low: -3, High: 1}, Costs: []string{"loss"}, MaxSteps: stakeSteps, Random: true,
	}
}

// Reset implements envs.Env.
func (e *Stake) Reset(key rng.Key, ts *envs.TimeStep) error {
	e.step = 0
	e.stream.Seed(key)
	ts.Restart()
	ts.Obs[0].Float32s()[0] = 0
	return nil
}

// Step implements envs.Env.
func (e *Stake) Step(action *tensor.Tensor, ts *envs.TimeStep) error {
	a := float64(action.Float32s()[0])
	reward := 2*a - a*a
	e.step++
	ts.Obs[0].Float32s()[0] = float32(e.step) / stakeSteps
	if ts.Continue(reward); e.step == stakeSteps {
		ts.Terminate(reward)
	}
	ts.Costs[0] = a * (0.5 + e.stream.Normal())
	return nil
}

// Close implements envs.Env.
func (e *Stake) Close() error { return nil }

// stakeCVaR is the CVaR of an episode of stakes of 1.
const stakeCVaR = stakeSteps*0.5 + 2.2360679775*stakeTail

// StakeLimit is a limit on the CVaR of what an episode costs, half of what it is without.
func StakeLimit() constraint.Config {
	c := constraint.Defaults()
	c.Cost, c.Measure, c.Alpha, c.Episodes, c.Window, c.Limit = "loss", constraint.CVaR, StakeAlpha, 1, 600, stakeCVaR/2
	// Slower than the policy.
	c.LagrangianMultiplierInit, c.LambdaLR = 0.5, 5e-4
	return c
}

// KeepsTail trains on a [Stake] by five seeds with the limit and without it. With it the return is
// within 5 % of the optimum and the CVaR within 10 % of the limit; without it the CVaR is far beyond.
func KeepsTail(t *testing.T, make func(list []constraint.Config) agents.Maker, rounds int) {
	t.Helper()
	limit := StakeLimit()
	const optimum = stakeSteps * (2*0.5 - 0.5*0.5)
	for seed := range uint64(5) {
		reward, tail := bet(t, make([]constraint.Config{limit}), seed+1, rounds)
		_, free := bet(t, make(nil), seed+1, rounds/3)
		t.Logf("seed %d: return %.3f of %.3f, CVaR %.3f of %.3f, without the limit %.3f", seed+1, reward, optimum, tail, limit.Limit, free)
		if math.Abs(reward/optimum-1) > 0.05 || math.Abs(tail/limit.Limit-1) > 0.1 {
			t.Errorf("seed %d: a return of %g and a CVaR of %g, expected %g within 5 %% and %g within 10 %%", seed+1, reward, tail, optimum, limit.Limit)
		}
		if free < 1.5*limit.Limit {
			t.Errorf("seed %d: a CVaR of %g without the limit, expected %g", seed+1, free, stakeCVaR)
		}
	}
}

// bet trains in four environments of a [Stake] for a number of rounds, and returns the mean return
// of the episodes of the last third, and the CVaR of what they cost.
func bet(t *testing.T, m agents.Maker, seed uint64, rounds int) (reward, tail float64) {
	t.Helper()
	v := Vector(t, 4, func() (*Stake, error) { return &Stake{}, nil })
	r := NewTraining(t, Agent(t, m, v, testengines.Fastest(t), 1, func(s *agents.Setup) { s.Key = rng.New(seed) }), v)
	r.Run(t, rounds-rounds/3)
	sum := vector.NewCostSum(v.Spec(), v.Len())
	var costs []float64
	for range rounds / 3 {
		r.Run(t, 1)
		sum.Add(v.Batch())
		for _, e := range v.Batch().Ended {
			reward += e.Return
			costs = append(costs, sum.Episode(e.Env)[0])
		}
	}
	reward /= float64(len(costs))
	_, tail = constraint.Tail(costs, StakeAlpha)
	return reward, tail
}
