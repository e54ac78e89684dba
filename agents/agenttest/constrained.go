package agenttest

import (
	"errors"
	"maps"
	"slices"
	"testing"

	"github.com/onnxrl/onnxrl/agents"
	"github.com/onnxrl/onnxrl/agents/constraint"
	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/envs/vector"
	"github.com/onnxrl/onnxrl/runtime/engine/testengines"
	"github.com/onnxrl/onnxrl/runtime/rng"
	"github.com/onnxrl/onnxrl/runtime/sorted"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// tollSteps is the length of the episodes of [Toll].
const tollSteps = 5

// Toll is a constrained problem whose solution is known. Actions a in [−1, 1] earn −(a − 0.8)² and
// cost a²: with the multiplier λ the best is 0.8/(1 + λ), so a limit of 0.16 for each step is met
// by a = 0.4 and λ = 1. The choice, instead, of 0 or 1 earns and costs as much as is chosen: with
// the entropy weighed by α, 1 has the odds exp((1 − λ)/α).
type Toll struct {
	Choice bool
	step   int
}

// Spec implements envs.Env.
func (e *Toll) Spec() envs.Spec {
	s := envs.Spec{
		Name: "toll", Observation: envs.Dict{{Name: "x", Space: envs.Unbounded(1)}}, Action: envs.NewBox(-1, 1, 1), Reward: envs.Range{Low: -4, High: 1}, Costs: []string{"toll"}, MaxSteps: tollSteps,
	}
	if e.Choice {
		s.Action = envs.Discrete{N: 2}
	}
	return s
}

// Reset implements envs.Env.
func (e *Toll) Reset(_ rng.Key, ts *envs.TimeStep) error {
	e.step = 0
	ts.Restart()
	ts.Obs[0].Float32s()[0] = 1
	return nil
}

// Step implements envs.Env.
func (e *Toll) Step(action *tensor.Tensor, ts *envs.TimeStep) error {
	reward, cost := 0.0, 0.0
	if e.Choice {
		reward = float64(action.Int64s()[0])
		cost = reward
	} else {
		a := float64(action.Float32s()[0])
		reward, cost = -(a-0.8)*(a-0.8), a*a
	}
	ts.Obs[0].Float32s()[0] = 1
	if ts.Continue(reward); e.step == tollSteps-1 {
		ts.Terminate(reward)
	}
	e.step++
	ts.Costs[0] = cost
	return nil
}

// Close implements envs.Env.
func (e *Toll) Close() error { return nil }

// Pay trains in four environments of a [Toll] for a number of rounds, and returns what a step of an
// episode cost and the multiplier, both means of the learner steps in the last quarter.
func Pay(t testing.TB, m agents.Maker, choice bool, rounds int) (cost, lambda float64) {
	t.Helper()
	v := Vector(t, 4, func() (*Toll, error) { return &Toll{Choice: choice}, nil })
	r := NewTraining(t, Agent(t, m, v, testengines.Fastest(t), 1), v)
	r.Run(t, rounds-rounds/4)
	sum := vector.NewCostSum(v.Spec(), v.Len())
	steps, episodes := 0.0, 0.0
	for range rounds / 4 {
		r.Run(t, 1)
		sum.Add(v.Batch())
		for _, e := range v.Batch().Ended {
			if episodes++; e.Length != tollSteps {
				t.Fatalf("an episode of %d steps", e.Length)
			}
			cost += sum.Episode(e.Env)[0] / tollSteps
		}
		if x, ok := r.Last["constraint/toll/lambda"]; ok {
			lambda, steps = lambda+x, steps+1
		}
	}
	if episodes == 0 || steps == 0 {
		t.Fatal("no episode, or no multiplier")
	}
	return cost / episodes, lambda / steps
}

// TollLimit is the constraint on a [Toll] that allows so much for each step of an episode.
func TollLimit(each float64) constraint.Config {
	c := constraint.Defaults()
	c.Cost, c.Limit = "toll", each*tollSteps
	return c
}

// Edited trains what one maker makes for a number of rounds, edits it to be the other's, and goes
// on: that equals, bit for bit, an agent of the other that has loaded the state. It returns the
// training, and the metrics before the edit.
func Edited(t testing.TB, s envs.Spec, from, to agents.Maker, rounds int) (*Training, agents.Metrics) {
	t.Helper()
	e := testengines.Fastest(t)
	r, v := Variant{from, s}.training(t, e)
	r.Run(t, rounds)
	before := maps.Clone(r.Last)
	if err := r.Agent.Learner().(agents.Editor).Edit(to.Config(), 300); err != nil {
		t.Fatal(err)
	}
	path := Save(t, r.Agent)
	world, err := v.SaveState()
	if err != nil {
		t.Fatal(err)
	}
	fresh, v2 := Variant{to, s}.training(t, e)
	if err := v2.LoadState(world); err != nil {
		t.Fatal(err)
	}
	if err := Load(t, path, fresh.Agent); err != nil {
		t.Fatal(err)
	}
	fresh.Done, fresh.Last = r.Done, maps.Clone(r.Last)
	if a, b := r.traced(t, rounds), fresh.traced(t, rounds); !slices.Equal(a, b) {
		t.Error("an edited learner differs from one that was made so")
	}
	return r, before
}

// EditConstraints trains for a number of rounds, edits limits and rates, and goes on: that equals,
// bit for bit, an agent made with them that has loaded the state. Other costs, measures, methods
// and numbers of constraints take a new agent. make returns a maker for two constraints like those
// of list.
func EditConstraints(t *testing.T, s envs.Spec, list []constraint.Config, make func([]constraint.Config) agents.Maker, rounds int) {
	t.Helper()
	edited := slices.Clone(list)
	edited[0].Limit, edited[0].LambdaLR, edited[1].Limit, edited[1].PID.KP, edited[1].LagrangianUpperBound = -1, 0.5, 0.1, 3, 7
	key := "constraint/" + list[1].Cost + "/lambda"
	r, before := Edited(t, s, make(list), make(edited), rounds)
	if after := r.Last[key]; after == before[key] || after > 7 {
		t.Errorf("the multiplier goes from %g to %g, below 7", before[key], after)
	}
	refused := 0
	for path, change := range sorted.All(map[string]func(list []constraint.Config) []constraint.Config{
		"constraints":         func(list []constraint.Config) []constraint.Config { return list[:1] },
		"constraints[0].cost": func(list []constraint.Config) []constraint.Config { list[0].Cost = "other"; return list },
		"constraints[0].method": func(list []constraint.Config) []constraint.Config {
			list[0].Method = constraint.PIDController
			return list
		},
	}) {
		var rebuild *agents.RebuildError
		err := r.Agent.Learner().(agents.Editor).Edit(make(change(slices.Clone(list))).Config(), 300)
		if refused++; !errors.As(err, &rebuild) || rebuild.Path != path {
			t.Errorf("%s: %v", path, err)
		}
	}
	if refused != 3 {
		t.Errorf("%d changes", refused)
	}
}

// Tails limits the tail of one cost of a [Costly] and the mean of the other.
func Tails() []constraint.Config {
	a, b := constraint.Defaults(), constraint.Defaults()
	a.Cost, a.Limit, a.Measure, a.Alpha, a.Window, a.Quantiles, a.LagrangianMultiplierInit = "toll", 3, constraint.CVaR, 0.5, 6, 3, 0.5
	b.Cost, b.Limit = "risk", 2
	return []constraint.Config{a, b}
}
