package iql

import (
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

// Inputs and outputs of the graphs that learn, beside package offpolicy's.
const (
	// recordedOutput is min q'(obs_tm1, a_tm1), [batch], and recordedInput the same in the losses.
	recordedOutput = "recorded_q"
	recordedInput  = "iql.recorded_q"
	// weightOutput are the actor's weights, [batch].
	weightOutput = "weight"
)

// The bounds of log σ.
const lowLogStd, highLogStd = -5, 2

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
			return nil, fmt.Errorf("the actions of %s are %v; IQL chooses actions in a box of finite bounds, of float32 or float64", f.Spec.Name, a)
		}
	default:
		return nil, fmt.Errorf("the actions of %s are %v; IQL chooses actions in a box, or Discrete ones", f.Spec.Name, a)
	}
	n, err := offpolicy.NewNetworks(c.Config, f, kinds, key)
	if err != nil {
		return nil, err
	}
	d := &design{Networks: n, c: c}
	followed := func(name string) bool {
		return offpolicy.Below(name, offpolicy.CriticScope) && !offpolicy.Below(name, valueScope)
	}
	if err := d.Declare("IQL", c.Options, followed, func(l *layer.Graph) error {
		in := d.Torso.Inputs(l, "")
		if _, err := d.policy(l, in); err != nil {
			return err
		}
		if _, err := d.critics(l.In(offpolicy.CriticScope), in, d.Action(l)); err != nil {
			return err
		}
		_, err := d.value(l.In(offpolicy.CriticScope).Again(), l, in)
		return err
	}); err != nil {
		return nil, err
	}
	for _, add := range []func() error{d.addPolicy, d.addAct, d.addTargets, d.addCritic, d.addActor} {
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
	logStd := a.Shift(a.Scale(a.Op("Sigmoid", []onnx.Value{head.SharedLogStd(a, 0, n)}), highLogStd-lowLogStd), lowLogStd)
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
		g := c.In(fmt.Sprintf("q%d", i+1))
		if d.Frame.Continuous() {
			list = append(list, c.Squeeze(d.perceptron().Build(g, c.Concat(-1, z.Pooled, actions), 1), 1))
		} else {
			list = append(list, head.Pick(c, d.perceptron().Build(g, z.Pooled, d.Frame.Heads[0]), actions))
		}
	}
	return list, c.Err()
}

// value appends v(obs), [batch], whose torso is built in c, the critics' scope of graph l.
func (d *design) value(c, l *layer.Graph, in network.Inputs) (onnx.Value, error) {
	z, err := d.Torso.Build(c, in)
	if err != nil {
		return "", err
	}
	return l.Squeeze(d.perceptron().Build(l.In(valueScope), z.Pooled, 1), 1), l.Err()
}

// addPolicy adds the network that is exported.
func (d *design) addPolicy() (err error) {
	l := d.Graph("policy")
	p, err := d.policy(l, d.Acting.Inputs(l, ""))
	if err != nil {
		return err
	}
	if p.c != nil {
		l.Output(agents.ActionOutput, l.Squeeze(p.c.Mode(), 1))
		l.Output(agents.LogProbsOutput, p.c.LogProbs)
	} else {
		d.OutputBox(l, agents.ActionOutput, p.s.Mean)
	}
	d.Policy, err = d.Over(l)
	return err
}

// addAct adds the network of acting: the parameters of the distribution.
func (d *design) addAct() (err error) {
	l := d.Graph("act")
	p, err := d.policy(l, d.Acting.Inputs(l, ""))
	if err != nil {
		return err
	}
	if p.c != nil {
		l.Output(agents.LogProbsOutput, p.c.LogProbs)
	} else {
		l.Output(agents.MeanOutput, p.s.Mean)
		l.Output(agents.LogStdOutput, p.s.LogStd)
	}
	d.Act, err = d.Over(l)
	return err
}

// addTargets adds the network that evaluates obs_t by v, and what was recorded by the target
// critics.
func (d *design) addTargets() error {
	l := d.Graph("targets")
	v, err := d.value(l.In(offpolicy.CriticScope), l, d.Torso.Inputs(l, offpolicy.NextPrefix))
	if err != nil {
		return err
	}
	l.Output(offpolicy.QOutput, v)
	q, err := d.critics(l.In(offpolicy.TargetScope).In(offpolicy.CriticScope), d.Torso.Inputs(l, ""), d.Action(l))
	if err != nil {
		return err
	}
	l.Output(recordedOutput, offpolicy.Least(l, q))
	d.Targets, err = d.Over(l)
	return err
}

// addCritic adds the loss of critics and v.
func (d *design) addCritic() error {
	l := d.Graph("critic")
	in := d.Torso.Inputs(l, "")
	c := l.In(offpolicy.CriticScope)
	q, err := d.critics(c, in, d.Action(l))
	if err != nil {
		return err
	}
	v, err := d.value(c.Again(), l, in)
	if err != nil {
		return err
	}
	u := l.Sub(l.Observation(recordedInput), v)
	below := l.Op("Less", []onnx.Value{u, l.Float(0)})
	sum := l.Mul(l.Where(below, l.Float(1-d.c.Expectile), l.Float(d.c.Expectile)), l.Square(u))
	y := l.Observation(offpolicy.TargetInput)
	for _, x := range q {
		sum = l.Add(sum, l.Square(l.Sub(x, y)))
	}
	l.Output(offpolicy.LossOutput, l.Dot(l.Observation(offpolicy.WeightInput), sum))
	d.Critic, err = d.Over(l)
	return err
}

// addActor adds the actor's loss, −mean min(max_weight, exp(weight_temp·u))·log π(a_tm1|obs_tm1).
func (d *design) addActor() error {
	l := d.Graph("actor")
	in := d.Torso.Inputs(l, "")
	p, err := d.policy(l, in)
	if err != nil {
		return err
	}
	v, err := d.value(l.In(offpolicy.CriticScope), l, in)
	if err != nil {
		return err
	}
	u := l.Sub(l.Observation(recordedInput), v)
	// exp does not overflow: what is above the bound is cut off before.
	weight := l.Exp(l.Min(l.Scale(u, d.c.WeightTemp), l.Op("Log", []onnx.Value{l.Float(d.c.MaxWeight)})))
	l.Output(weightOutput, weight)
	l.Output(offpolicy.LossOutput, l.Neg(l.Dot(l.Observation(offpolicy.WeightInput), l.Mul(weight, p.logProb(d.Action(l))))))
	d.Actor, err = d.Over(l)
	return err
}
