package a2c

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/agents"
	"github.com/onnxrl/onnxrl/agents/agenttest"
	"github.com/onnxrl/onnxrl/configs"
	"github.com/onnxrl/onnxrl/envs/market/trading"
	"github.com/onnxrl/onnxrl/envs/vector"
	"github.com/onnxrl/onnxrl/runtime/engine/testengines"
	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/rng"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// ownMarket is a user-supplied policy for windows of features beside positions: one layer over the
// last bar of each asset and its position, logits [batch, assets, 3].
func ownMarket(t testing.TB, features int) configs.Kinded {
	t.Helper()
	b, s := onnx.NewBuilder("own", onnx.DefaultOpset), rng.New(4).Stream()
	weight := func(name string, shape ...int) onnx.Value {
		w := tensor.New(tensor.Float32, shape...)
		s.FillNormal32(w.Float32s(), 0, 0.3)
		return b.Initializer(name, w)
	}
	form := func(rank int) onnx.TensorType {
		return onnx.TensorType{DType: tensor.Float32, Ranked: true, Dims: []onnx.Dim{onnx.Symbol("n"), onnx.Symbol("a"), onnx.Symbol("b"), onnx.Symbol("c")}[:rank]}
	}
	window, position := b.Input("window", form(4)), b.Input("position", form(2))
	last := b.Op("Gather", []onnx.Value{window, b.Ints(-1)}, onnx.AttrInt("axis", 1))
	own := b.Op("MatMul", []onnx.Value{b.Op("Squeeze", []onnx.Value{last, b.Ints(1)}), weight("bar.weight", features, 3)})
	held := b.Op("MatMul", []onnx.Value{b.Op("Unsqueeze", []onnx.Value{position, b.Ints(2)}), weight("held.weight", 1, 3)})
	b.Output(b.Rename(b.Op("Add", []onnx.Value{b.Op("Add", []onnx.Value{own, held}), weight("bias", 3)}), "logits"), form(3))
	m, err := b.Model()
	if err != nil {
		t.Fatal(err)
	}
	return agenttest.Own(t, m)
}

// TestOwnMarketPolicyIsTheBuiltIn trains a policy for a market, and what that exports as a
// user-supplied policy, which reads windows, positions, cash and the mask: the same up to rounding,
// although the one has the features of windows from a bank and the other reads them.
func TestOwnMarketPolicyIsTheBuiltIn(t *testing.T) {
	n := 0
	for _, e := range testengines.All(t) {
		for _, share := range []string{On, Off} {
			c := small(t, nil)
			c.Encoders, c.ShareWindows = Separate, share
			world := func() vector.Env {
				return markets(t, market(70, 3, 4, false), 3, func(c *trading.Config) {
					c.Window, c.Episode.Kind, c.Episode.Length = 6, trading.Random, 13
				})
			}
			v, w := world(), world()
			a := agent(t, c, v, e, 1)
			baked, err := a.learner.g.Policy.Bake(a.learner.Params.View)
			if err != nil {
				t.Fatal(err)
			}
			in := []onnx.Value{agents.MaskInput}
			for _, field := range v.Spec().Observation {
				in = append(in, onnx.Value(field.Name))
			}
			m, err := onnx.Extract(baked, in, []onnx.Value{agents.LogProbsOutput}, nil)
			if err != nil {
				t.Fatal(err)
			}
			given := c
			given.Policy = agenttest.Own(t, m)
			b := agent(t, given, w, e, 1)
			x, y := agenttest.NewTraining(t, a, v), agenttest.NewTraining(t, b, w)
			for range 3 {
				for _, r := range []*agenttest.Training{x, y} {
					r.Update(t)
				}
			}
			fresh, moved := agent(t, c, world(), e, 1), 0
			for _, s := range a.learner.g.Policy.Specs {
				name := s.Name
				if strings.HasPrefix(name, "actor.") {
					name = "actor.policy." + name
				}
				p, q := a.learner.Params.View(s.Name), b.learner.Params.View(name)
				if p == nil || q == nil || apart(p.Float32s(), q.Float32s()) > 2e-3 {
					t.Errorf("%s, share %s: %s is %v after three updates, and the built-in one's %v", e.Name(), share, name, q, p)
					continue
				}
				n++
				if !slices.Equal(p.Float32s(), fresh.learner.Params.View(s.Name).Float32s()) {
					moved++
				}
			}
			if moved < 20 {
				t.Errorf("%s, share %s: %d parameters have learnt", e.Name(), share, moved)
			}
		}
	}
	if n < 2*40 {
		t.Errorf("%d comparisons", n)
	}
}

// TestPrivilegedBesideWindows: features of windows that were encoded before go to both, and what
// lies beside them to the critic alone.
func TestPrivilegedBesideWindows(t *testing.T) {
	c := small(t, nil)
	c.Encoders, c.Privileged = Separate, []string{"x"}
	v := agenttest.Toys(t, 2, agenttest.Series(t))
	r := agenttest.NewTraining(t, agent(t, c, v, testengines.Fastest(t), 1), v)
	r.Update(t)
	net, _ := r.Agent.Learner().Policy()
	var inputs []string
	for _, in := range net.Model.Graph.Input {
		inputs = append(inputs, in.Name)
	}
	if !slices.Contains(inputs, "window") || slices.Contains(inputs, "x") {
		t.Errorf("the policy reads %v", inputs)
	}
	x := agenttest.Actor(t, r.Agent, agents.Greedy, 2)
	var actions, values []string
	for i := range 2 {
		v.Batch().Obs[1].Float32s()[0] = float32(i)
		d, err := x.Act(t.Context(), rng.New(1), v.Batch())
		if err != nil {
			t.Fatal(err)
		}
		actions, values = append(actions, string(d.Actions.Bytes())), append(values, fmt.Sprint(d.Value))
	}
	if actions[0] != actions[1] || values[0] == values[1] {
		t.Errorf("actions %q, values %v", actions, values)
	}
}
