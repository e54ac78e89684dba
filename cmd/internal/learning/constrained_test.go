package learning

import (
	"errors"
	"testing"

	"github.com/onnxrl/onnxrl/agents"
	"github.com/onnxrl/onnxrl/agents/experiment"
	"github.com/onnxrl/onnxrl/agents/experiment/kinds"
	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/envs/market/trading"
	"github.com/onnxrl/onnxrl/envs/vector"
	"github.com/onnxrl/onnxrl/runtime/engine"
	"github.com/onnxrl/onnxrl/runtime/longtest"
	"github.com/onnxrl/onnxrl/runtime/rng"
)

// heldOut is what the episodes of a policy in bars that it was not trained on come to: how many
// there are and how many exceed a maximum drawdown of a tenth, the mean of the latter and of the
// return.
type heldOut struct {
	episodes, violations int
	drawdown, reward     float64
}

// drawdowns trains the shipped experiment with one seed and lets it act.
func drawdowns(t *testing.T, e engine.Compiler, seed uint64, sets ...string) (h heldOut) {
	t.Helper()
	cfg, _, err := experiment.Load("demo_drawdown", append(sets, "train.validation.every_steps=0", "train.threads=1"))
	if err != nil {
		t.Fatal(err)
	}
	cfg.Seed = seed
	cfg, factory, maker, err := kinds.All().Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	trainer, _, err := trained(t.Context(), cfg, factory, maker, Options{Engine: e})
	if err != nil {
		t.Fatal(err)
	}
	d := factory.(trading.Opened)
	c := d.Source().Config()
	c.Episode = trading.Episode{Kind: trading.Random, Length: 125, End: trading.Truncate}
	s, err := trading.NewSource(d.Data().Market, c)
	if err != nil {
		t.Fatal(err)
	}
	worlds := make([]envs.Env, 8)
	for i := range worlds {
		if worlds[i], err = s.Env(trading.Range{First: d.Data().Splits[envs.Valid].First, Last: d.Data().Splits[envs.Test].Last}); err != nil {
			t.Fatal(err)
		}
	}
	v, err := vector.New(worlds, vector.Options{Workers: 1})
	if err != nil {
		t.Fatal(err)
	}
	if err := v.Reset(rng.New(7)); err != nil {
		t.Fatal(err)
	}
	a, err := trainer.Agent().NewActor(agents.Explore, len(worlds))
	if err != nil {
		t.Fatal(err)
	}
	sum := vector.NewCostSum(v.Spec(), v.Len())
	for round := 0; h.episodes < 400; round++ {
		if err := agents.Collect(t.Context(), v, a, nil, rng.New(8), round, 1, nil); err != nil {
			t.Fatal(err)
		}
		sum.Add(v.Batch())
		for _, ep := range v.Batch().Ended {
			deepest := sum.Episode(ep.Env)[0]
			if h.episodes++; deepest > 0.1 {
				h.violations++
			}
			h.drawdown, h.reward = h.drawdown+deepest/400, h.reward+ep.Return/400
		}
	}
	if err := errors.Join(a.Close(), v.Close(), trainer.Close(), factory.Close()); err != nil {
		t.Fatal(err)
	}
	return h
}

// TestConstraintOnHeldOutBars: an agent trained under a limit on the CVaR of its drawdown hardly
// ever exceeds it on bars that it has not seen, where one that was not does so often.
func TestConstraintOnHeldOutBars(t *testing.T) {
	longtest.Nightly(t)
	e := fastest(t)
	free, limited := drawdowns(t, e, 1, "agent.constraints=[]"), drawdowns(t, e, 1)
	t.Logf("unconstrained %+v, constrained %+v", free, limited)
	if free.episodes != 400 || limited.episodes != 400 || free.violations < 100 || limited.violations > 20 || limited.drawdown > 0.1 {
		t.Errorf("%d of %d episodes exceed the limit, and %d without it; their mean is %g", limited.violations, limited.episodes, free.violations, limited.drawdown)
	}
}
