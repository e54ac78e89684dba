package sac

import (
	"errors"
	"fmt"

	"github.com/onnxrl/onnxrl/agents"
	"github.com/onnxrl/onnxrl/agents/network"
	"github.com/onnxrl/onnxrl/agents/offpolicy"
	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/models/encoder"
	"github.com/onnxrl/onnxrl/models/head"
	"github.com/onnxrl/onnxrl/models/layer"
	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/rng"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// Inputs and outputs of the graphs that learn, beside package offpolicy's. Noise is standard
// normal: [batch, A], or gSDE's matrix [latent, A].
const (
	// alphaInput [1] is the temperature.
	alphaInput = "sac.alpha"
	// logProbOutput is the log-density of the drawn actions, [batch]; for Discrete actions
	// agents.LogProbsOutput in the targets, and the expectation Σ π·log π [batch] in the actor's
	// graph.
	logProbOutput = "log_prob"
	// behaviourOutput is log π(a_tm1|obs_tm1), [batch], with V-trace or sharing.
	behaviourOutput = "behaviour_log_prob"
	// lambdaInput [1], with bc, weighs the rest of the actor's loss.
	lambdaInput = "sac.lambda"
)

// design draws the networks of an agent.
type design struct {
	*offpolicy.Networks
	c Config
	// latent is the width of gSDE's features; 0 without it.
	latent int
}

// newDesign draws every network of an agent.
func newDesign(c Config, f *network.Frame, kinds []encoder.Kind, key rng.Key) (*design, error) {
	if err := fits(c, f); err != nil {
		return nil, err
	}
	n, err := offpolicy.NewNetworks(c.Config, f, kinds, key)
	if err != nil {
		return nil, err
	}
	n.Constraints = c.Constraints
	d := &design{Networks: n, c: c}
	if err := d.Declare("SAC", c.Options, func(name string) bool { return offpolicy.Below(name, offpolicy.CriticScope) }, func(l *layer.Graph) error {
		in := d.Torso.Inputs(l, "")
		if _, err := d.policy(l, in); err != nil {
			return err
		}
		_, _, err := d.critics(l, in, d.Action(l))
		return err
	}); err != nil {
		return nil, err
	}
	for _, add := range []func() error{d.addPolicy, d.addTargets, d.addCritic, d.addActor} {
		if err := add(); err != nil {
			return nil, err
		}
	}
	return d, nil
}

// corrects reports whether the densities of recorded actions are compared.
func (d *design) corrects() bool { return d.c.VTrace.Length > 0 || d.c.Sharing != nil }

// fits reports actions that the algorithm cannot choose, and options that do not suit them.
func fits(c Config, f *network.Frame) error {
	if c.UseSDE && c.Policy.Kind != "" {
		return errors.New("use_sde needs the features of a policy that is made here; with a user-supplied policy there are none")
	}
	switch a := f.Spec.Action.(type) {
	case envs.Discrete:
		if c.UseSDE {
			return fmt.Errorf("use_sde is for actions in a box; those of %s are %v", f.Spec.Name, a)
		}
		if c.noise().On() {
			return fmt.Errorf("action_noise is for actions in a box; those of %s are %v", f.Spec.Name, a)
		}
		return nil
	case envs.Box:
		if !a.Bounded() || a.Of != tensor.Float32 && a.Of != tensor.Float64 {
			return fmt.Errorf("the actions of %s are %v; SAC squashes actions into finite bounds, of float32 or float64", f.Spec.Name, a)
		}
		return nil
	}
	return fmt.Errorf("the actions of %s are %v; SAC chooses actions in a box, or Discrete ones", f.Spec.Name, f.Spec.Action)
}

// policy appends the actor's network and distribution.
func (d *design) policy(g *layer.Graph, in network.Inputs) (*policy, error) {
	a := g.In(offpolicy.ActorScope)
	if d.Acting.HasPolicy() {
		return d.given(g, in)
	}
	z, err := d.Acting.Build(a, in)
	if err != nil {
		return nil, err
	}
	h := d.Hidden(a, z, d.c.Hidden, d.c.Activation)
	if !d.Frame.Continuous() {
		p := &policy{g: g, c: head.NewCategorical(a, offpolicy.Linear(a, "logits", h.PerAsset, d.Frame.Heads[0]), in.Mask, d.Frame.Heads...)}
		return p, g.Err()
	}
	mean := d.Component(a, "mean", h)
	if d.c.UseSDE {
		if d.c.ClipMean > 0 {
			mean = a.Clip(mean, -d.c.ClipMean, d.c.ClipMean)
		}
		latent := h.PerAsset
		if d.Frame.Assets > 0 {
			latent = z.Pooled
		}
		s := head.NewGSDE(a, mean, latent, head.MatrixLogStd(a, d.c.LogStdInit, a.Extent(latent, 1), d.Frame.Dims))
		return &policy{g: g, s: head.Squash(s.DiagGaussian), sde: s}, g.Err()
	}
	return &policy{g: g, s: head.NewSquashed(a, mean, d.bounded(a, d.Component(a, network.LogStdParam, h)))}, g.Err()
}

// bounded keeps log standard deviations within their bounds.
func (d *design) bounded(g *layer.Graph, logStd onnx.Value) onnx.Value {
	b := d.c.LogStd
	if b.Bound == head.BoundTanh {
		return g.Shift(g.Scale(g.Activate("tanh", logStd), (b.High-b.Low)/2), (b.Low+b.High)/2)
	}
	return g.Clip(logStd, b.Low, b.High)
}

// given appends a user-supplied policy: logits, or means with log standard deviations beside them,
// or without, and then these are parameters.
func (d *design) given(g *layer.Graph, in network.Inputs) (*policy, error) {
	a, n := g.In(offpolicy.ActorScope), d.Frame.Parameters()
	if d.c.UseSDE {
		return nil, fmt.Errorf("use_sde needs the features of a policy that is made here; a user-supplied one gives none")
	}
	if !d.Frame.Continuous() {
		logits, err := d.Acting.Policy(a, in, n)
		return &policy{g: g, c: head.NewCategorical(a, logits, in.Mask, d.Frame.Heads...)}, err
	}
	mean, err := d.Acting.Policy(a, in, n, 2*n)
	if err != nil {
		return nil, err
	}
	if a.Extent(mean, 1) == n {
		zero := a.Scale(mean, 0)
		return &policy{g: g, s: head.NewSquashed(a, mean, d.bounded(a, a.Add(zero, head.SharedLogStd(a, 0, n))))}, g.Err()
	}
	return &policy{g: g, s: head.NewSquashed(a, a.Slice(mean, 1, 0, n), d.bounded(a, a.Slice(mean, 1, n, 2*n)))}, g.Err()
}

// policy is the distribution over actions: c for Discrete ones, else s, with sde where the noise is
// gSDE's.
type policy struct {
	g   *layer.Graph
	c   *head.Categorical
	s   *head.Squashed
	sde *head.GSDE
}

// sample appends actions in [−1, 1] drawn with the noise, and their log-densities.
func (p *policy) sample(noise onnx.Value) (actions, logProb onnx.Value) {
	if p.sde == nil {
		return p.s.Sample(noise)
	}
	u, _ := p.sde.Sample(noise)
	return p.g.Activate("tanh", u), p.s.LogProbOf(u)
}

// critics appends the values of actions, [batch] each, or of all Discrete actions, [batch, n], and
// what they cost, by each constraint.
func (d *design) critics(g *layer.Graph, in network.Inputs, actions onnx.Value) (values, costs []onnx.Value, _ error) {
	c := g.In(offpolicy.CriticScope)
	z, err := d.Torso.Build(c, in)
	if err != nil {
		return nil, nil, err
	}
	x, n := z.Pooled, 1
	if d.Frame.Continuous() {
		x = c.Concat(-1, x, actions)
	} else {
		n = d.Frame.Heads[0]
	}
	p := head.Perceptron{Hidden: d.c.Layers(d.c.Hidden), Activation: d.c.Activation, Default: true}
	for i := range d.c.Critics {
		q := p.Build(c.In(offpolicy.Numbered("q", i)), x, n)
		if d.Frame.Continuous() {
			q = c.Squeeze(q, 1)
		}
		values = append(values, q)
	}
	costs = d.CostCritics(c, func(g *layer.Graph, width int) onnx.Value { return p.Build(g, x, width) })
	return values, costs, g.Err()
}

// addPolicy adds the networks that are exported and that act. gSDE's noise comes from features.
func (d *design) addPolicy() error {
	var last *policy
	return d.AddPolicy(func(l *layer.Graph) (offpolicy.Distribution, error) {
		p, err := d.policy(l, d.Acting.Inputs(l, ""))
		if err != nil {
			return offpolicy.Distribution{}, err
		}
		if last = p; p.c != nil {
			return offpolicy.Distribution{Categorical: p.c}, nil
		}
		return offpolicy.Distribution{Best: p.s.Mode(), Mean: p.s.Gaussian.Mean, LogStd: p.s.Gaussian.LogStd, Squashed: true}, nil
	}, func(l *layer.Graph) {
		if last.sde != nil {
			d.latent = l.Extent(last.sde.Latent, 1)
			l.Output(network.LatentOutput, last.sde.Latent)
		}
	})
}

// noise declares what sampled actions are made of.
func (d *design) noise(l *layer.Graph) onnx.Value {
	if d.latent > 0 {
		return l.Input(offpolicy.NoiseInput, tensor.Float32, onnx.Known(d.latent), onnx.Known(d.Frame.Dims))
	}
	return l.Observation(offpolicy.NoiseInput, d.Frame.Dims)
}

// addTargets adds the network that evaluates obs_t: an action of the present policy, or the
// probabilities of all, and the least value by the target critics. With a correction it also gives
// the recorded actions' log-probabilities by the present policy.
func (d *design) addTargets() error {
	l := d.Graph("targets")
	in := d.Torso.Inputs(l, offpolicy.NextPrefix)
	p, err := d.policy(l, in)
	if err != nil {
		return err
	}
	var actions onnx.Value
	if p.c != nil {
		l.Output(agents.LogProbsOutput, p.c.LogProbs)
	} else if d.hard() {
		actions = p.s.Mode()
		l.Output(logProbOutput, l.Scale(l.Sum(actions, 1), 0))
	} else {
		var logProb onnx.Value
		actions, logProb = p.sample(d.noise(l))
		l.Output(logProbOutput, logProb)
	}
	q, costs, err := d.critics(l.In(offpolicy.TargetScope), in, actions)
	if err != nil {
		return err
	}
	l.Output(offpolicy.QOutput, offpolicy.Least(l, q))
	d.OutputCosts(l, costs)
	if d.corrects() {
		before, err := d.policy(l.Again(), d.Acting.Inputs(l, ""))
		if err != nil {
			return err
		}
		taken := d.Action(l)
		if before.c != nil {
			l.Output(behaviourOutput, before.c.LogProb(taken))
		} else {
			l.Output(behaviourOutput, before.s.LogProb(taken))
		}
	}
	d.Targets, err = d.Over(l)
	return err
}

// hard reports whether targets leave out the entropy.
func (d *design) hard() bool { return d.c.Conservative != nil && !d.c.Conservative.SoftQBackup }

// addCritic adds the critics' loss ½·Σₖ mean (qₖ(obs_tm1, a_tm1) − y)², those of costs
// (Networks.CostLoss) included, and with the regulariser ½·weight·Σₖ mean (log Σ exp qₖ − qₖ(obs_tm1, a_tm1)).
func (d *design) addCritic() error {
	l := d.Graph("critic")
	in, actions := d.Torso.Inputs(l, ""), d.Action(l)
	q, costs, err := d.critics(l, in, actions)
	if err != nil {
		return err
	}
	y := l.Observation(offpolicy.TargetInput)
	var sum onnx.Value
	for _, x := range q {
		if !d.Frame.Continuous() {
			x = head.Pick(l, x, actions)
		}
		if square := l.Square(l.Sub(x, y)); sum == "" {
			sum = square
		} else {
			sum = l.Add(sum, square)
		}
	}
	for i, x := range costs {
		sum = l.Add(sum, d.CostLoss(l, i, x, actions))
	}
	weights := l.Observation(offpolicy.WeightInput)
	if d.c.Conservative != nil {
		gap, err := d.gap(l, in, q, actions)
		if err != nil {
			return err
		}
		l.Output(gapOutput, l.Dot(weights, gap))
		sum = l.Add(sum, l.Mul(l.Input(scaleOfGap, tensor.Float32, onnx.Known(1)), gap))
	}
	l.Output(offpolicy.LossOutput, l.Scale(l.Dot(weights, sum), 0.5))
	d.Critic, err = d.Over(l)
	return err
}

// addActor adds the actor's loss, mean (α·log π(a|obs_tm1) − min q(obs_tm1, a)) for a drawn action
// a, or its expectation over all Discrete ones. With constraints it is
// penalised (Networks.Penalise), and with bc that is weighed against mean (μ(obs_tm1) − a_tm1)², μ the best action and the mean
// over components too, or against −log π(a_tm1|obs_tm1) of Discrete actions.
func (d *design) addActor() error {
	l := d.Graph("actor")
	in := d.Torso.Inputs(l, "")
	alpha := l.Input(alphaInput, tensor.Float32, onnx.Known(1))
	p, err := d.policy(l, in)
	if err != nil {
		return err
	}
	var actions, logProb onnx.Value
	if p.c == nil {
		actions, logProb = p.sample(d.noise(l))
	}
	q, costs, err := d.critics(l, in, actions)
	if err != nil {
		return err
	}
	var cost, probs onnx.Value
	if p.c == nil {
		cost = l.Sub(l.Mul(alpha, logProb), offpolicy.Least(l, q))
	} else {
		probs = l.Exp(p.c.LogProbs)
		logProb = l.Sum(l.Mul(probs, p.c.LogProbs), 1)
		cost = l.Sub(l.Mul(alpha, logProb), l.Sum(l.Mul(probs, offpolicy.Least(l, q)), 1))
	}
	cost = d.Penalise(l, cost, costs, probs)
	if d.c.BC != nil {
		away := onnx.Value("")
		if taken := d.Action(l); p.c != nil {
			away = l.Neg(p.c.LogProb(taken))
		} else {
			away = l.Scale(l.Sum(l.Square(l.Sub(p.s.Mode(), taken)), 1), 1/float64(d.Frame.Dims))
		}
		cost = l.Add(l.Mul(l.Input(lambdaInput, tensor.Float32, onnx.Known(1)), cost), away)
	}
	l.Output(offpolicy.LossOutput, l.Dot(l.Observation(offpolicy.WeightInput), cost))
	l.Output(logProbOutput, logProb)
	d.Actor, err = d.Over(l)
	return err
}
