package assess

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/onnxrl/onnxrl/agents"
	"github.com/onnxrl/onnxrl/agents/evaluate"
	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/envs/market/trading"
	"github.com/onnxrl/onnxrl/envs/market/trading/backtest"
	"github.com/onnxrl/onnxrl/envs/vector"
	"github.com/onnxrl/onnxrl/envs/wrap"
	"github.com/onnxrl/onnxrl/runtime/rng"
)

// Policy lets an agent's actor decide in a back-test, one row at a time. It is a backtest.Policy.
type Policy struct {
	name  string
	actor agents.Actor
	spec  envs.Spec
	frame *vector.Frame
	key   rng.Key
	turn  int
	// weights are the rules by which actions become target weights, with scratch for them.
	weights trading.WeightRules
	scratch []float64
}

var _ backtest.Weigher = (*Policy)(nil)

// NewPolicy returns a policy that acts as a does at present, in environments of a spec. A skill,
// unless nil, is what it observes beside them, as wrap.FixedSkill gives it. The caller closes the
// policy, before the agent.
func NewPolicy(name string, a evaluate.Actors, mode agents.Mode, spec envs.Spec, skill []float32) (*Policy, error) {
	actor, err := a.NewActor(mode, 1)
	if err != nil {
		return nil, fmt.Errorf("evaluate %s: %w", name, err)
	}
	shown := spec
	if skill != nil {
		shown.Observation = append(slices.Clone(spec.Observation), envs.Field{Name: wrap.SkillField, Space: envs.NewBox(0, 1, len(skill))})
	}
	frame, err := vector.NewFrame(shown, 1, false)
	if err != nil {
		return nil, fmt.Errorf("evaluate %s: %w", name, errors.Join(err, actor.Close()))
	}
	if skill != nil {
		copy(frame.Batch().Obs[len(spec.Observation)].Float32s(), skill)
	}
	return &Policy{name: name, actor: actor, spec: spec, frame: frame}, nil
}

// Name implements backtest.Policy.
func (p *Policy) Name() string { return p.name }

// Begin implements backtest.Policy. Environments that are observed or acted in differently are
// refused.
func (p *Policy) Begin(e *trading.Env, key rng.Key) error {
	spec := e.Spec()
	// How long an episode is, and what is rewarded, does not concern a policy.
	spec.MaxSteps, spec.Random, spec.Reward = p.spec.MaxSteps, p.spec.Random, p.spec.Reward
	if !spec.Equal(&p.spec) {
		return fmt.Errorf("the policy was made for other observations or actions than those of this %s", spec.Name)
	}
	p.key, p.turn = key, 0
	if c := e.Source().Config(); c.Actions == trading.Weights {
		p.weights, p.scratch = c.Weights, make([]float64, len(e.Positions())+1)
	}
	return nil
}

// Decide implements backtest.Policy.
func (p *Policy) Decide(ctx context.Context, _ *trading.Env, ts *envs.TimeStep, orders []int64) error {
	d, err := p.act(ctx, ts)
	if err != nil {
		return err
	}
	if n := copy(orders, d.Actions.Int64s()); n != len(orders) {
		return fmt.Errorf("act: %d actions for %d assets", n, len(orders))
	}
	return nil
}

// Weigh implements backtest.Weigher.
func (p *Policy) Weigh(ctx context.Context, _ *trading.Env, ts *envs.TimeStep, weights []float64) error {
	d, err := p.act(ctx, ts)
	if err != nil {
		return err
	}
	x := d.Actions.Float32s()
	if len(x) != len(weights) {
		return fmt.Errorf("act: %d numbers, expected %d for the assets and the cash", len(x), len(weights))
	}
	if m, ok := p.actor.(converter); ok && m.Unconverted() != nil {
		for i, v := range m.Unconverted() {
			weights[i] = float64(v)
		}
		return nil
	}
	p.weights.Of(weights, x, p.scratch)
	return nil
}

// converter is an actor of an exported model, which gives target weights by itself.
type converter interface {
	// Unconverted are what the model gave, nil where the decision has it.
	Unconverted() []float32
}

func (p *Policy) act(ctx context.Context, ts *envs.TimeStep) (*vector.Decision, error) {
	if err := p.frame.Put(0, ts); err != nil {
		return nil, err
	}
	d, err := p.actor.Act(ctx, p.key.Split("round", p.turn), p.frame.Batch())
	if err != nil {
		return nil, fmt.Errorf("act: %w", err)
	}
	p.turn++
	return d, nil
}

// Close frees the actor.
func (p *Policy) Close() error { return errors.Join(p.actor.Close(), p.frame.Close()) }
