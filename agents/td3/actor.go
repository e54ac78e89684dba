package td3

import (
	"context"
	"fmt"

	"github.com/onnxrl/onnxrl/agents"
	"github.com/onnxrl/onnxrl/agents/offpolicy"
	"github.com/onnxrl/onnxrl/envs/vector"
	"github.com/onnxrl/onnxrl/runtime/rng"
)

// actor takes the policy's actions, with noise when it explores.
type actor struct {
	*offpolicy.Actor
	// squashed are the policy's actions, [n, A] in [−1, 1].
	squashed []float32
	noise    *noise
	// release gives the learner's noise back; nil where the actor has its own.
	release func()
}

func newActor(l *learner, m agents.Mode, n int) (*actor, error) {
	base, err := offpolicy.NewActor(&l.Learner, m, n)
	if err != nil {
		return nil, err
	}
	x := &actor{Actor: base, squashed: base.Program.Output(squashedOutput).Float32s()}
	switch {
	case m == agents.Greedy:
	case n == l.Setup.Envs && !l.inUse:
		l.inUse = true
		x.noise, x.release = l.rec.noise, func() { l.inUse = false }
	default:
		x.noise = newNoise(l.c.ActionNoise, n, l.Networks.Frame.Dims)
	}
	return x, nil
}

// Act implements agents.Actor. While the learner waits for its first transitions, an exploring
// actor draws uniformly from all actions; noise is added to those too, as in Stable-Baselines3.
// Noise of the kind ou depends on the noise before: the first exploring actor for as many
// environments as the agent learns from uses the one that is saved with the learner and that
// restarts with each episode; others have their own.
func (a *actor) Act(_ context.Context, key rng.Key, b *vector.Batch) (*agents.Decision, error) {
	if err := a.act(key, b); err != nil {
		return nil, fmt.Errorf("td3: act: %w", err)
	}
	return &a.Decision, nil
}

func (a *actor) act(key rng.Key, b *vector.Batch) error {
	x := a.Decision.Drawn.Float32s()
	if a.Begin(key) {
		if err := a.Fits(b); err != nil {
			return err
		}
		a.Stream.FillUniform32(x, -1, 1)
	} else {
		if err := a.Run(b); err != nil {
			return err
		}
		for i, v := range a.squashed {
			// An engine's tanh may exceed 1 by a rounding.
			x[i] = min(max(v, -1), 1)
		}
	}
	if a.noise != nil {
		a.noise.add(x, &a.Stream)
	}
	return a.Rescale()
}

// Close implements agents.Actor.
func (a *actor) Close() error {
	if a.release != nil {
		a.release()
		a.release = nil
	}
	return a.Actor.Close()
}
