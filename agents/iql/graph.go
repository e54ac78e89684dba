package iql

import (
	"fmt"
	"strings"

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

// Inputs and outputs of the graphs that learn, beside package offpolicy's.
const (
	// recordedOutput is min q'(obs_tm1, a_tm1), [batch], of IQL, and recordedInput the same in what
	// follows.
	recordedOutput = "recorded_q"
	recordedInput  = "iql.recorded_q"
	// advantageOutput is u of the batch, [batch], and weightInput what the actor's rows weigh for
	// it.
	advantageOutput = "advantage"
	weightInput     = "iql.weight"
)

// valueScope has v, among the critics.
const valueScope = offpolicy.CriticScope + ".value"

// design draws the networks of an agent.
type design struct {
	*offpolicy.Networks
	c Config
}

// newDesign draws every network of an agent.
func newDesign(c Config, f *network.Frame, kinds []encoder.Kind, key rng.Key) (*design, error) {
	switch a := f.Spec.Action.(type) {
	case envs.Discrete:
	case envs.Box:
		if !a.Bounded() || a.Of != tensor.Float32 && a.Of != tensor.Float64 {
			return nil, fmt.Errorf("the actions of %s are %v; %s chooses actions in a box of finite bounds, of float32 or float64", f.Spec.Name, a, strings.ToUpper(c.name()))
		}
	default:
		return nil, fmt.Errorf("the actions of %s are %v; %s chooses actions in a box, or Discrete ones", f.Spec.Name, a, strings.ToUpper(c.name()))
	}
	n, err := offpolicy.NewNetworks(c.Config, f, kinds, key)
	if err != nil {
		return nil, err
	}
	d := &design{Networks: n, c: c}
	followed := func(name string) bool {
		return offpolicy.Below(name, offpolicy.CriticScope) && !offpolicy.Below(name, valueScope)
	}
	if err := d.Declare(strings.ToUpper(c.name()), c.Options, followed, func(l *layer.Graph) error {
		in := d.Torso.Inputs(l, "")
		if _, err := d.policy(l, in); err != nil {
			return err
		}
		c := l.In(offpolicy.CriticScope)
		if d.c.critics() {
			if _, err := d.critics(c, in, d.Action(l)); err != nil {
				return err
			}
			c = c.Again()
		}
		if d.c.Advantage == ofPolicy {
			return nil
		}
		_, err := d.value(c, l, in)
		return err
	}); err != nil {
		return nil, err
	}
	for _, add := range []func() error{d.addPolicy, d.addTargets, d.addCritic, d.addAdvantage, d.addActor} {
		if err := add(); err != nil {
			return nil, err
		}
	}
	return d, nil
}

// policy is the distribution over actions: c for Discrete ones, else s, in [−1, 1].
type policy struct {
	c *head.Categorical
	s *head.DiagGaussian
}

// logProb appends the log-probabilities of actions, [batch].
func (p *policy) logProb(actions onnx.Value) onnx.Value {
	if p.c != nil {
		return p.c.LogProb(actions)
	}
	return p.s.LogProb(actions)
}

// policy appends the actor's network and distribution.
func (d *design) policy(g *layer.Graph, in network.Inputs) (*policy, error) {
	a, n := g.In(offpolicy.ActorScope), d.Frame.Parameters()
	var x onnx.Value
	if d.Acting.HasPolicy() {
		var err error
		if x, err = d.Acting.Policy(a, in, n); err != nil {
			return nil, err
		}
	} else {
		z, err := d.Acting.Build(a, in)
		if err != nil {
			return nil, err
		}
		h := d.Hidden(a, z, d.c.Hidden, d.c.Activation)
		if d.Frame.Continuous() {
			x = d.Component(a, "mean", h)
		} else {
			x = offpolicy.Linear(a, "logits", h.PerAsset, d.Frame.Heads[0])
		}
	}
	if !d.Frame.Continuous() {
		return &policy{c: head.NewCategorical(a, x, in.Mask, d.Frame.Heads...)}, g.Err()
	}
	low, high := d.c.logStd()
	logStd := a.Shift(a.Scale(a.Op("Sigmoid", []onnx.Value{head.SharedLogStd(a, 0, n)}), high-low), low)
	mean := a.Activate("tanh", x)
	// The values of all rows are the same.
	return &policy{s: head.NewDiagGaussian(a, mean, a.Add(a.Scale(mean, 0), logStd))}, g.Err()
}

// perceptron is that of critics and v.
func (d *design) perceptron() head.Perceptron {
	return head.Perceptron{Hidden: d.c.Layers(d.c.Hidden), Activation: d.c.Activation, Default: true}
}

// critics appends the values of actions in a scope, [batch] each.
func (d *design) critics(c *layer.Graph, in network.Inputs, actions onnx.Value) (list []onnx.Value, _ error) {
	z, err := d.Torso.Build(c, in)
	if err != nil {
		return nil, err
	}
	for i := range d.c.Critics {
		g := critic(c, i)
		if d.Frame.Continuous() {
			list = append(list, c.Squeeze(d.perceptron().Build(g, c.Concat(-1, z.Pooled, actions), 1), 1))
		} else {
			list = append(list, head.Pick(c, d.perceptron().Build(g, z.Pooled, d.Frame.Heads[0]), actions))
		}
	}
	return list, c.Err()
}

// critic is the scope of one of several.
func critic(c *layer.Graph, i int) *layer.Graph { return c.In(fmt.Sprintf("q%d", i+1)) }

// value appends v(obs), [batch], whose torso is built in c, the critics' scope of graph l.
func (d *design) value(c, l *layer.Graph, in network.Inputs) (onnx.Value, error) {
	z, err := d.Torso.Build(c, in)
	if err != nil {
		return "", err
	}
	return l.Squeeze(d.perceptron().Build(l.In(valueScope), z.Pooled, 1), 1), l.Err()
}

// addPolicy adds the networks that are exported and that act.
func (d *design) addPolicy() error {
	return d.AddPolicy(func(l *layer.Graph) (offpolicy.Distribution, error) {
		p, err := d.policy(l, d.Acting.Inputs(l, ""))
		switch {
		case err != nil:
			return offpolicy.Distribution{}, err
		case p.c != nil:
			return offpolicy.Distribution{Categorical: p.c}, nil
		}
		return offpolicy.Distribution{Best: p.s.Mean, Mean: p.s.Mean, LogStd: p.s.LogStd}, nil
	}, nil)
}

// addTargets adds the network that evaluates obs_t: by v or, where the advantage is of the policy,
// by the target critics and an action of it. With IQL's the target critics evaluate what was
// recorded, too.
func (d *design) addTargets() (err error) {
	l := d.Graph("targets")
	next, target := d.Torso.Inputs(l, offpolicy.NextPrefix), l.In(offpolicy.TargetScope).In(offpolicy.CriticScope)
	var q onnx.Value
	if d.c.Advantage == ofPolicy {
		q, err = d.expected(target, l, next, 1)
	} else {
		q, err = d.value(l.In(offpolicy.CriticScope), l, next)
	}
	if err != nil {
		return err
	}
	l.Output(offpolicy.QOutput, q)
	if d.c.Advantage == ofExpectile {
		q, err := d.critics(target, d.Torso.Inputs(l, ""), d.Action(l))
		if err != nil {
			return err
		}
		l.Output(recordedOutput, offpolicy.Least(l, q))
	}
	d.Targets, err = d.Over(l)
	return err
}

// expected appends, by the critics of scope c, what the policy's actions are worth, [batch]: the
// mean over n of them, drawn with noise and cut off at ±1, or the expectation over Discrete ones.
func (d *design) expected(c, l *layer.Graph, in network.Inputs, n int) (onnx.Value, error) {
	p, err := d.policy(l, in)
	if err != nil {
		return "", err
	}
	z, err := d.Torso.Build(c, in)
	if err != nil {
		return "", err
	}
	var q []onnx.Value
	if p.c != nil {
		for i := range d.c.Critics {
			q = append(q, d.perceptron().Build(critic(c, i), z.Pooled, d.Frame.Heads[0]))
		}
		return l.Sum(l.Mul(l.Exp(p.c.LogProbs), offpolicy.Least(l, q)), 1), l.Err()
	}
	dims := d.Frame.Dims
	noise := l.Reshape(l.Observation(offpolicy.NoiseInput, n*dims), -1, n, dims)
	drawn := l.Clip(l.Add(l.Unsqueeze(p.s.Mean, 1), l.Mul(l.Exp(l.Unsqueeze(p.s.LogStd, 1)), noise)), -1, 1)
	ones := tensor.New(tensor.Float32, 1, n, 1)
	for i := range ones.Float32s() {
		ones.Float32s()[i] = 1
	}
	x := l.Concat(-1, l.Mul(l.Unsqueeze(z.Pooled, 1), l.Const(ones)), drawn)
	for i := range d.c.Critics {
		q = append(q, l.Squeeze(d.perceptron().Build(critic(c, i), x, 1), 2))
	}
	return l.Mean(offpolicy.Least(l, q), 1), l.Err()
}

// addCritic adds the loss of critics and v.
func (d *design) addCritic() error {
	l := d.Graph("critic")
	in, c := d.Torso.Inputs(l, ""), l.In(offpolicy.CriticScope)
	y := l.Observation(offpolicy.TargetInput)
	var sum onnx.Value
	add := func(x onnx.Value) {
		if sum != "" {
			x = l.Add(sum, x)
		}
		sum = x
	}
	if d.c.critics() {
		q, err := d.critics(c, in, d.Action(l))
		if err != nil {
			return err
		}
		for _, x := range q {
			add(l.Square(l.Sub(x, y)))
		}
		c = c.Again()
	}
	if d.c.Advantage != ofPolicy {
		v, err := d.value(c, l, in)
		if err != nil {
			return err
		}
		if d.c.Advantage == ofReturn {
			add(l.Square(l.Sub(v, y)))
		} else {
			u := l.Sub(l.Observation(recordedInput), v)
			below := l.Op("Less", []onnx.Value{u, l.Float(0)})
			add(l.Mul(l.Where(below, l.Float(1-d.c.Expectile), l.Float(d.c.Expectile)), l.Square(u)))
		}
	}
	l.Output(offpolicy.LossOutput, l.Dot(l.Observation(offpolicy.WeightInput), sum))
	var err error
	d.Critic, err = d.Over(l)
	return err
}

// addAdvantage adds what says how much better the recorded actions are.
func (d *design) addAdvantage() error {
	l := d.Graph("advantage")
	in, c := d.Torso.Inputs(l, ""), l.In(offpolicy.CriticScope)
	var worth, than onnx.Value
	var err error
	switch d.c.Advantage {
	case ofPolicy:
		q, err := d.critics(c, in, d.Action(l))
		if err != nil {
			return err
		}
		worth = offpolicy.Least(l, q)
		if than, err = d.expected(c.Again(), l, in, d.c.NActionSamples); err != nil {
			return err
		}
	case ofReturn:
		worth = l.Observation(offpolicy.TargetInput)
	default:
		worth = l.Observation(recordedInput)
	}
	if than == "" {
		if than, err = d.value(c, l, in); err != nil {
			return err
		}
	}
	l.Output(advantageOutput, l.Sub(worth, than))
	d.Ahead, err = d.Over(l)
	return err
}

// addActor adds the actor's loss, −mean w·log π(a_tm1|obs_tm1).
func (d *design) addActor() error {
	l := d.Graph("actor")
	p, err := d.policy(l, d.Torso.Inputs(l, ""))
	if err != nil {
		return err
	}
	l.Output(offpolicy.LossOutput, l.Neg(l.Dot(l.Observation(offpolicy.WeightInput), l.Mul(l.Observation(weightInput), p.logProb(d.Action(l))))))
	d.Actor, err = d.Over(l)
	return err
}
