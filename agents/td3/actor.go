package td3

import (
	"context"
	"fmt"

	"onnxrl/agents"
	"onnxrl/agents/network"
	"onnxrl/envs"
	"onnxrl/envs/vector"
	"onnxrl/models/layer"
	"onnxrl/models/program"
	"onnxrl/runtime/rng"
	"onnxrl/runtime/tensor"
)

// actor takes the policy's actions, with noise when it explores, by the parameters where they are learnt.
type actor struct {
	mode    agents.Mode
	n       int
	learner *learner
	prog    *program.Program
	feed    *network.Feed
	stream  rng.Stream
	d       agents.Decision
	// squashed are the policy's actions, [n, A] in [−1, 1]; bounds are those of each component.
	squashed []float32
	bounds   []envs.Range
	noise    *noise
	// release gives the agent's noise back; nil where the actor has its own.
	release func()
}

func newActor(a *Agent, m agents.Mode, n int) (*actor, error) {
	f := a.graphs.frame
	p, err := program.New(a.graphs.act, a.params, program.Config{Engine: a.setup.Engine, Batch: n, BatchSymbol: layer.Batch, Shards: split(a.graphs.act, n, a.setup.Threads, 1)})
	if err != nil {
		return nil, err
	}
	x := &actor{mode: m, n: n, learner: &a.learner, prog: p, feed: network.NewFeed(f, n, "", p.Input), squashed: p.Output(squashedOutput).Float32s()}
	box := f.Spec.Action.(envs.Box)
	x.d = agents.Decision{Actions: tensor.New(box.Of, append([]int{n}, box.Dims...)...), Drawn: tensor.New(tensor.Float32, n, f.Dims)}
	for i := range f.Dims {
		x.bounds = append(x.bounds, box.Bounds(i))
	}
	switch {
	case m == agents.Greedy:
	case n == a.setup.Envs && !a.lent:
		a.lent = true
		x.noise, x.release = a.rec.noise, func() { a.lent = false }
	default:
		x.noise = newNoise(a.c.ActionNoise, n, f.Dims)
	}
	return x, nil
}

// Act implements agents.Actor. While the learner waits for its first transitions, an exploring actor draws uniformly from all actions; noise is added to those too, as in Stable-Baselines3. Noise of the kind ou depends on the noise before: the first exploring actor for as many environments as the agent learns from uses the one that is
// saved with the learner and that restarts with each episode; others have their own.
func (a *actor) Act(_ context.Context, key rng.Key, b *vector.Batch) (*agents.Decision, error) {
	l := a.learner
	a.d.Version = l.updates
	a.stream.Seed(key)
	x := a.d.Drawn.Float32s()
	if a.mode == agents.Explore && l.envSteps() < int64(l.c.LearningStarts) {
		if len(b.Type) != a.n {
			return nil, fmt.Errorf("td3: act: a batch of %d environments, expected %d", len(b.Type), a.n)
		}
		a.stream.FillUniform32(x, -1, 1)
	} else {
		if err := a.feed.Current(b); err != nil {
			return nil, fmt.Errorf("td3: act: %w", err)
		}
		if err := a.prog.Run(); err != nil {
			return nil, fmt.Errorf("td3: act: %w", err)
		}
		for i, v := range a.squashed {
			// An engine's tanh may exceed 1 by a rounding.
			x[i] = min(max(v, -1), 1)
		}
	}
	if a.noise != nil {
		a.noise.add(x, &a.stream)
	}
	return &a.d, a.rescale(x)
}

// rescale maps actions in [−1, 1] to the bounds of the environment.
func (a *actor) rescale(x []float32) error {
	wide, narrow := []float64(nil), []float32(nil)
	if a.d.Actions.DType() == tensor.Float64 {
		wide = a.d.Actions.Float64s()
	} else {
		narrow = a.d.Actions.Float32s()
	}
	dims := len(a.bounds)
	for i, v := range x {
		if v != v {
			return fmt.Errorf("td3: act: component %d of the action of environment %d is %v", i%dims, i/dims, v)
		}
		r := a.bounds[i%dims]
		y := min(max((r.High+r.Low)/2+(r.High-r.Low)/2*float64(v), r.Low), r.High)
		if wide != nil {
			wide[i] = y
		} else {
			narrow[i] = float32(y)
		}
	}
	return nil
}

// Sync implements agents.Actor. The actor reads parameters where they are learnt.
func (a *actor) Sync(context.Context) error { return nil }

// Close implements agents.Actor.
func (a *actor) Close() error {
	if a.release != nil {
		a.release()
		a.release = nil
	}
	return a.prog.Close()
}
