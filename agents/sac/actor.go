package sac

import (
	"context"
	"fmt"
	"math"

	"github.com/onnxrl/onnxrl/agents"
	"github.com/onnxrl/onnxrl/agents/network"
	"github.com/onnxrl/onnxrl/agents/offpolicy"
	"github.com/onnxrl/onnxrl/agents/rlmath"
	"github.com/onnxrl/onnxrl/envs/vector"
	"github.com/onnxrl/onnxrl/runtime/rng"
)

// actor draws actions, or takes the best ones.
type actor struct {
	*offpolicy.Actor
	f       *network.Frame
	learner *learner

	// mean and logStd are the outputs for a Box, [n, A], before squashing.
	mean, logStd []float32
	sde          *matrices
	// logProb are the Decision's, which has none where noise is added to squashed actions: their
	// densities are others.
	logProb []float32
	// sigma, unless 0, is the deviation of noise that is added before squashing, and wide, [n, A],
	// are the logarithms of the deviations of what is drawn then, √(σ² + sigma²).
	sigma float64
	wide  []float32
}

func (l *learner) newActor(m agents.Mode, n int) (agents.Actor, error) {
	base, err := offpolicy.NewActor(&l.Learner, m, n)
	if err != nil {
		return nil, err
	}
	f, p := l.Networks.Frame, base.Program
	x := &actor{Actor: base, f: f, learner: l}
	x.logProb = make([]float32, n)
	switch sigma := base.Noisy(); {
	case sigma == 0:
		x.Decision.LogProb = x.logProb
	case l.corrects:
		x.Decision.LogProb, x.sigma, x.wide = x.logProb, sigma, make([]float32, n*f.Dims)
	}
	if !f.Continuous() {
		x.Decision.Logits = p.Output(agents.LogProbsOutput)
		return x, nil
	}
	x.mean, x.logStd = p.Output(agents.MeanOutput).Float32s(), p.Output(agents.LogStdOutput).Float32s()
	if l.c.UseSDE && m.Draws() {
		logStd := l.Params.View(offpolicy.ActorScope + "." + network.LogStdParam)
		x.sde = newMatrices(n, l.latent, f.Dims, p.Output(network.LatentOutput).Float32s(), logStd.Float32s())
	}
	return x, nil
}

// Act implements agents.Actor. While the learner waits for its first transitions, an exploring
// actor draws uniformly from all valid actions.
func (a *actor) Act(_ context.Context, key rng.Key, b *vector.Batch) (*vector.Decision, error) {
	if err := a.act(key, b); err != nil {
		return nil, fmt.Errorf("sac: act: %w", err)
	}
	return &a.Decision, nil
}

func (a *actor) act(key rng.Key, b *vector.Batch) error {
	if a.Begin(key) && !a.learner.c.UseSDEAtWarmup {
		return a.uniform(b)
	}
	if err := a.Run(b); err != nil {
		return err
	}
	if a.Decision.Logits != nil {
		return a.Choose(a.logProb)
	}
	return a.squash()
}

// uniform draws from all valid actions.
func (a *actor) uniform(b *vector.Batch) error {
	if err := a.Fits(b); err != nil {
		return err
	}
	if x := a.Decision.Drawn; x != nil {
		a.Stream.FillUniform32(x.Float32s(), -1, 1)
		for i := range a.logProb {
			a.logProb[i] = float32(-float64(a.f.Dims) * math.Ln2)
		}
		a.noise()
		return a.Rescale()
	}
	a.Uniform(b)
	return a.Choose(a.logProb)
}

// noise adds noise to actions, unless it is added before squashing.
func (a *actor) noise() {
	if a.sigma == 0 {
		a.AddNoise()
	}
}

// squash draws from the Gaussian and squashes what it has drawn.
func (a *actor) squash() error {
	u, dims, logStd := a.Decision.Drawn.Float32s(), a.f.Dims, a.logStd
	if a.sigma > 0 {
		for i, x := range logStd {
			a.wide[i] = float32(math.Log(math.Exp(2*float64(x))+a.sigma*a.sigma) / 2)
		}
		logStd = a.wide
	}
	copy(u, a.mean)
	switch {
	case a.Mode == agents.Greedy:
	case a.sde != nil:
		a.sde.refresh(a.learner)
		a.sde.add(u, a.N, dims)
		if a.sigma > 0 {
			for i := range u {
				u[i] += float32(a.sigma * a.Stream.Normal())
			}
		}
	default:
		for i := range u {
			u[i] += float32(a.Stream.Normal() * math.Exp(float64(logStd[i])))
		}
	}
	for i := range a.logProb {
		row := u[i*dims:][:dims]
		a.logProb[i] = float32(rlmath.GaussianLogProb(row, a.mean[i*dims:][:dims], logStd[i*dims:][:dims]) - rlmath.TanhLogDet(row))
		for k, x := range row {
			row[k] = float32(math.Tanh(float64(x)))
		}
	}
	a.noise()
	return a.Rescale()
}
