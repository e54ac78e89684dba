package onpolicy

import (
	"context"
	"errors"
	"fmt"

	"github.com/onnxrl/onnxrl/agents"
	"github.com/onnxrl/onnxrl/agents/network"
	"github.com/onnxrl/onnxrl/envs/vector"
	"github.com/onnxrl/onnxrl/runtime/rng"
)

// Actor draws actions, or takes the best ones, with the parameters where they are learnt.
type Actor struct {
	Forward  *Forward
	Decision vector.Decision
	// Recurrent says that the inputs of Forward depend on steps before. Acted, Synced and Closed,
	// unless nil, are called after a decision, by Sync and by Close.
	Recurrent     bool
	Acted, Synced func()
	Closed        func() error

	learner *Learner
	sampler *network.Sampler
	// drops says that there is dropout in what is decided, and version that of the parameters in
	// whose rollout Decision.Dropout was drawn.
	drops   bool
	version int64
}

// NewActor returns an actor for n environments.
func NewActor(l *Learner, e network.Exploration, m agents.Mode, n int) (*Actor, error) {
	f, err := l.NewForward(n)
	if err != nil {
		return nil, err
	}
	a := &Actor{Forward: f, learner: l, Decision: vector.Decision{Value: f.Value, CostValue: f.CostValue}, sampler: network.NewSampler(l.Networks.Frame, e, m, n, f.Program.Output, l.Params.View(LogStdParam))}
	if f.masks != nil {
		a.Decision.Dropout = make([]int64, n)
		a.drops, a.version = m == agents.Explore, unset
		a.drop()
	}
	return a, nil
}

// drop draws the dropout masks where a rollout begins. Actors whose decisions are not learnt from
// have none.
func (a *Actor) drop() {
	if a.Forward.masks == nil || a.drops && a.version == a.learner.Updates {
		return
	}
	a.version = a.learner.Updates
	for e := range a.Decision.Dropout {
		if a.drops {
			a.Decision.Dropout[e] = a.learner.dropSeed(a.version, e)
		}
		a.Forward.masks.Fill(e, e, a.Decision.Dropout[e])
	}
}

// Act implements agents.Actor.
func (a *Actor) Act(_ context.Context, key rng.Key, b *vector.Batch) (*vector.Decision, error) {
	l := a.learner
	a.drop()
	if err := a.Forward.Current(b); err != nil {
		return nil, fmt.Errorf("%s: act: %w", l.Name, err)
	}
	a.Decision.Version = l.Updates
	if err := a.sampler.Decide(&a.Decision, key, network.Moment{Key: l.sdeKey, Rollout: l.Updates, Replaced: l.Replaced, Round: l.Rollout.T}); err != nil {
		return nil, fmt.Errorf("%s: act: %w", l.Name, err)
	}
	if a.Acted != nil {
		a.Acted()
	}
	return &a.Decision, nil
}

// Remembers implements vector.Policy.
func (a *Actor) Remembers() bool { return a.Recurrent }

// Sync implements agents.Actor.
func (a *Actor) Sync(context.Context) error {
	if a.Synced != nil {
		a.Synced()
	}
	return nil
}

// Close implements vector.Policy.
func (a *Actor) Close() error {
	err := a.Forward.Program.Close()
	if a.Closed != nil {
		err = errors.Join(err, a.Closed())
	}
	return err
}
