package train_test

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/agents"
	"github.com/onnxrl/onnxrl/agents/train"
	"github.com/onnxrl/onnxrl/models/checkpoint"
	"github.com/onnxrl/onnxrl/runtime/portable"
	"github.com/onnxrl/onnxrl/runtime/rng"
	"github.com/onnxrl/onnxrl/runtime/sorted"
)

// TestRunTo pauses, between which nothing, an agent of the same configuration that takes over the
// state, or a trainer that loads what it has itself changes nothing of what the run gives.
func TestRunTo(t *testing.T) {
	h := func() train.Hooks { return train.Hooks{Evaluate: evaluator(t), Publish: &publisher{}} }
	whole := run(t, options{cfg: small(), hooks: h()})
	if whole.err != nil {
		t.Fatal(whole.err)
	}
	m := &maker{rollout: 20}
	for what, edit := range sorted.All(map[string]func(tr *train.Trainer) error{
		"nothing": nil,
		"agent":   func(tr *train.Trainer) error { return tr.Edit(t.Context(), m, tr.Config()) },
		"state":   func(tr *train.Trainer) error { return checkpoint.Copy(tr, tr) },
	}) {
		m.made = nil
		got := run(t, options{cfg: small(), maker: m, hooks: h(), pauses: []int64{1, 100, 241, 580}, edit: edit})
		if got.err != nil || !sameLines(got.lines, whole.lines) || !slices.Equal(got.weights, whole.weights) || !slices.Equal(got.best, whole.best) || !slices.Equal(got.refs, whole.refs) || got.EnvSteps != whole.EnvSteps {
			t.Errorf("%s: %+v, expected %+v", what, got, whole)
		}
	}
	if res := run(t, options{cfg: small(), hooks: h(), pauses: []int64{0}}); !reflect.DeepEqual(res.weights, whole.weights) {
		t.Error("a pause before the first env step changes something")
	}
}

// failing makes agents that cannot be made.
type failing struct{ *maker }

func (failing) New(context.Context, agents.Setup) (agents.Agent, error) {
	return nil, errors.New("there is none")
}

// TestEditRefuses: a run goes on as it was after an edit that is refused.
func TestEditRefuses(t *testing.T) {
	whole := run(t, options{cfg: small()})
	n := 0
	got := run(t, options{cfg: small(), pauses: []int64{100}, edit: func(tr *train.Trainer) error {
		made := func(change func(c *train.Config)) train.Config {
			c := tr.Config()
			change(&c)
			return c
		}
		for what, c := range sorted.All(map[string]struct {
			m    agents.Maker
			cfg  train.Config
			says string
		}{
			"environments":  {&maker{rollout: 20}, made(func(c *train.Config) { c.NumEnvs = 5 }), "num_envs: 5, expected the 4"},
			"no document":   {&maker{rollout: 20}, made(func(c *train.Config) { c.TotalEnvSteps = 0 }), "total_env_steps"},
			"normalisation": {&maker{rollout: 20}, made(func(c *train.Config) { c.Normalize.Obs = true }), "wrappers.normalize"},
			"no agent":      {failing{&maker{}}, tr.Config(), "there is none"},
		}) {
			if err := tr.Edit(t.Context(), c.m, c.cfg); err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%s: %v", what, err)
			}
			n++
		}
		return nil
	}})
	if n != 4 || !sameLines(got.lines, whole.lines) || !slices.Equal(got.weights, whole.weights) {
		t.Errorf("after %d edits that are refused: %+v, expected %+v", n, got, whole)
	}
	if _, err := train.New(t.Context(), factory(t), failing{&maker{}}, agents.Setup{Engine: portable.New(), Key: rng.New(7)}, small(), train.Hooks{}); err == nil {
		t.Error("a trainer without an agent")
	}
}
