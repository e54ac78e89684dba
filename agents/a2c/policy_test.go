package a2c

import (
	"maps"
	"math"
	"slices"
	"testing"

	"github.com/onnxrl/onnxrl/agents"
	"github.com/onnxrl/onnxrl/agents/agenttest"
	"github.com/onnxrl/onnxrl/agents/onpolicy"
	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/envs/market/trading"
	"github.com/onnxrl/onnxrl/envs/vector"
	"github.com/onnxrl/onnxrl/runtime/engine/testengines"
	"github.com/onnxrl/onnxrl/runtime/longtest"
	"github.com/onnxrl/onnxrl/runtime/rng"
	"github.com/onnxrl/onnxrl/runtime/sorted"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

func nan() float64 { return math.NaN() }

// TestPolicyIsTheActor runs the complete network, with its parameters baked in, on what the
// environments show, and compares it with the greedy actor, for batches of several sizes.
func TestPolicyIsTheActor(t *testing.T) {
	n, of := 0, longtest.Cases(t, 5, 3)
	for _, e := range testengines.All(t) {
		for _, rows := range []int{1, 3} {
			for what, world := range sorted.All(longtest.Few(t, map[string]vector.Env{
				"corridor": corridors(t, rows), "flat": agenttest.Toys(t, rows, flatToy()), "windows": agenttest.Toys(t, rows, windowToy(t)),
				"market": markets(t, market(70, 3, 4, false), rows, func(c *trading.Config) { c.Window = 6 }),
				"own":    markets(t, market(70, 3, 4, false), rows, func(c *trading.Config) { c.Window = 6 }),
			}, of)) {
				c := small(t, nil)
				if what == "own" {
					c.Policy = ownMarket(t, 4)
				}
				if what == "corridor" || what == "flat" {
					c = quick()
				}
				c.NSteps = 5
				a := agent(t, c, world, e, 1)
				r := agenttest.NewTraining(t, a, world)
				for range 2 {
					r.Update(t)
				}
				out := agenttest.Exported(t, r, e)
				x := agenttest.Actor(t, a, agents.Greedy, rows).(*onpolicy.Actor)
				d, err := x.Act(t.Context(), rng.New(1), world.Batch())
				if err != nil {
					t.Fatal(err)
				}
				action := out[agents.ActionOutput]
				if n++; !slices.Equal(action.Shape(), d.Actions.Shape()) || !slices.Equal(action.Int64s(), d.Actions.Int64s()) {
					t.Errorf("%s, %s: actions %v %v, the actor's are %v", e.Name(), what, action, action.Int64s(), d.Actions.Int64s())
				}
				value := out[agents.ValueOutput]
				if n++; !slices.Equal(value.Shape(), []int{rows}) || apart(value.Float32s(), d.Value) > 1e-5 {
					t.Errorf("%s, %s: values %v, the actor's are %v", e.Name(), what, value.Float32s(), d.Value)
				}
				if n++; apart(out[agents.LogProbsOutput].Float32s(), x.Forward.Program.Output(agents.LogProbsOutput).Float32s()) > 1e-5 {
					t.Errorf("%s, %s: log-probabilities differ", e.Name(), what)
				}
				sum := 0.0
				at, k := 0, 0
				for _, size := range a.learner.g.Frame.Heads {
					sum += float64(out[agents.LogProbsOutput].Float32s()[at+int(d.Actions.Int64s()[k])])
					at, k = at+size, k+1
				}
				if n++; math.Abs(sum-float64(d.LogProb[0])) > 1e-4 {
					t.Errorf("%s, %s: the decision's log-probability is %g, the sum over the heads %g", e.Name(), what, d.LogProb[0], sum)
				}
			}
		}
	}
	if n < 8*of {
		t.Errorf("%d comparisons", n)
	}
}

// TestFirstParameters checks that Init sees every parameter once, and that it is what acts.
func TestFirstParameters(t *testing.T) {
	v := corridors(t, 1)
	calls := 0
	a := agent(t, quick(), v, testengines.Fastest(t), 1, func(s *agents.Setup) {
		s.Init = func(values map[string]*tensor.Tensor) error {
			calls++
			for name, want := range sorted.All(map[string][]int{
				"hidden.fc0.weight": {32, 1}, "hidden.fc0.bias": {32}, "actor.logits.weight": {2, 32}, "actor.logits.bias": {2}, "critic.value.weight": {1, 32}, "critic.value.bias": {1},
			}) {
				if x := values[name]; x == nil || !slices.Equal(x.Shape(), want) {
					t.Errorf("%s is %v of %v", name, x, slices.Sorted(maps.Keys(values)))
				}
			}
			if len(values) != 6 {
				t.Errorf("%d parameters", len(values))
			}
			clear(values["critic.value.weight"].Float32s())
			values["critic.value.bias"].Float32s()[0] = 42
			return nil
		}
	})
	d, err := agenttest.Actor(t, a, agents.Explore, 1).Act(t.Context(), rng.New(1), v.Batch())
	if err != nil {
		t.Fatal(err)
	}
	if calls != 1 || d.Value[0] != 42 {
		t.Errorf("%d calls, value %g", calls, d.Value[0])
	}
	// A new policy is nearly uniform.
	if p := math.Exp(float64(d.LogProb[0])); math.Abs(p-0.5) > 0.05 && p < 0.99 {
		t.Errorf("probability %g", p)
	}
}

// TestSequences takes windows of one series, [W,F], beside vectors, with and without a table.
func TestSequences(t *testing.T) {
	s := flatToy()
	s.Observation = append(envs.Dict{{Name: "w", Space: envs.Unbounded(8, 4), Window: agenttest.Window(t, 60, 4)}}, s.Observation...)
	plain := flatToy()
	plain.Observation = append(envs.Dict{{Name: "w", Space: envs.Unbounded(8, 4)}}, plain.Observation...)
	for _, e := range testengines.All(t) {
		on, off := small(t, nil), small(t, nil)
		on.ShareWindows, off.ShareWindows = On, Off
		a, b := learn(t, on, agenttest.Toys(t, 3, s), e, 2, 4), learn(t, off, agenttest.Toys(t, 3, s), e, 2, 4)
		if d := apart(a.params, b.params); d > 1e-5 {
			t.Errorf("%s: parameters are apart by %g", e.Name(), d)
		}
		c := learn(t, small(t, nil), agenttest.Toys(t, 3, plain), e, 1, 4)
		if len(c.params) != len(a.params) || apart(c.params, a.params) == 0 {
			t.Errorf("%s: %d parameters without a table, %d with one", e.Name(), len(c.params), len(a.params))
		}
	}
	// Windows of assets without a table.
	assets := windowToy(t)
	assets.Observation[0].Window = nil
	d := learn(t, small(t, nil), agenttest.Toys(t, 2, assets), testengines.Fastest(t), 1, 2)
	if len(d.actions) != 2*10*2*3 {
		t.Errorf("%d actions", len(d.actions))
	}
}

// TestNothingIsAllocated trains in steady state.
func TestNothingIsAllocated(t *testing.T) {
	n := 0
	for _, e := range testengines.All(t) {
		for _, share := range []string{On, Off} {
			c := small(t, nil)
			c.ShareWindows = share
			v := markets(t, market(70, 3, 4, false), 2, func(c *trading.Config) { c.Window = 6 })
			r := agenttest.NewTraining(t, agent(t, c, v, e, 1), v)
			update := func() { r.Update(t) }
			for range 15 {
				update()
			}
			if k := testing.AllocsPerRun(20, update); k > testengines.Allocations(e) {
				t.Errorf("%s, share %s: %g allocations per update", e.Name(), share, k)
			}
			n++
		}
	}
	if n < 2 {
		t.Errorf("%d cases", n)
	}
}
