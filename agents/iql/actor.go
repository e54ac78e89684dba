package iql

import (
	"context"
	"fmt"
	"math"

	"github.com/onnxrl/onnxrl/agents"
	"github.com/onnxrl/onnxrl/agents/offpolicy"
	"github.com/onnxrl/onnxrl/envs/vector"
	"github.com/onnxrl/onnxrl/runtime/rng"
)

// actor draws actions, or takes the best ones.
type actor struct {
	*offpolicy.Actor
	// mean and logStd are the outputs for a Box, [n, A], in [−1, 1].
	mean, logStd []float32
	// random says that the actions of the present round are.
	random bool
}

func (l *learner) newActor(m agents.Mode, n int) (agents.Actor, error) {
	base, err := offpolicy.NewActor(&l.Learner, m, n)
	if err != nil {
		return nil, err
	}
	x, p := &actor{Actor: base}, base.Program
	if l.Networks.Frame.Continuous() {
		x.mean, x.logStd = p.Output(agents.MeanOutput).Float32s(), p.Output(agents.LogStdOutput).Float32s()
		return x, nil
	}
	x.Decision.Logits, x.Decision.LogProb = p.Output(agents.LogProbsOutput), make([]float32, n)
	return x, nil
}

// Act implements agents.Actor. While the learner waits for its first transitions, an exploring
// actor draws uniformly from all valid actions.
func (a *actor) Act(_ context.Context, key rng.Key, b *vector.Batch) (*vector.Decision, error) {
	if err := a.act(key, b); err != nil {
		return nil, fmt.Errorf("iql: act: %w", err)
	}
	return &a.Decision, nil
}

func (a *actor) act(key rng.Key, b *vector.Batch) error {
	a.random = a.Begin(key)
	if a.random {
		if err := a.Fits(b); err != nil {
			return err
		}
	} else if err := a.Run(b); err != nil {
		return err
	}
	if a.Decision.Logits != nil {
		if a.random {
			a.Uniform(b)
		}
		return a.Choose(a.Decision.LogProb)
	}
	x := a.Decision.Drawn.Float32s()
	switch {
	case a.random:
		a.Stream.FillUniform32(x, -1, 1)
	case a.Mode == agents.Greedy:
		for i, v := range a.mean {
			// An engine's tanh may exceed 1 by a rounding.
			x[i] = min(max(v, -1), 1)
		}
	default:
		for i, v := range a.mean {
			x[i] = min(max(v+float32(a.Stream.Normal()*math.Exp(float64(a.logStd[i]))), -1), 1)
		}
	}
	return a.Rescale()
}
