package offpolicy

import (
	"context"
	"fmt"
	"math"

	"github.com/onnxrl/onnxrl/agents"
	"github.com/onnxrl/onnxrl/agents/network"
	"github.com/onnxrl/onnxrl/agents/rlmath"
	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/envs/vector"
	"github.com/onnxrl/onnxrl/models/layer"
	"github.com/onnxrl/onnxrl/models/program"
	"github.com/onnxrl/onnxrl/runtime/rng"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// actor acts with the parameters where they are learnt. What its network gives says how: an element
// of the action space, log-probabilities, or numbers in [−1, 1] or to be squashed to them, which
// are drawn where there are standard deviations of them.
type actor struct {
	learner *Learner
	mode    agents.Mode
	// n is the number of environments.
	n       int
	program *program.Program
	feed    *network.Feed
	frozen  *network.FrozenFeed
	stream  rng.Stream
	d       vector.Decision

	// sampler chooses by log-probabilities; nil for actions in a Box. scored says that it reads
	// something else in their place.
	sampler *network.Sampler
	scored  bool

	// mean and logStd are the outputs for a Box, [n, A]; logStd is nil where nothing is drawn.
	mean, logStd []float32
	sde          *matrices
	// logProb [n] are those of what is squashed, which are the Decision's unless noise is added
	// afterwards: the densities are others then.
	logProb []float32
	// sigma, unless 0, is the deviation of noise that is added before squashing, and wide, [n, A],
	// are the logarithms of the deviations of what is drawn then, √(σ² + sigma²).
	sigma float64
	wide  []float32
	noise *noise
	// release gives the learner's noise back; nil where the actor has its own.
	release func()
	// bounds are those of each component of actions in a Box.
	bounds []envs.Range
}

// NewActor returns an actor for n environments.
func (l *Learner) NewActor(m agents.Mode, n int) (agents.Actor, error) {
	act, f := l.Networks.Act, l.Networks.Frame
	p, err := program.New(act, l.Params, program.Config{Engine: l.Setup.Engine, Batch: n, BatchSymbol: layer.Batch, Shards: shards(&l.Setup, act, n, 1)})
	if err != nil {
		return nil, err
	}
	a := &actor{learner: l, mode: m, n: n, program: p, feed: network.NewFeed(f, n, "", p.Input), frozen: l.frozen.Feed("", p.Input)}
	if a.d.Actions = p.Output(agents.ActionOutput); a.d.Actions != nil {
		return a, nil
	}
	if !f.Continuous() {
		a.scored = m == agents.Greedy && p.Output(ScoreOutput) != nil
		a.sampler = network.NewSampler(f, network.Exploration{}, m, n, func(name string) *tensor.Tensor {
			if a.scored && name == agents.LogProbsOutput {
				name = ScoreOutput
			}
			return p.Output(name)
		}, nil)
		return a, nil
	}
	space := f.Spec.Action
	a.d.Actions = tensor.New(space.DType(), append([]int{n}, space.Shape()...)...)
	a.d.Drawn = tensor.New(tensor.Float32, n, f.Dims)
	for i := range f.Dims {
		a.bounds = append(a.bounds, space.(envs.Box).Bounds(i))
	}
	a.explore()
	a.mean = p.Output(agents.MeanOutput).Float32s()
	if t := p.Output(agents.LogStdOutput); t != nil {
		a.logStd = t.Float32s()
	}
	if l.Networks.Squashed {
		a.densities()
		a.d.Mean, a.d.LogStd = a.mean, a.logStd
	}
	if l.exploration.UseSDE && m.Draws() {
		logStd := l.Params.View(ActorScope + "." + network.LogStdParam)
		a.sde = newMatrices(n, logStd.Shape()[0], f.Dims, p.Output(network.LatentOutput).Float32s(), logStd.Float32s())
	}
	return a, nil
}

// explore finds the noise that is added. That of the kind ou depends on the noise before: the first
// exploring actor for as many environments as the agent learns from uses the one that is saved with
// the learner and that restarts with each episode. Others have their own.
func (a *actor) explore() {
	l := a.learner
	switch {
	case a.mode == agents.Greedy || l.noise == nil:
	case a.n == l.Setup.Envs && !l.noiseInUse:
		l.noiseInUse = true
		a.noise, a.release = l.noise, func() { l.noiseInUse = false }
	default:
		a.noise = newNoise(l.noise.c, a.n, l.Networks.Frame.Dims)
	}
}

// densities says which densities the decisions have.
func (a *actor) densities() {
	a.logProb = make([]float32, a.n)
	switch {
	case a.noise == nil || !a.noise.c.On():
		a.d.LogProb = a.logProb
	case a.learner.exploration.BeforeSquashing:
		a.d.LogProb, a.sigma, a.wide = a.logProb, a.noise.c.Sigma, make([]float32, len(a.mean))
	}
}

// Act implements vector.Policy. While the learner waits for its first transitions, an exploring
// actor draws uniformly from all valid actions; noise is added to those too, as in
// Stable-Baselines3.
func (a *actor) Act(_ context.Context, key rng.Key, b *vector.Batch) (*vector.Decision, error) {
	if err := a.act(key, b); err != nil {
		return nil, fmt.Errorf("%s: act: %w", a.learner.Name, err)
	}
	return &a.d, nil
}

func (a *actor) act(key rng.Key, b *vector.Batch) error {
	l := a.learner
	a.d.Version = l.Updates
	random := a.mode.Draws() && l.Waiting() && !l.exploration.AtWarmup
	if !random {
		if err := a.run(b); err != nil {
			return err
		}
	} else if len(b.Type) != a.n {
		return fmt.Errorf("a batch of %d environments, expected %d", len(b.Type), a.n)
	}
	if a.sampler != nil {
		return a.choose(random, key, b)
	}
	if a.mean == nil {
		return nil
	}
	a.stream.Seed(key)
	switch x := a.d.Drawn.Float32s(); {
	case random:
		a.stream.FillUniform32(x, -1, 1)
		for i := range a.logProb {
			a.logProb[i] = float32(-float64(len(a.bounds)) * math.Ln2)
		}
	case a.logProb != nil:
		a.squash(x)
	default:
		a.within(x)
	}
	if a.noise != nil && a.sigma == 0 {
		a.noise.add(a.d.Drawn.Float32s(), &a.stream)
	}
	return a.rescale()
}

// run runs the network on what the environments show.
func (a *actor) run(b *vector.Batch) error {
	if err := a.feed.Current(b); err != nil {
		return err
	}
	if err := a.frozen.Current(b); err != nil {
		return err
	}
	return a.program.Run()
}

// choose takes actions by their log-probabilities, of which random makes those of all valid actions
// alike.
func (a *actor) choose(random bool, key rng.Key, b *vector.Batch) error {
	if random {
		all := a.program.Output(agents.LogProbsOutput).Float32s()
		n := len(all) / a.n
		for i := range a.n {
			row := all[i*n:][:n]
			for k := range row {
				if row[k] = 0; b.Mask != nil && !b.Mask.Bools()[i*n+k] {
					row[k] = rlmath.Excluded
				}
			}
			rlmath.LogSoftmax(row, row, nil)
		}
	}
	if err := a.sampler.Decide(&a.d, key, network.Moment{}); err != nil {
		return err
	}
	if a.scored {
		a.d.LogProb, a.d.Logits = nil, nil
	}
	return nil
}

// within writes actions of a policy in [−1, 1], which are clipped to that.
func (a *actor) within(x []float32) {
	draws := a.logStd != nil && a.mode.Draws()
	for i, v := range a.mean {
		if draws {
			v += float32(a.stream.Normal() * math.Exp(float64(a.logStd[i])))
		}
		// An engine's tanh may exceed 1 by a rounding, too.
		x[i] = min(max(v, -1), 1)
	}
}

// squash draws from the Gaussian, unless the best action is taken, and squashes what it has drawn.
func (a *actor) squash(u []float32) {
	dims, logStd := len(a.bounds), a.logStd
	if a.sigma > 0 {
		for i, x := range logStd {
			a.wide[i] = float32(math.Log(math.Exp(2*float64(x))+a.sigma*a.sigma) / 2)
		}
		logStd = a.wide
	}
	copy(u, a.mean)
	switch {
	case a.mode == agents.Greedy:
	case a.sde != nil:
		a.sde.refresh(a.learner)
		a.sde.add(u, a.n, dims)
		if a.sigma > 0 {
			for i := range u {
				u[i] += float32(a.sigma * a.stream.Normal())
			}
		}
	default:
		for i := range u {
			u[i] += float32(a.stream.Normal() * math.Exp(float64(logStd[i])))
		}
	}
	for i := range a.logProb {
		row := u[i*dims:][:dims]
		a.logProb[i] = float32(rlmath.GaussianLogProb(row, a.mean[i*dims:][:dims], logStd[i*dims:][:dims]) - rlmath.TanhLogDet(row))
		for k, x := range row {
			row[k] = float32(math.Tanh(float64(x)))
		}
	}
}

// rescale maps what was drawn, in [−1, 1], to the bounds of the environment.
func (a *actor) rescale() error {
	wide, narrow := []float64(nil), []float32(nil)
	if a.d.Actions.DType() == tensor.Float64 {
		wide = a.d.Actions.Float64s()
	} else {
		narrow = a.d.Actions.Float32s()
	}
	dims := len(a.bounds)
	for i, x := range a.d.Drawn.Float32s() {
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
func (a *actor) Remembers() bool { return false }

// Sync implements agents.Actor: there is nothing to do.
func (a *actor) Sync(context.Context) error { return nil }

// Close implements vector.Policy.
func (a *actor) Close() error {
	if a.release != nil {
		a.release()
		a.release = nil
	}
	return a.program.Close()
}
