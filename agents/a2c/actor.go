package a2c

import (
	"context"
	"errors"
	"fmt"

	"github.com/onnxrl/onnxrl/agents"
	"github.com/onnxrl/onnxrl/agents/network"
	"github.com/onnxrl/onnxrl/envs/vector"
	"github.com/onnxrl/onnxrl/runtime/rng"
)

// actor draws actions, or takes the best ones, with the parameters where they are learnt.
type actor struct {
	f       *forward
	sampler *network.Sampler
	bank    *bank // closed with the actor; nil when it is the agent's, which release then gives back
	release func()
	learner *learner
	d       agents.Decision
}

func newActor(m agents.Mode, f *forward, own *bank, a *Agent) *actor {
	return &actor{
		f: f, bank: own, learner: a.learner, d: agents.Decision{Value: f.value},
		sampler: network.NewSampler(a.graphs.frame, a.c.Exploration, m, f.n, f.prog.Output, a.params.View(logStdParam)),
	}
}

// Act implements agents.Actor.
func (a *actor) Act(_ context.Context, key rng.Key, b *vector.Batch) (*agents.Decision, error) {
	a.d.Version = a.learner.updates
	if err := a.f.current(b, a.learner.stamp()); err != nil {
		return nil, fmt.Errorf("a2c: act: %w", err)
	}
	l := a.learner
	if err := a.sampler.Decide(&a.d, key, network.Moment{Key: l.sdeKey, Rollout: l.updates, Replaced: l.replaced, Round: l.rec.t}); err != nil {
		return nil, fmt.Errorf("a2c: act: %w", err)
	}
	return &a.d, nil
}

// Sync implements agents.Actor. The actor reads parameters where they are learnt; what it has
// computed from them is dropped, in case that something else than the learner has changed them.
func (a *actor) Sync(context.Context) error {
	if k := a.f.bank; k != nil && !k.still {
		k.forget()
	}
	return nil
}

// Close implements agents.Actor.
func (a *actor) Close() error {
	err := a.f.close()
	if a.bank != nil {
		err = errors.Join(err, a.bank.close())
	}
	if a.release != nil {
		a.release()
	}
	return err
}
