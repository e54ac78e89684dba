package td3

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

// Inputs and outputs of the graphs that learn, beside observations.
const (
	// nextPrefix precedes the names of the fields of obs_t.
	nextPrefix = "next."
	// actionInput is a_tm1, [batch, A] in [−1, 1].
	actionInput = "td3.action"
	// noiseInput is what is added to the target policy's actions, [batch, A], clipped already.
	noiseInput = "td3.noise"
	// targetInput [batch] is what the critics learn, weightInput [batch] the weight of each row in a mean.
	targetInput = "td3.target"
	weightInput = "td3.weight"

	lossOutput = "loss"
	// qOutput is the least of the target critics' values of obs_t, [batch].
	qOutput = "q"
	// squashedOutput is the policy's action in [−1, 1], [batch, A].
	squashedOutput = "squashed_action"
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
	if a, ok := f.Spec.Action.(envs.Box); !ok || !a.Bounded() || a.Of != tensor.Float32 && a.Of != tensor.Float64 {
		return nil, fmt.Errorf("the actions of %s are %v; TD3 chooses actions in a box of finite bounds, of float32 or float64", f.Spec.Name, f.Spec.Action)
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

func (d *design) graph(name string) *layer.Graph { return layer.New(name, d.key, layer.Options{}) }

// declare finds all parameters.
func (d *design) declare(g *graphs) error {
	l := d.graph("agent")
	in := d.torso.Inputs(l, "")
	if _, err := d.policy(l, in); err != nil {
		return err
	}
	if _, err := d.critics(l, in, l.Observation(actionInput, d.f.Dims), d.c.Critics); err != nil {
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
		g.specs = append(g.specs, models.Spec{Name: targetScope + "." + s.Name, Shape: s.Shape, Role: models.Frozen})
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
	if _, err := d.critics(l, in, l.Observation(actionInput, d.f.Dims), 1); err != nil {
		return err
	}
	if masks := l.Masks(); len(masks) > 0 {
		return fmt.Errorf("dropout of %g is asked for, which TD3 has no use for; set it to 0", masks[0].Ratio)
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

// linear appends a layer that begins as PyTorch's do.
func linear(g *layer.Graph, name string, x onnx.Value, n int) onnx.Value {
	init := layer.FanIn(g.Extent(x, -1))
	return g.LinearBias(name, x, n, init, init)
}

// policy appends the actor's network: actions in [−1, 1], [batch, A].
func (d *design) policy(g *layer.Graph, in network.Inputs) (onnx.Value, error) {
	a := g.In(actorScope)
	if d.torso.HasPolicy() {
		h, err := d.torso.Policy(a, in, d.f.Dims)
		return a.Activate("tanh", h), err
	}
	z, err := d.torso.Build(a, in)
	if err != nil {
		return "", err
	}
	h := z.Own
	for i, width := range d.c.Hidden {
		h = a.Activate(d.c.Activation, linear(a, fmt.Sprintf("fc%d", i), h, width))
	}
	if d.f.Assets > 0 {
		// A component for each asset comes from the asset's own features, by layers that all share.
		h = a.Squeeze(linear(a, "action", h, 1), 2)
	} else {
		h = linear(a, "action", h, d.f.Dims)
	}
	return a.Activate("tanh", h), g.Err()
}

// critics appends the values of actions by the first n critics, [batch] each.
func (d *design) critics(g *layer.Graph, in network.Inputs, actions onnx.Value, n int) ([]onnx.Value, error) {
	c := g.In(criticScope)
	z, err := d.torso.Build(c, in)
	if err != nil {
		return nil, err
	}
	x := c.Concat(-1, z.Whole, actions)
	p := head.Perceptron{Hidden: d.c.criticHidden(), Activation: d.c.Activation, Default: true}
	var list []onnx.Value
	for i := range n {
		list = append(list, c.Squeeze(p.Build(c.In(fmt.Sprintf("q%d", i+1)), x, 1), 1))
	}
	return list, g.Err()
}

// addPolicy adds the network that is exported.
func (d *design) addPolicy(g *graphs) (err error) {
	l := d.graph("policy")
	squashed, err := d.policy(l, d.torso.Inputs(l, ""))
	if err != nil {
		return err
	}
	box := d.f.Spec.Action.(envs.Box)
	var low, high []float64
	for i := range d.f.Dims {
		r := box.Bounds(i)
		low, high = append(low, r.Low), append(high, r.High)
	}
	// An engine's tanh may exceed 1 by a rounding, and environments refuse what exceeds their bounds.
	action := within(l, head.Rescale(l, squashed, low, high), low, high)
	action = l.Reshape(action, append([]int{-1}, box.Dims...)...)
	if box.Of != tensor.Float32 {
		action = l.Op("Cast", []onnx.Value{action}, onnx.AttrInt("to", int(box.Of)))
	}
	l.Output(agents.ActionOutput, action)
	g.policy, err = g.over(l)
	return err
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

// addAct adds the network of acting. Noise and rescaling are cheaper in Go.
func (d *design) addAct(g *graphs) (err error) {
	l := d.graph("act")
	squashed, err := d.policy(l, d.torso.Inputs(l, ""))
	if err != nil {
		return err
	}
	l.Output(squashedOutput, squashed)
	g.act, err = g.over(l)
	return err
}

// addTargets adds the network that evaluates obs_t: the target policy's actions with noise, and the least of their values by the target critics.
func (d *design) addTargets(g *graphs) error {
	l := d.graph("targets")
	in, target := d.torso.Inputs(l, nextPrefix), l.In(targetScope)
	actions, err := d.policy(target, in)
	if err != nil {
		return err
	}
	if d.c.TargetPolicyNoise > 0 {
		actions = l.Clip(l.Add(actions, l.Observation(noiseInput, d.f.Dims)), -1, 1)
	}
	q, err := d.critics(target, in, actions, d.c.Critics)
	if err != nil {
		return err
	}
	m := q[0]
	for _, x := range q[1:] {
		m = l.Min(m, x)
	}
	l.Output(qOutput, m)
	g.targets, err = g.over(l)
	return err
}

// addCritic adds the critics' loss Σₖ mean (qₖ(obs_tm1, a_tm1) − y)².
func (d *design) addCritic(g *graphs) error {
	l := d.graph("critic")
	in := d.torso.Inputs(l, "")
	q, err := d.critics(l, in, l.Observation(actionInput, d.f.Dims), d.c.Critics)
	if err != nil {
		return err
	}
	y := l.Observation(targetInput)
	var sum onnx.Value
	for _, x := range q {
		if square := l.Square(l.Sub(x, y)); sum == "" {
			sum = square
		} else {
			sum = l.Add(sum, square)
		}
	}
	l.Output(lossOutput, l.Dot(l.Observation(weightInput), sum))
	g.critic, err = g.over(l)
	return err
}

// addActor adds the actor's loss, −mean q₁(obs_tm1, π(obs_tm1)).
func (d *design) addActor(g *graphs) error {
	l := d.graph("actor")
	in := d.torso.Inputs(l, "")
	actions, err := d.policy(l, in)
	if err != nil {
		return err
	}
	q, err := d.critics(l, in, actions, 1)
	if err != nil {
		return err
	}
	l.Output(lossOutput, l.Neg(l.Dot(l.Observation(weightInput), q[0])))
	g.actor, err = g.over(l)
	return err
}
