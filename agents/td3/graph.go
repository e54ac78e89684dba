package td3

import (
	"fmt"

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

// With bc lambdaInput [1] weighs the values in the actor's loss, and valuesOutput [batch] are those
// of the policy's actions by the first critic, which it is computed from.
const (
	lambdaInput  = "td3.lambda"
	valuesOutput = "values"
)

// design draws the networks of an agent. The noise of its targets is clipped already.
type design struct {
	*offpolicy.Networks
	c Config
}

// followed says of a parameter whether it has a target network: what actor and critics have in
// common, a base that is never trained, has none.
func followed(name string) bool {
	return offpolicy.Below(name, offpolicy.ActorScope) || offpolicy.Below(name, offpolicy.CriticScope)
}

// newDesign draws every network of an agent.
func newDesign(c Config, f *network.Frame, kinds []encoder.Kind, key rng.Key) (*design, error) {
	if a, ok := f.Spec.Action.(envs.Box); !ok || !a.Bounded() || a.Of != tensor.Float32 && a.Of != tensor.Float64 {
		return nil, fmt.Errorf("the actions of %s are %v; TD3 chooses actions in a box of finite bounds, of float32 or float64", f.Spec.Name, f.Spec.Action)
	}
	n, err := offpolicy.NewNetworks(c.Config, f, kinds, key)
	if err != nil {
		return nil, err
	}
	n.Constraints = c.Constraints
	d := &design{Networks: n, c: c}
	if err := d.Declare("TD3", c.Options, followed, func(l *layer.Graph) error {
		in := d.Torso.Inputs(l, "")
		if _, err := d.policy(l, in); err != nil {
			return err
		}
		_, _, err := d.critics(l, in, d.Action(l), c.Critics)
		return err
	}); err != nil {
		return nil, err
	}
	for _, add := range []func() error{d.addPolicy, d.addTargets, d.addCritic, d.addActor, d.addAhead} {
		if err := add(); err != nil {
			return nil, err
		}
	}
	return d, nil
}

// policy appends the actor's network: actions in [−1, 1], [batch, A].
func (d *design) policy(g *layer.Graph, in network.Inputs) (onnx.Value, error) {
	a := g.In(offpolicy.ActorScope)
	if d.Acting.HasPolicy() {
		h, err := d.Acting.Policy(a, in, d.Frame.Dims)
		return a.Activate("tanh", h), err
	}
	z, err := d.Acting.Build(a, in)
	if err != nil {
		return "", err
	}
	h := d.Component(a, "action", d.Hidden(a, z, d.c.Hidden, d.c.Activation))
	return a.Activate("tanh", h), g.Err()
}

// critics appends the values of actions by the first n critics, [batch] each, and what they cost, by
// each constraint.
func (d *design) critics(g *layer.Graph, in network.Inputs, actions onnx.Value, n int) (values, costs []onnx.Value, _ error) {
	c := g.In(offpolicy.CriticScope)
	z, err := d.Torso.Build(c, in)
	if err != nil {
		return nil, nil, err
	}
	x := c.Concat(-1, z.Pooled, actions)
	p := head.Perceptron{Hidden: d.c.Layers(d.c.Hidden), Activation: d.c.Activation, Default: true}
	for i := range n {
		values = append(values, c.Squeeze(p.Build(c.In(offpolicy.Numbered("q", i)), x, 1), 1))
	}
	costs = d.CostCritics(c, func(g *layer.Graph, width int) onnx.Value { return p.Build(g, x, width) })
	return values, costs, g.Err()
}

// addPolicy adds the networks that are exported and that act.
func (d *design) addPolicy() error {
	return d.AddPolicy(func(l *layer.Graph) (offpolicy.Distribution, error) {
		squashed, err := d.policy(l, d.Acting.Inputs(l, ""))
		return offpolicy.Distribution{Best: squashed, Mean: squashed}, err
	}, nil)
}

// addTargets adds the network that evaluates obs_t: the target policy's actions with noise, and the
// least of their values by the target critics.
func (d *design) addTargets() error {
	l := d.Graph("targets")
	in, target := d.Torso.Inputs(l, offpolicy.NextPrefix), l.In(offpolicy.TargetScope)
	actions, err := d.policy(target, in)
	if err != nil {
		return err
	}
	if d.c.TargetPolicyNoise > 0 {
		actions = l.Clip(l.Add(actions, l.Observation(offpolicy.NoiseInput, d.Frame.Dims)), -1, 1)
	}
	q, costs, err := d.critics(target, in, actions, d.c.Critics)
	if err != nil {
		return err
	}
	m := q[0]
	for _, x := range q[1:] {
		m = l.Min(m, x)
	}
	l.Output(offpolicy.QOutput, m)
	d.OutputCosts(l, costs)
	d.Targets, err = d.Over(l)
	return err
}

// addCritic adds the critics' loss Σₖ mean (qₖ(obs_tm1, a_tm1) − y)², those of costs
// (Networks.CostLoss) included.
func (d *design) addCritic() error {
	l := d.Graph("critic")
	in := d.Torso.Inputs(l, "")
	taken := d.Action(l)
	q, costs, err := d.critics(l, in, taken, d.c.Critics)
	if err != nil {
		return err
	}
	y := l.Observation(offpolicy.TargetInput)
	var sum onnx.Value
	for _, x := range q {
		if square := l.Square(l.Sub(x, y)); sum == "" {
			sum = square
		} else {
			sum = l.Add(sum, square)
		}
	}
	for i, x := range costs {
		sum = l.Add(sum, d.CostLoss(l, i, x, taken))
	}
	l.Output(offpolicy.LossOutput, l.Dot(l.Observation(offpolicy.WeightInput), sum))
	d.Critic, err = d.Over(l)
	return err
}

// addActor adds the actor's loss, −mean q₁(obs_tm1, π(obs_tm1)), or with bc
//
//	−λ·mean q₁(obs_tm1, π(obs_tm1)) + mean (π(obs_tm1) − a_tm1)²
//
// where the second mean is over components too. With constraints the first term is penalised
// (Networks.Penalise).
func (d *design) addActor() error {
	l := d.Graph("actor")
	in := d.Torso.Inputs(l, "")
	actions, err := d.policy(l, in)
	if err != nil {
		return err
	}
	q, costs, err := d.critics(l, in, actions, 1)
	if err != nil {
		return err
	}
	loss := d.Penalise(l, l.Neg(q[0]), costs, "")
	if d.c.BC != nil {
		away := l.Square(l.Sub(actions, d.Action(l)))
		loss = l.Add(l.Mul(l.Input(lambdaInput, tensor.Float32, onnx.Known(1)), loss), l.Scale(l.Sum(away, 1), 1/float64(d.Frame.Dims)))
	}
	l.Output(offpolicy.LossOutput, l.Dot(l.Observation(offpolicy.WeightInput), loss))
	d.Actor, err = d.Over(l)
	return err
}

// addAhead adds, with bc, the network of the values that λ is computed from.
func (d *design) addAhead() error {
	if d.c.BC == nil {
		return nil
	}
	l := d.Graph("ahead")
	in := d.Torso.Inputs(l, "")
	actions, err := d.policy(l, in)
	if err != nil {
		return err
	}
	q, _, err := d.critics(l, in, actions, 1)
	if err != nil {
		return err
	}
	l.Output(valuesOutput, q[0])
	d.Ahead, err = d.Over(l)
	return err
}
