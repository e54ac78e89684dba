package sac

import (
	"context"
	"fmt"
	"math"

	"onnxrl/agents"
	"onnxrl/agents/network"
	"onnxrl/agents/rlmath"
	"onnxrl/envs"
	"onnxrl/envs/vector"
	"onnxrl/models/layer"
	"onnxrl/models/program"
	"onnxrl/runtime/rng"
	"onnxrl/runtime/tensor"
)

// actor draws actions, or takes the best ones, with the parameters where they are learnt.
type actor struct {
	mode    agents.Mode
	n       int
	f       *network.Frame
	learner *learner
	prog    *program.Program
	feed    *network.Feed
	stream  rng.Stream
	d       agents.Decision

	// logProbs are the outputs for Discrete actions, [n, actions]; mean and logStd those for a Box, [n, A], before squashing.
	logProbs, mean, logStd []float32
	// bounds are those of each component.
	bounds []envs.Range
	sde    *matrices
}

func newActor(a *Agent, m agents.Mode, n int) (*actor, error) {
	f := a.graphs.frame
	shards := split(a.graphs.act, n, a.setup.Threads, 1)
	p, err := program.New(a.graphs.act, a.params, program.Config{Engine: a.setup.Engine, Batch: n, BatchSymbol: layer.Batch, Shards: shards})
	if err != nil {
		return nil, err
	}
	x := &actor{mode: m, n: n, f: f, learner: &a.learner, prog: p, feed: network.NewFeed(f, n, "", p.Input)}
	space := f.Spec.Action
	x.d = agents.Decision{Actions: tensor.New(space.DType(), append([]int{n}, space.Shape()...)...), LogProb: make([]float32, n)}
	if !f.Continuous() {
		x.logProbs = p.Output(agents.LogProbsOutput).Float32s()
		return x, nil
	}
	x.d.Drawn = tensor.New(tensor.Float32, n, f.Dims)
	x.mean, x.logStd = p.Output(agents.MeanOutput).Float32s(), p.Output(agents.LogStdOutput).Float32s()
	for i := range f.Dims {
		x.bounds = append(x.bounds, space.(envs.Box).Bounds(i))
	}
	if a.c.UseSDE && m == agents.Explore {
		logStd := a.params.View(actorScope + "." + network.LogStdParam)
		x.sde = newMatrices(n, a.graphs.latent, f.Dims, p.Output(network.LatentOutput).Float32s(), logStd.Float32s())
	}
	return x, nil
}

// Act implements agents.Actor. While the learner waits for its first transitions, an exploring actor draws uniformly from all valid actions.
func (a *actor) Act(_ context.Context, key rng.Key, b *vector.Batch) (*agents.Decision, error) {
	a.d.Version = a.learner.updates
	a.stream.Seed(key)
	l := a.learner
	if a.mode == agents.Explore && l.envSteps() < int64(l.c.LearningStarts) && !l.c.UseSDEAtWarmup {
		return &a.d, a.uniform(b)
	}
	if err := a.feed.Current(b); err != nil {
		return nil, fmt.Errorf("sac: act: %w", err)
	}
	if err := a.prog.Run(); err != nil {
		return nil, fmt.Errorf("sac: act: %w", err)
	}
	if a.logProbs != nil {
		return &a.d, a.choose()
	}
	return &a.d, a.squash()
}

// uniform draws from all valid actions.
func (a *actor) uniform(b *vector.Batch) error {
	if len(b.Type) != a.n {
		return fmt.Errorf("sac: act: a batch of %d environments, expected %d", len(b.Type), a.n)
	}
	if x := a.d.Drawn; x != nil {
		a.stream.FillUniform32(x.Float32s(), -1, 1)
		for i := range a.d.LogProb {
			a.d.LogProb[i] = float32(-float64(a.f.Dims) * math.Ln2)
		}
		a.rescale()
		return nil
	}
	n := a.f.Heads[0]
	for i := range a.d.LogProb {
		for k := range n {
			a.logProbs[i*n+k] = 0
			if b.Mask != nil && !b.Mask.Bools()[i*n+k] {
				a.logProbs[i*n+k] = rlmath.Excluded
			}
		}
		rlmath.LogSoftmax(a.logProbs[i*n:][:n], a.logProbs[i*n:][:n], nil)
	}
	return a.choose()
}

// choose takes a Discrete action for each row.
func (a *actor) choose() error {
	n, logProbs := a.f.Heads[0], a.logProbs
	for i := range a.d.LogProb {
		row, choice := logProbs[i*n:][:n], 0
		if a.mode == agents.Explore {
			choice = a.stream.Categorical(row)
		} else {
			choice = rlmath.Argmax(row)
		}
		if choice < 0 {
			return fmt.Errorf("sac: act: the log-probabilities of environment %d are %v", i, row)
		}
		a.d.Actions.Int64s()[i], a.d.LogProb[i] = int64(choice), row[choice]
	}
	return nil
}

// squash draws from the Gaussian and squashes what it has drawn.
func (a *actor) squash() error {
	u, dims := a.d.Drawn.Float32s(), a.f.Dims
	copy(u, a.mean)
	switch {
	case a.mode == agents.Greedy:
	case a.sde != nil:
		a.sde.refresh(a.learner)
		a.sde.add(u, a.n, dims)
	default:
		for i := range u {
			u[i] += float32(a.stream.Normal() * math.Exp(float64(a.logStd[i])))
		}
	}
	for i := range a.d.LogProb {
		row := u[i*dims:][:dims]
		a.d.LogProb[i] = float32(rlmath.GaussianLogProb(row, a.mean[i*dims:][:dims], a.logStd[i*dims:][:dims]) - rlmath.TanhLogDet(row))
		for k, x := range row {
			if x != x {
				return fmt.Errorf("sac: act: component %d of the action of environment %d is %v", k, i, x)
			}
			row[k] = float32(math.Tanh(float64(x)))
		}
	}
	a.rescale()
	return nil
}

// rescale maps what was drawn to the bounds of the environment.
func (a *actor) rescale() {
	wide, narrow := []float64(nil), []float32(nil)
	if a.d.Actions.DType() == tensor.Float64 {
		wide = a.d.Actions.Float64s()
	} else {
		narrow = a.d.Actions.Float32s()
	}
	for i, x := range a.d.Drawn.Float32s() {
		r := a.bounds[i%a.f.Dims]
		y := min(max((r.High+r.Low)/2+(r.High-r.Low)/2*float64(x), r.Low), r.High)
		if wide != nil {
			wide[i] = y
		} else {
			narrow[i] = float32(y)
		}
	}
}

// Sync implements agents.Actor. The actor reads parameters where they are learnt.
func (a *actor) Sync(context.Context) error { return nil }

// Close implements agents.Actor.
func (a *actor) Close() error { return a.prog.Close() }
