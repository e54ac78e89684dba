package offpolicy

import (
	"context"
	"fmt"

	"github.com/onnxrl/onnxrl/agents"
	"github.com/onnxrl/onnxrl/agents/network"
	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/envs/vector"
	"github.com/onnxrl/onnxrl/models/layer"
	"github.com/onnxrl/onnxrl/models/program"
	"github.com/onnxrl/onnxrl/runtime/rng"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// Actor is what the actors of actor-critics have in common: all of an agents.Actor but Act. It
// reads parameters where they are learnt.
type Actor struct {
	Mode agents.Mode
	// N is the number of environments.
	N int
	// Program is the network of acting on N rows.
	Program  *program.Program
	Stream   rng.Stream
	Decision vector.Decision

	learner *Learner
	feed    *network.Feed
	frozen  *network.FrozenFeed
	noise   *noise
	// release gives the learner's noise back; nil where the actor has its own.
	release func()
	// bounds are those of each component of actions in a Box.
	bounds []envs.Range
}

// NewActor returns an actor for n environments. Its decision has room for actions and, for those in
// a Box, for what was drawn.
func NewActor(l *Learner, m agents.Mode, n int) (*Actor, error) {
	act, f := l.Networks.Act, l.Networks.Frame
	p, err := program.New(act, l.Params, program.Config{Engine: l.Setup.Engine, Batch: n, BatchSymbol: layer.Batch, Shards: shards(&l.Setup, act, n, 1)})
	if err != nil {
		return nil, err
	}
	x := &Actor{Mode: m, N: n, Program: p, learner: l, feed: network.NewFeed(f, n, "", p.Input), frozen: l.frozen.Feed("", p.Input)}
	space := f.Spec.Action
	x.Decision.Actions = tensor.New(space.DType(), append([]int{n}, space.Shape()...)...)
	if f.Continuous() {
		x.Decision.Drawn = tensor.New(tensor.Float32, n, f.Dims)
		for i := range f.Dims {
			x.bounds = append(x.bounds, space.(envs.Box).Bounds(i))
		}
	}
	switch {
	case m == agents.Greedy || l.noise == nil:
	case n == l.Setup.Envs && !l.noiseInUse:
		l.noiseInUse = true
		x.noise, x.release = l.noise, func() { l.noiseInUse = false }
	default:
		x.noise = newNoise(l.noise.c, n, f.Dims)
	}
	return x, nil
}

// Noisy is the standard deviation of what AddNoise adds, 0 where it adds nothing.
func (a *Actor) Noisy() float64 {
	if a.noise == nil || !a.noise.c.On() {
		return 0
	}
	return a.noise.c.Sigma
}

// AddNoise adds what the learner explores with ([Learner.Explore]) to what was drawn, in [−1, 1].
// Noise of the kind ou depends on the noise before: the first exploring actor for as many
// environments as the agent learns from uses the one that is saved with the learner and that
// restarts with each episode. Others have their own.
func (a *Actor) AddNoise() {
	if a.noise != nil {
		a.noise.add(a.Decision.Drawn.Float32s(), &a.Stream)
	}
}

// Begin begins a round with its key, and reports whether an exploring actor draws from all actions
// because the replay waits for its first transitions.
func (a *Actor) Begin(key rng.Key) (random bool) {
	a.Decision.Version = a.learner.Updates
	a.Stream.Seed(key)
	return a.Mode.Draws() && a.learner.Waiting()
}

// Run runs the network on what the environments show.
func (a *Actor) Run(b *vector.Batch) error {
	if err := a.feed.Current(b); err != nil {
		return err
	}
	if err := a.frozen.Current(b); err != nil {
		return err
	}
	return a.Program.Run()
}

// Fits checks the number of environments, as Run does.
func (a *Actor) Fits(b *vector.Batch) error {
	if len(b.Type) != a.N {
		return fmt.Errorf("a batch of %d environments, expected %d", len(b.Type), a.N)
	}
	return nil
}

// Rescale maps what was drawn, in [−1, 1], to the bounds of the environment.
func (a *Actor) Rescale() error {
	wide, narrow := []float64(nil), []float32(nil)
	if a.Decision.Actions.DType() == tensor.Float64 {
		wide = a.Decision.Actions.Float64s()
	} else {
		narrow = a.Decision.Actions.Float32s()
	}
	dims := len(a.bounds)
	for i, x := range a.Decision.Drawn.Float32s() {
		if x != x {
			return fmt.Errorf("component %d of the action of environment %d is %v", i%dims, i/dims, x)
		}
		y := a.bounds[i%dims].At(float64(x))
		if wide != nil {
			wide[i] = y
		} else {
			narrow[i] = float32(y)
		}
	}
	return nil
}

// Remembers implements vector.Policy.
func (a *Actor) Remembers() bool { return false }

// Sync implements agents.Actor: there is nothing to do.
func (a *Actor) Sync(context.Context) error { return nil }

// Close implements agents.Actor.
func (a *Actor) Close() error {
	if a.release != nil {
		a.release()
		a.release = nil
	}
	return a.Program.Close()
}
