package train_test

import (
	"math"
	"slices"
	"testing"

	"github.com/onnxrl/onnxrl/agents/train"
	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/envs/envtest"
)

// priced makes corridors with costs.
type priced struct{ envs.Factory }

func (f priced) New(s envs.Split, i int) (envs.Env, error) {
	e, err := f.Factory.New(s, i)
	return envtest.Priced{Env: e}, err
}

// TestCosts: the costs of episodes are metrics beside their returns, and a run that stops anywhere
// has those of one that does not.
func TestCosts(t *testing.T) {
	f, cfg := priced{factory(t)}, small()
	cfg.Validation = train.Validation{}
	whole := run(t, options{cfg: cfg, factory: f})
	if whole.err != nil || len(whole.lines) < 8 {
		t.Fatalf("%d lines, %v", len(whole.lines), whole.err)
	}
	n := 0
	for _, l := range whole.lines {
		length, ok := l.values["rollout/ep_len_mean"]
		if !ok {
			continue
		}
		steps, rewards := l.values["rollout/ep_cost_mean/"+envtest.StepCost], l.values["rollout/ep_cost_mean/"+envtest.RewardCost]
		if want := 2*l.values["rollout/ep_rew_mean"] + 0.5*length; steps != length || math.Abs(rewards-want) > 1e-9 {
			t.Errorf("env step %d: costs %g and %g, expected %g and %g", l.step, steps, rewards, length, want)
		}
		n++
	}
	for stop := 1; stop < 30; stop += 4 {
		dir := t.TempDir()
		first := run(t, options{cfg: cfg, factory: f, dir: dir, stop: stop})
		second := run(t, options{cfg: cfg, factory: f, dir: dir})
		if first.err != nil || second.err != nil || !sameLines(slices.Concat(first.lines, second.lines), whole.lines) {
			t.Errorf("stopped after learner step %d: other metrics, %v, %v", stop, first.err, second.err)
		}
		n++
	}
	if n < 8+8 {
		t.Errorf("%d comparisons", n)
	}
}
