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
}

func (l *learner) newActor(m agents.Mode, n int) (agents.Actor, error) {
	base, err := offpolicy.NewActor(&l.Learner, m, n)
	if err != nil {
		return nil, err
	}
	return &actor{base, base.Program.Output(squashedOutput).Float32s()}, nil
}

// Act implements agents.Actor. While the learner waits for its first transitions, an exploring
// actor draws uniformly from all actions; noise is added to those too, as in Stable-Baselines3.
func (a *actor) Act(_ context.Context, key rng.Key, b *vector.Batch) (*vector.Decision, error) {
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
	a.AddNoise()
	return a.Rescale()
}
