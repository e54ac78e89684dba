package bc

import (
	"context"
	"fmt"

	"github.com/onnxrl/onnxrl/agents"
	"github.com/onnxrl/onnxrl/agents/network"
	"github.com/onnxrl/onnxrl/envs/vector"
	"github.com/onnxrl/onnxrl/models/layer"
	"github.com/onnxrl/onnxrl/models/program"
	"github.com/onnxrl/onnxrl/runtime/rng"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// actor takes the policy's actions, and where these are not in a box draws them when it explores.
type actor struct {
	learner *learner
	prog    *program.Program
	feed    *network.Feed
	// sampler is nil for actions in a box, which the program gives.
	sampler *network.Sampler
	// scored says that the sampler reads no probabilities.
	scored bool
	d      vector.Decision
}

func (l *learner) newActor(m agents.Mode, n int) (agents.Actor, error) {
	f := l.design.Frame
	p, err := program.New(l.design.Act, l.params, program.Config{Engine: l.setup.Engine, Batch: n, BatchSymbol: layer.Batch})
	if err != nil {
		return nil, err
	}
	x := &actor{learner: l, prog: p, feed: network.NewFeed(f, n, "", p.Input)}
	if f.Continuous() {
		x.d.Actions = p.Output(agents.ActionOutput)
		return x, nil
	}
	x.scored = m == agents.Greedy && l.c.Ensemble > 1
	x.sampler = network.NewSampler(f, network.Exploration{}, m, n, func(name string) *tensor.Tensor {
		if x.scored && name == agents.LogProbsOutput {
			name = scoreOutput
		}
		return p.Output(name)
	}, nil)
	return x, nil
}

// Act implements agents.Actor.
func (a *actor) Act(_ context.Context, key rng.Key, b *vector.Batch) (*vector.Decision, error) {
	if err := a.act(key, b); err != nil {
		return nil, fmt.Errorf("bc: act: %w", err)
	}
	return &a.d, nil
}

func (a *actor) act(key rng.Key, b *vector.Batch) error {
	a.d.Version = a.learner.Updates
	if err := a.feed.Current(b); err != nil {
		return err
	}
	if err := a.prog.Run(); err != nil || a.sampler == nil {
		return err
	}
	if err := a.sampler.Decide(&a.d, key, network.Moment{}); err != nil {
		return err
	}
	if a.scored {
		a.d.LogProb, a.d.Logits = nil, nil
	}
	return nil
}

// Remembers implements vector.Policy.
func (a *actor) Remembers() bool { return false }

// Sync implements agents.Actor. The actor reads parameters where they are learnt.
func (a *actor) Sync(context.Context) error { return nil }

// Close implements agents.Actor.
func (a *actor) Close() error { return a.prog.Close() }
