package train

import (
	"context"
	"errors"

	"onnxrl/agents"
	"onnxrl/envs"
	"onnxrl/envs/normalize"
	"onnxrl/envs/vector"
	"onnxrl/envs/wrap"
	"onnxrl/runtime/rng"
)

// normalized is an agent that learnt from normalised observations, for environments that show raw ones.
type normalized struct {
	agents.Agent
	// spec is that of the raw environments.
	spec envs.Spec
	list []wrap.Normalizer
}

// NewActor implements agents.Agent.
func (a *normalized) NewActor(m agents.Mode, n int) (agents.Actor, error) {
	inner, err := a.Agent.NewActor(m, n)
	if err != nil {
		return nil, err
	}
	f, err := normalize.NewFrozen(a.spec, n, a.list)
	if err != nil {
		return nil, errors.Join(err, inner.Close())
	}
	return &normalizing{inner, f}, nil
}

// normalizing shows an actor what it was trained on.
type normalizing struct {
	agents.Actor
	frozen *normalize.Frozen
}

// Act implements agents.Actor.
func (a *normalizing) Act(ctx context.Context, key rng.Key, b *vector.Batch) (*agents.Decision, error) {
	return a.Actor.Act(ctx, key, a.frozen.Show(b))
}

// Close implements agents.Actor.
func (a *normalizing) Close() error { return errors.Join(a.Actor.Close(), a.frozen.Close()) }
