package kinds_test

import (
	"testing"

	"github.com/onnxrl/onnxrl/agents/experiment"
	"github.com/onnxrl/onnxrl/agents/experiment/kinds"
	"github.com/onnxrl/onnxrl/configs"
)

// TestRewardsAreDiscountedAsTheAgentDoes: the running return by which rewards are scaled takes the
// agent's discount unless the document says otherwise.
func TestRewardsAreDiscountedAsTheAgentDoes(t *testing.T) {
	cases := []struct {
		sets []string
		want float64
		open bool
	}{
		{nil, 0.99, true}, // Nothing is scaled.
		{[]string{"wrappers.normalize.obs=true"}, 0.99, true},
		{[]string{"wrappers.normalize.reward=true"}, 0.99, false}, // A2C's default here.
		{[]string{"wrappers.normalize.reward=true", "agent.gamma=0.9"}, 0.9, false},
		{[]string{"wrappers.normalize.reward=true", "agent.gamma=0.9", "wrappers.normalize.gamma=0.95"}, 0.95, false},
	}
	for _, c := range cases {
		doc, err := configs.Parse("run.yaml", []byte("env: {kind: cartpole}\nagent: {kind: a2c}\n"))
		if err != nil {
			t.Fatal(err)
		}
		if err := doc.Set(c.sets...); err != nil {
			t.Fatal(err)
		}
		cfg := experiment.Defaults()
		if err := doc.Decode(&cfg); err != nil {
			t.Fatal(err)
		}
		cfg, err = kinds.All().Settle(t.Context(), cfg)
		if err != nil {
			t.Fatal(err)
		}
		if n := cfg.Train.Normalize; n.Discount() != c.want || (n.Gamma == nil) != c.open {
			t.Errorf("%v: returns are discounted by %g, expected %g; written down: %t", c.sets, n.Discount(), c.want, n.Gamma != nil)
		}
	}
}
