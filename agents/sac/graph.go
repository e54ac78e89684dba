package sac

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"onnxrl/agents"
	"onnxrl/agents/network"
	"onnxrl/envs"
	"onnxrl/models"
	"onnxrl/models/encoder"
	"onnxrl/models/head"
	"onnxrl/models/layer"
	"onnxrl/runtime/onnx"
	"onnxrl/runtime/rng"
	"onnxrl/runtime/tensor"
)

// Inputs and outputs of the graphs that learn, beside observations and masks.
const (
	// nextPrefix precedes the names of the fields of obs_t.
	nextPrefix = "next."
	// actionInput is a_tm1: float32 [batch, A] in [−1, 1], or int64 [batch].
	actionInput = "sac.action"
	// noiseInput is standard normal: [batch, A], or gSDE's matrix [latent, A].
	noiseInput = "sac.noise"
	// alphaInput [1] is the temperature, targetInput [batch] what the critics learn, and weightInput [batch] the weight of each row in a mean.
	alphaInput  = "sac.alpha"
	targetInput = "sac.target"
	weightInput = "sac.weight"

	lossOutput = "loss"
	// qOutput is the least of the critics' values of obs_t, [batch], or [batch, n] for Discrete actions.
	qOutput = "q"
	// logProbOutput is the log-density of the drawn actions, [batch]; for Discrete actions agents.LogProbsOutput in the targets, and the expectation Σ π·log π [batch] in the actor's graph.
	logProbOutput = "log_prob"
	// behaviourOutput is log π(a_tm1|obs_tm1), [batch], with V-trace.
	behaviourOutput = "behaviour_log_prob"
)

// The scopes of parameters. Those below target follow those of the same name without it.
const (
	actorScope  = "actor"
	criticScope = "critic"
	targetScope = "target"
)

// graphs are the networks of an agent, all over the same parameters.
type graphs struct {
	frame *network.Frame
	// specs are all parameters, those of target networks last. values are the initial values of the others.
	specs  []models.Spec
	values map[string]*tensor.Tensor
	// policy is complete and exported; act is what actors need of it.
	policy, act *models.Network
	// targets evaluates obs_t, critic and actor are the losses.
	targets, critic, actor *models.Network
	// latent is the width of gSDE's features; 0 without it.
	latent int
}

// design builds graphs.
type design struct {
	c     Config
	f     *network.Frame
	torso *network.Torso
	key   rng.Key
}

// newGraphs builds every network of an agent.
func newGraphs(c Config, f *network.Frame, kinds []encoder.Kind, key rng.Key) (*graphs, error) {
	if err := fits(c, f); err != nil {
		return nil, err
	}
	t := c.Config
	// The hidden layers are those of the heads, whose initialisation is PyTorch's.
	t.Hidden = nil
	torso, err := network.NewTorso(t, f, kinds, layer.Zeros())
	if err != nil {
		return nil, err
	}
	d := &design{c: c, f: f, torso: torso, key: key}
	g := &graphs{frame: f}
	if err := d.declare(g); err != nil {
		return nil, err
	}
	if err := d.refuseDropout(); err != nil {
		return nil, err
	}
	for _, add := range []func(*graphs) error{d.addPolicy, d.addAct, d.addTargets, d.addCritic, d.addActor} {
		if err := add(g); err != nil {
			return nil, err
		}
	}
	return g, nil
}

// fits reports actions that the algorithm cannot choose, and options that do not suit them.
func fits(c Config, f *network.Frame) error {
	if c.UseSDE && c.Policy.Kind != "" {
		return errors.New("use_sde needs the features of a policy that is made here; with a policy of one's own there are none")
	}
	switch a := f.Spec.Action.(type) {
	case envs.Discrete:
		if c.UseSDE {
			return fmt.Errorf("use_sde is for actions in a box; those of %s are %v", f.Spec.Name, a)
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

func (d *design) graph(name string) *layer.Graph { return layer.New(name, d.key, layer.Options{}) }

// declare finds all parameters.
func (d *design) declare(g *graphs) error {
	l := d.graph("agent")
	in := d.torso.Inputs(l, "")
	if _, err := d.policy(l, in); err != nil {
		return err
	}
	if _, err := d.critics(l, in, d.action(l)); err != nil {
		return err
	}
	whole, values, err := l.Network(d.c.Options)
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(whole.Specs, func(s models.Spec) bool { return s.Role == models.Trainable && below(s.Name, actorScope) }) || !slices.ContainsFunc(whole.Specs, func(s models.Spec) bool { return s.Role == models.Trainable && below(s.Name, criticScope) }) {
		return errors.New("train and freeze leave no parameter of the actor, or none of the critics, to train")
	}
	g.specs, g.values = slices.Clone(whole.Specs), values
	for _, s := range whole.Specs {
		if below(s.Name, criticScope) {
			g.specs = append(g.specs, models.Spec{Name: targetScope + "." + s.Name, Shape: s.Shape, Role: models.Frozen})
		}
	}
	return nil
}

// refuseDropout looks for dropout, whose masks no graph here has.
func (d *design) refuseDropout() error {
	l := layer.New("dropout", d.key, layer.Options{Training: true})
	in := d.torso.Inputs(l, "")
	if _, err := d.policy(l, in); err != nil {
		return err
	}
	if _, err := d.critics(l, in, d.action(l)); err != nil {
		return err
	}
	if masks := l.Masks(); len(masks) > 0 {
		return fmt.Errorf("dropout of %g is asked for, which SAC has no use for; set it to 0", masks[0].Ratio)
	}
	return nil
}

// below reports whether a parameter lies in a scope.
func below(name, scope string) bool { return strings.HasPrefix(name, scope+".") }

// over returns the network of a graph whose parameters are some of the agent's.
func (g *graphs) over(l *layer.Graph) (*models.Network, error) {
	m, err := l.Model()
	if err != nil {
		return nil, err
	}
	var specs []models.Spec
	for _, p := range l.Params() {
		i := slices.IndexFunc(g.specs, func(s models.Spec) bool { return s.Name == p.Name && slices.Equal(s.Shape, p.Shape) })
		if i < 0 {
			return nil, fmt.Errorf("parameter %q %v is not one of the agent's", p.Name, p.Shape)
		}
		specs = append(specs, g.specs[i])
	}
	return models.WithSpecs(m, specs)
}

// stored returns the element type and the shape of a recorded action.
func stored(f *network.Frame) (tensor.DType, []int) {
	if f.Continuous() {
		return tensor.Float32, []int{f.Dims}
	}
	return tensor.Int64, nil
}

// action declares a_tm1.
func (d *design) action(g *layer.Graph) onnx.Value {
	dtype, shape := stored(d.f)
	return g.Batched(actionInput, dtype, shape...)
}

// linear appends a layer that begins as PyTorch's do.
func linear(g *layer.Graph, name string, x onnx.Value, n int) onnx.Value {
	init := layer.FanIn(g.Extent(x, -1))
	return g.LinearBias(name, x, n, init, init)
}

// policy appends the actor's network and distribution.
func (d *design) policy(g *layer.Graph, in network.Inputs) (*policy, error) {
	a := g.In(actorScope)
	if d.torso.HasPolicy() {
		return d.given(g, in)
	}
	z, err := d.torso.Build(a, in)
	if err != nil {
		return nil, err
	}
	h := z.Own
	for i, width := range d.c.Hidden {
		h = a.Activate(d.c.Activation, linear(a, fmt.Sprintf("fc%d", i), h, width))
	}
	if !d.f.Continuous() {
		p := &policy{g: g, c: head.NewCategorical(a, linear(a, "logits", h, d.f.Heads[0]), in.Mask, d.f.Heads...)}
		return p, g.Err()
	}
	// A component for each asset comes from the asset's own features, by layers that all share.
	component := func(name string) onnx.Value {
		if d.f.Assets > 0 {
			return a.Squeeze(linear(a, name, h, 1), 2)
		}
		return linear(a, name, h, d.f.Dims)
	}
	mean := component("mean")
	if d.c.UseSDE {
		if d.c.ClipMean > 0 {
			mean = a.Clip(mean, -d.c.ClipMean, d.c.ClipMean)
		}
		latent := h
		if d.f.Assets > 0 {
			latent = z.Whole
		}
		s := head.NewGSDE(a, mean, latent, head.MatrixLogStd(a, d.c.LogStdInit, a.Extent(latent, 1), d.f.Dims))
		return &policy{g: g, s: head.Squash(s.DiagGaussian), sde: s}, g.Err()
	}
	return &policy{g: g, s: head.NewSquashed(a, mean, d.bounded(a, component(network.LogStdParam)))}, g.Err()
}

// bounded keeps log standard deviations within their bounds.
func (d *design) bounded(g *layer.Graph, logStd onnx.Value) onnx.Value {
	b := d.c.LogStd
	if b.Bound == head.BoundTanh {
		return g.Shift(g.Scale(g.Activate("tanh", logStd), (b.High-b.Low)/2), (b.Low+b.High)/2)
	}
	return g.Clip(logStd, b.Low, b.High)
}

// given appends a policy of one's own: logits, or means with log standard deviations beside them, or without, and then these are parameters.
func (d *design) given(g *layer.Graph, in network.Inputs) (*policy, error) {
	a, n := g.In(actorScope), d.f.Parameters()
	if d.c.UseSDE {
		return nil, fmt.Errorf("use_sde needs the features of a policy, and one of one's own gives none")
	}
	if !d.f.Continuous() {
		logits, err := d.torso.Policy(a, in, n)
		return &policy{g: g, c: head.NewCategorical(a, logits, in.Mask, d.f.Heads...)}, err
	}
	mean, err := d.torso.Policy(a, in, n, 2*n)
	if err != nil {
		return nil, err
	}
	if a.Extent(mean, 1) == n {
		zero := a.Scale(mean, 0)
		return &policy{g: g, s: head.NewSquashed(a, mean, d.bounded(a, a.Add(zero, head.SharedLogStd(a, 0, n))))}, g.Err()
	}
	return &policy{g: g, s: head.NewSquashed(a, a.Slice(mean, 1, 0, n), d.bounded(a, a.Slice(mean, 1, n, 2*n)))}, g.Err()
}

// policy is the distribution over actions: c for Discrete ones, else s, with sde where the noise is gSDE's.
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

// critics appends the values of actions, [batch] each, or of all Discrete actions, [batch, n].
func (d *design) critics(g *layer.Graph, in network.Inputs, actions onnx.Value) ([]onnx.Value, error) {
	c := g.In(criticScope)
	z, err := d.torso.Build(c, in)
	if err != nil {
		return nil, err
	}
	x, n := z.Whole, 1
	if d.f.Continuous() {
		x = c.Concat(-1, x, actions)
	} else {
		n = d.f.Heads[0]
	}
	p := head.Perceptron{Hidden: d.c.criticHidden(), Activation: d.c.Activation, Default: true}
	var list []onnx.Value
	for i := range d.c.Critics {
		q := p.Build(c.In(fmt.Sprintf("q%d", i+1)), x, n)
		if d.f.Continuous() {
			q = c.Squeeze(q, 1)
		}
		list = append(list, q)
	}
	return list, g.Err()
}

// least appends the smallest of the critics' values.
func least(g *layer.Graph, q []onnx.Value) onnx.Value {
	m := q[0]
	for _, x := range q[1:] {
		m = g.Min(m, x)
	}
	return m
}

// addPolicy adds the network that is exported.
func (d *design) addPolicy(g *graphs) (err error) {
	l := d.graph("policy")
	p, err := d.policy(l, d.torso.Inputs(l, ""))
	if err != nil {
		return err
	}
	if p.c != nil {
		l.Output(agents.ActionOutput, l.Squeeze(p.c.Mode(), 1))
		l.Output(agents.LogProbsOutput, p.c.LogProbs)
	} else {
		box := d.f.Spec.Action.(envs.Box)
		low, high := bounds(box, d.f.Dims)
		// An engine's tanh may exceed 1 by a rounding, and environments refuse what exceeds their bounds.
		action := within(l, head.Rescale(l, p.s.Mode(), low, high), low, high)
		action = l.Reshape(action, append([]int{-1}, box.Dims...)...)
		if box.Of != tensor.Float32 {
			action = l.Op("Cast", []onnx.Value{action}, onnx.AttrInt("to", int(box.Of)))
		}
		l.Output(agents.ActionOutput, action)
		l.Output(agents.MeanOutput, p.s.Gaussian.Mean)
		l.Output(agents.LogStdOutput, p.s.Gaussian.LogStd)
	}
	g.policy, err = g.over(l)
	return err
}

// bounds returns the bounds of every component.
func bounds(box envs.Box, n int) (low, high []float64) {
	for i := range n {
		r := box.Bounds(i)
		low, high = append(low, r.Low), append(high, r.High)
	}
	return low, high
}

// within appends x cut off at the bounds of each component, or at the last float32 before them.
func within(g *layer.Graph, x onnx.Value, low, high []float64) onnx.Value {
	from, to := tensor.New(tensor.Float32, len(low)), tensor.New(tensor.Float32, len(low))
	for i := range low {
		l, h := float32(low[i]), float32(high[i])
		if float64(l) < low[i] {
			l = math.Nextafter32(l, h)
		}
		if float64(h) > high[i] {
			h = math.Nextafter32(h, l)
		}
		from.Float32s()[i], to.Float32s()[i] = l, h
	}
	return g.Min(g.Max(x, g.Const(from)), g.Const(to))
}

// addAct adds the network of acting: the parameters of the distribution, and what gSDE's noise comes from. Drawing, squashing and rescaling are cheaper in Go.
func (d *design) addAct(g *graphs) (err error) {
	l := d.graph("act")
	p, err := d.policy(l, d.torso.Inputs(l, ""))
	if err != nil {
		return err
	}
	if p.c != nil {
		l.Output(agents.LogProbsOutput, p.c.LogProbs)
	} else {
		l.Output(agents.MeanOutput, p.s.Gaussian.Mean)
		l.Output(agents.LogStdOutput, p.s.Gaussian.LogStd)
		if p.sde != nil {
			g.latent = l.Extent(p.sde.Latent, 1)
			l.Output(network.LatentOutput, p.sde.Latent)
		}
	}
	g.act, err = g.over(l)
	return err
}

// noise declares what sampled actions are made of.
func (d *design) noise(g *graphs, l *layer.Graph) onnx.Value {
	if g.latent > 0 {
		return l.Input(noiseInput, tensor.Float32, onnx.Known(g.latent), onnx.Known(d.f.Dims))
	}
	return l.Observation(noiseInput, d.f.Dims)
}

// addTargets adds the network that evaluates obs_t: an action of the present policy, or the probabilities of all, and the least value by the target critics. With V-trace it also gives the recorded actions' log-probabilities by the present policy.
func (d *design) addTargets(g *graphs) error {
	l := d.graph("targets")
	in := d.torso.Inputs(l, nextPrefix)
	p, err := d.policy(l, in)
	if err != nil {
		return err
	}
	var actions onnx.Value
	if p.c != nil {
		l.Output(agents.LogProbsOutput, p.c.LogProbs)
	} else {
		var logProb onnx.Value
		actions, logProb = p.sample(d.noise(g, l))
		l.Output(logProbOutput, logProb)
	}
	q, err := d.critics(l.In(targetScope), in, actions)
	if err != nil {
		return err
	}
	l.Output(qOutput, least(l, q))
	if d.c.VTrace.Length > 0 {
		before, err := d.policy(l.Again(), d.torso.Inputs(l, ""))
		if err != nil {
			return err
		}
		taken := d.action(l)
		if before.c != nil {
			l.Output(behaviourOutput, before.c.LogProb(taken))
		} else {
			l.Output(behaviourOutput, before.s.LogProb(taken))
		}
	}
	g.targets, err = g.over(l)
	return err
}

// addCritic adds the critics' loss ½·Σₖ mean (qₖ(obs_tm1, a_tm1) − y)².
func (d *design) addCritic(g *graphs) error {
	l := d.graph("critic")
	in, actions := d.torso.Inputs(l, ""), d.action(l)
	q, err := d.critics(l, in, actions)
	if err != nil {
		return err
	}
	y := l.Observation(targetInput)
	var sum onnx.Value
	for _, x := range q {
		if !d.f.Continuous() {
			x = head.Pick(l, x, actions)
		}
		if square := l.Square(l.Sub(x, y)); sum == "" {
			sum = square
		} else {
			sum = l.Add(sum, square)
		}
	}
	l.Output(lossOutput, l.Scale(l.Dot(l.Observation(weightInput), sum), 0.5))
	g.critic, err = g.over(l)
	return err
}

// addActor adds the actor's loss, mean (α·log π(a|obs_tm1) − min q(obs_tm1, a)) for a drawn action a, or its expectation over all Discrete ones.
func (d *design) addActor(g *graphs) error {
	l := d.graph("actor")
	in := d.torso.Inputs(l, "")
	alpha := l.Input(alphaInput, tensor.Float32, onnx.Known(1))
	p, err := d.policy(l, in)
	if err != nil {
		return err
	}
	var actions, logProb onnx.Value
	if p.c == nil {
		actions, logProb = p.sample(d.noise(g, l))
	}
	q, err := d.critics(l, in, actions)
	if err != nil {
		return err
	}
	cost := onnx.Value("")
	if p.c == nil {
		cost = l.Sub(l.Mul(alpha, logProb), least(l, q))
	} else {
		probs := l.Exp(p.c.LogProbs)
		logProb = l.Sum(l.Mul(probs, p.c.LogProbs), 1)
		cost = l.Sub(l.Mul(alpha, logProb), l.Sum(l.Mul(probs, least(l, q)), 1))
	}
	l.Output(lossOutput, l.Dot(l.Observation(weightInput), cost))
	l.Output(logProbOutput, logProb)
	g.actor, err = g.over(l)
	return err
}
