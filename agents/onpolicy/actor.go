package onpolicy

import (
	"context"
	"fmt"

	"github.com/onnxrl/onnxrl/agents"
	"github.com/onnxrl/onnxrl/agents/network"
	"github.com/onnxrl/onnxrl/envs/vector"
	"github.com/onnxrl/onnxrl/runtime/rng"
)

// Actor draws actions, or takes the best ones, with the parameters where they are learnt.
type Actor struct {
	Forward *Forward

	learner  *Learner
	sampler  *network.Sampler
	Decision agents.Decision
}

// NewActor returns an actor for n environments.
func NewActor(l *Learner, e network.Exploration, m agents.Mode, n int) (*Actor, error) {
	if n < 1 {
		return nil, fmt.Errorf("an actor for %d environments", n)
	}
	f, err := l.NewForward(n)
	if err != nil {
		return nil, err
	}
	return &Actor{Forward: f, learner: l, Decision: agents.Decision{Value: f.Value, CostValue: f.CostValue}, sampler: network.NewSampler(l.Networks.Frame, e, m, n, f.Program.Output, l.Params.View(LogStdParam))}, nil
}

// Act implements agents.Actor.
func (a *Actor) Act(_ context.Context, key rng.Key, b *vector.Batch) (*agents.Decision, error) {
	l := a.learner
	if err := a.Forward.Current(b); err != nil {
		return nil, fmt.Errorf("%s: act: %w", l.Name, err)
	}
	a.Decision.Version = l.Updates
	if err := a.sampler.Decide(&a.Decision, key, network.Moment{Key: l.sdeKey, Rollout: l.Updates, Replaced: l.Replaced, Round: l.Rollout.T}); err != nil {
		return nil, fmt.Errorf("%s: act: %w", l.Name, err)
	}
	return &a.Decision, nil
}

// Sync implements agents.Actor: there is nothing to do.
func (a *Actor) Sync(context.Context) error { return nil }

// Close implements agents.Actor.
func (a *Actor) Close() error { return a.Forward.Program.Close() }
