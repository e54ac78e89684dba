package ppo

import (
	"math"
	"slices"
	"testing"

	"github.com/onnxrl/onnxrl/agents"
	"github.com/onnxrl/onnxrl/agents/agenttest"
	"github.com/onnxrl/onnxrl/agents/constraint"
	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/runtime/engine/testengines"
	"github.com/onnxrl/onnxrl/runtime/longtest"
	"github.com/onnxrl/onnxrl/runtime/sorted"
)

// constrained limits both costs of a toy, each in its own way.
func constrained(c *Config) {
	a, b := constraint.Defaults(), constraint.Defaults()
	a.Cost, a.Limit, a.Measure, a.Alpha, a.Episodes = "toll", 3, constraint.CVaR, 0.5, 2
	b.Cost, b.Limit, b.Method = "risk", 2, constraint.PIDController
	c.Constraints = []constraint.Config{a, b}
}

// constrainedVariants have constraints, with and without memory.
func constrainedVariants() []variant {
	memory, box := Recurrent{LSTM, 4, 1, Separate, 4}, envs.NewBox(-0.5, 0.5, 2)
	return []variant{
		{"constraints, masked", agenttest.Costly(spec(envs.Discrete{N: 4}, true)), constrained},
		{"constraints, lstm", agenttest.Costly(spec(box, false)), func(c *Config) { constrained(c); c.Recurrent = memory }},
		{"constraints, one torso, lstm", agenttest.Costly(spec(box, false)), func(c *Config) {
			constrained(c)
			c.Recurrent, c.Encoders = memory, Shared
		}},
		{"constraints, lstm that is shared", agenttest.Costly(spec(box, false)), func(c *Config) {
			constrained(c)
			c.Recurrent = memory
			c.Recurrent.Critic = Shared
		}},
	}
}

// TestChannels: a rollout has of each cost what it has of the reward, and the advantages are those
// of the definition.
func TestChannels(t *testing.T) {
	n, ended := 0, 0
	for _, x := range constrainedVariants() {
		c := x.config()
		v := agenttest.Toys(t, 3, x.spec)
		r := agenttest.NewTraining(t, agentOf(t, c, v, testengines.Fastest(t), 1), v)
		r.Update(t)
		l, before := r.Agent.Learner().(*learner), make([][2]float64, 3)
		for e := range before {
			if v.Batch().Type[e] == envs.Mid {
				before[e] = [2]float64{l.Rollout.Constraints.Spent(0, e), l.Rollout.Constraints.Spent(1, e)}
			}
		}
		for i := range c.NSteps {
			r.Round(t)
			for e, kind := range v.Batch().Type {
				for k, ch := range l.Rollout.Channels {
					// The toll is the second cost of the environment.
					cost := v.Batch().Costs[e][1-k]
					if n++; ch.Cost[3*i+e] != cost || ch.Before[3*i+e] != before[e][k] {
						t.Fatalf("%s: a step costs %g after %g, expected %g after %g", x.name, ch.Cost[3*i+e], ch.Before[3*i+e], cost, before[e][k])
					}
					if before[e][k] += cost; kind == envs.Last {
						before[e][k] = 0
						ended++
					}
				}
			}
		}
		discount := slices.Clone(l.Rollout.Discount)
		reward := make([]float64, len(discount))
		charge := [2][]float64{}
		s := l.Rollout.Constraints
		if err := s.Update(); err != nil {
			t.Fatal(err)
		}
		for k, ch := range l.Rollout.Channels {
			charge[k] = make([]float64, len(discount))
			for i := range ch.Cost {
				charge[k][i] = s.Charge(k, ch.Before[i], ch.Cost[i])
			}
		}
		copy(reward, l.Rollout.Reward)
		l.EstimateConstrained(c.GAELambda)
		advantage := func(reward, value, final, bootstrap []float64, i int) (a float64) {
			for weight := 1.0; ; i += 3 {
				next := 0.0
				switch {
				case l.Rollout.Ended[i]:
					next = final[i]
				case i+3 < len(value):
					next = value[i+3]
				default:
					next = bootstrap[i%3]
				}
				a += weight * (reward[i] + discount[i]*next - value[i])
				if l.Rollout.Ended[i] || i+3 >= len(value) {
					return a
				}
				weight *= discount[i] * c.GAELambda
			}
		}
		for i, got := range l.Advantage {
			want, sum := advantage(reward, l.Rollout.Value, l.Rollout.Final, l.Rollout.Bootstrap, i), 1.0
			for k, ch := range l.Rollout.Channels {
				a := advantage(charge[k], ch.Value, ch.Final, ch.Bootstrap, i)
				want, sum = want-s.Lambda(k)*a, sum+s.Lambda(k)
				if n++; math.Abs(ch.Target[i]-a-ch.Value[i]) > 1e-9 {
					t.Fatalf("%s: the target of cost %d is %g, expected %g", x.name, k, ch.Target[i], a+ch.Value[i])
				}
			}
			if n++; math.Abs(got-want/sum) > 1e-9 {
				t.Fatalf("%s: an advantage of %g, expected %g", x.name, got, want/sum)
			}
		}
	}
	if want := 4 * 33 * 5; n != want || ended < 20 {
		t.Errorf("%d comparisons of %d, %d ends", n, want, ended)
	}
}

// TestEditConstraints changes limits and rates while the learner lives.
func TestEditConstraints(t *testing.T) {
	c := lone()
	constrained(&c)
	agenttest.EditConstraints(t, agenttest.Costly(spec(envs.Discrete{N: 4}, true)), c.Constraints, func(list []constraint.Config) agents.Maker {
		c.Constraints = list
		return maker(t, c)
	}, 4*c.NSteps)
}

// TestKnownMultiplier: the multiplier and the cost of the optimum, by both methods. Actions have a
// fixed deviation σ of e⁻², so of the limit of 0.16 σ² is spent before anything is chosen, and the
// multiplier at the optimum is 0.8/√(0.16 − σ²) − 1.
func TestKnownMultiplier(t *testing.T) {
	longtest.Slow(t)
	n, want := 0, 0.8/math.Sqrt(0.16-math.Exp(-4))-1
	for what, change := range sorted.All(map[string]func(c *constraint.Config){
		"lagrange": func(c *constraint.Config) {},
		"pid": func(c *constraint.Config) {
			c.Method, c.PID.KI, c.PID.KP, c.PID.DeltaPEMAAlpha = constraint.PIDController, 0.05, 0.5, 0.5
		},
	}) {
		c := Defaults()
		limit := agenttest.TollLimit(0.16)
		change(&limit)
		c.NSteps, c.BatchSize, c.NEpochs, c.LearningRate, c.LogStdInit, c.Constraints = 100, 100, 5, 3e-3, -2, []constraint.Config{limit}
		c.Freeze = []string{"actor.log_std"}
		cost, lambda := agenttest.Pay(t, maker(t, c), false, 30_000)
		t.Logf("%s: a step costs %.4f, λ %.3f of %.3f", what, cost, lambda, want)
		if n++; math.Abs(cost-0.16) > 0.01 || math.Abs(lambda-want) > 0.1 {
			t.Errorf("%s: a step costs %g and λ is %g, expected 0.16 and %g", what, cost, lambda, want)
		}
	}
	if n != 2 {
		t.Errorf("%d methods", n)
	}
}
