package a2c

import (
	"context"
	"errors"
	"fmt"

	"onnxrl/agents"
	"onnxrl/agents/rlmath"
	"onnxrl/envs/vector"
	"onnxrl/runtime/rng"
	"onnxrl/runtime/tensor"
)

// actor draws actions, or takes the best ones, with the parameters where they are learnt.
type actor struct {
	mode    agents.Mode
	heads   []int
	f       *forward
	bank    *bank // closed with the actor; nil when it is the agent's, which release then gives back
	release func()
	learner *learner
	stream  rng.Stream
	d       agents.Decision
}

func newActor(m agents.Mode, f *forward, own *bank, fr *frame, l *learner) *actor {
	shape := []int{f.n, len(fr.heads)}
	if fr.discrete {
		shape = shape[:1]
	}
	return &actor{mode: m, heads: fr.heads, f: f, bank: own, learner: l, d: agents.Decision{
		Actions: tensor.New(tensor.Int64, shape...), LogProb: make([]float32, f.n), Value: f.value,
	}}
}

// Act implements agents.Actor. A head takes one draw, whatever the mask.
func (a *actor) Act(_ context.Context, key rng.Key, b *vector.Batch) (*agents.Decision, error) {
	a.d.Version = a.learner.updates
	if err := a.f.current(b, a.learner.stamp()); err != nil {
		return nil, fmt.Errorf("a2c: act: %w", err)
	}
	a.stream.Seed(key)
	actions, logProbs := a.d.Actions.Int64s(), a.f.logProbs
	for i := range a.d.LogProb {
		sum := 0.0
		for h, k := range a.heads {
			choice := rlmath.Argmax(logProbs[:k])
			if a.mode == agents.Explore {
				choice = a.stream.Categorical(logProbs[:k])
			}
			if choice < 0 {
				return nil, fmt.Errorf("a2c: act: the log-probabilities of environment %d, head %d are %v", i, h, logProbs[:k])
			}
			actions[i*len(a.heads)+h] = int64(choice)
			sum += float64(logProbs[choice])
			logProbs = logProbs[k:]
		}
		a.d.LogProb[i] = float32(sum)
	}
	return &a.d, nil
}

// Sync implements agents.Actor. The actor reads parameters where they are learnt; what it has computed from them is dropped, in case that something else than the learner has changed them.
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
