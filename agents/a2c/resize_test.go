package a2c

import (
	"slices"
	"testing"

	"github.com/onnxrl/onnxrl/agents"
	"github.com/onnxrl/onnxrl/agents/agenttest"
	"github.com/onnxrl/onnxrl/agents/onpolicy"
	"github.com/onnxrl/onnxrl/envs/market/trading"
	"github.com/onnxrl/onnxrl/runtime/engine/testengines"
	"github.com/onnxrl/onnxrl/runtime/rng"
	"github.com/onnxrl/onnxrl/runtime/sorted"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// TestAssetsMayChange takes what was learnt on five assets to a market of eight, and to ten slots
// for them: all parameters fit, and permuting the assets permutes the probabilities of their
// orders.
func TestAssetsMayChange(t *testing.T) {
	const bars, features = 70, 4
	window := func(c *trading.Config) { c.Window = 6 }
	order, n := []int{3, 7, 0, 2, 6, 1, 5, 4}, 0
	plain := market(bars, 8, features, false)
	// Every asset is listed, so that no slot waits for one.
	for i := range plain.Tradable {
		plain.Tradable[i] = trading.Both
	}
	permuted := *plain
	permuted.X, permuted.Open, permuted.Close = slices.Clone(plain.X), slices.Clone(plain.Open), slices.Clone(plain.Close)
	for i := range bars * 8 {
		from := i/8*8 + order[i%8]
		permuted.Open[i], permuted.Close[i] = plain.Open[from], plain.Close[from]
		copy(permuted.X[i*features:(i+1)*features], plain.X[from*features:])
	}
	for _, mix := range []string{"attention", "mlp", "none"} {
		c := small(t, nil)
		c.CrossAsset.Mix, c.NSteps = mix, 5
		e := testengines.Fastest(t)
		few := markets(t, market(bars, 5, features, false), 2, window)
		r := agenttest.NewTraining(t, agent(t, c, few, e, 1), few)
		for range 3 {
			r.Update(t)
		}
		_, params := r.Agent.Learner().Policy()
		act := func(m *trading.Market, slots int) []float32 {
			v := markets(t, m, 1, func(c *trading.Config) { c.Window, c.Slots = 6, slots })
			a := agent(t, c, v, e, 1, func(s *agents.Setup) {
				s.Init = func(values map[string]*tensor.Tensor) error {
					for name, x := range sorted.All(values) {
						y := params.View(name)
						if y == nil || !slices.Equal(x.Shape(), y.Shape()) {
							t.Fatalf("%s: %s is %v for other assets, and was %v", mix, name, x, y)
						}
						copy(x.Bytes(), y.Bytes())
					}
					return nil
				}
			})
			x := agenttest.Actor(t, a, agents.Greedy, 1).(*onpolicy.Actor)
			if _, err := x.Act(t.Context(), rng.New(1), v.Batch()); err != nil {
				t.Fatal(err)
			}
			return slices.Clone(x.Forward.Program.Output(agents.LogProbsOutput).Float32s())
		}
		before, after, slots := act(plain, 0), act(&permuted, 0), act(plain, 8)
		for i := range order {
			if n++; apart(after[3*i:3*i+3], before[3*order[i]:3*order[i]+3]) > 1e-5 || apart(slots[3*i:3*i+3], before[3*i:3*i+3]) > 1e-6 {
				t.Errorf("%s, asset %d: %v, expected %v; in a slot %v", mix, i, after[3*i:3*i+3], before[3*order[i]:3*order[i]+3], slots[3*i:3*i+3])
			}
		}
		if apart(before[:3], before[3:6]) == 0 {
			t.Errorf("%s: assets are treated alike", mix)
		}
		if len(act(plain, 10)) != 30 {
			t.Errorf("%s: ten slots have no ten orders", mix)
		}
	}
	if n != 24 {
		t.Errorf("%d comparisons", n)
	}
}
