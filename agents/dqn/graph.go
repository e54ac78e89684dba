package dqn

import (
	"fmt"

	"github.com/onnxrl/onnxrl/agents"
	"github.com/onnxrl/onnxrl/agents/network"
	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/models"
	"github.com/onnxrl/onnxrl/models/encoder"
	"github.com/onnxrl/onnxrl/models/head"
	"github.com/onnxrl/onnxrl/models/layer"
	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/rng"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// Inputs and outputs of the graphs that learn, beside observations.
const (
	actionsInput = "dqn.actions"
	targetsInput = "dqn.targets"
	weightsInput = "dqn.weights"

	// QValuesOutput is float32 [batch, actions], the values of all actions, invalid ones included.
	QValuesOutput = "q_values"
	lossOutput    = "loss"
	errorOutput   = "td_error"
)

// graphs are the networks of an agent, all over the parameters of policy.
type graphs struct {
	spec    envs.Spec
	actions int
	// policy is complete: observations to the best valid action and the values of all. values are
	// its initial parameters.
	policy *models.Network
	values map[string]*tensor.Tensor
	// q gives the values of all actions, train the loss.
	q, train *models.Network
	// constant is the value of train that no gradient flows through.
	constant string
}

// design builds graphs.
type design struct {
	c       Config
	key     rng.Key
	actions int
	torso   *network.Torso
}

// newGraphs builds every network of an agent.
func newGraphs(c Config, spec envs.Spec, kinds []encoder.Kind, key rng.Key) (*graphs, error) {
	a, ok := spec.Action.(envs.Discrete)
	if !ok {
		return nil, fmt.Errorf("the actions of %s are %v; DQN chooses among Discrete ones", spec.Name, spec.Action)
	}
	g := &graphs{spec: spec, actions: a.N}
	// Values do not depend on what is allowed, so the mask enters only the policy.
	spec.Masked = false
	f, err := c.Config.Frame(spec, kinds)
	if err != nil {
		return nil, err
	}
	d := &design{c: c, key: key, actions: a.N}
	// The hidden layers are built here, with PyTorch's initialisation of weights and biases.
	torso := c.Config
	torso.Hidden = nil
	if d.torso, err = network.NewTorso(torso, f, kinds, layer.Zeros()); err != nil {
		return nil, err
	}
	if err := d.addPolicy(g); err != nil {
		return nil, err
	}
	if err := d.refuseDropout(); err != nil {
		return nil, err
	}
	j := d.graph("q")
	q, err := d.values(j)
	if err != nil {
		return nil, err
	}
	j.Output(QValuesOutput, q)
	if g.q, err = network.Over(g.policy.Specs, j); err != nil {
		return nil, err
	}
	return g, d.addTrain(g)
}

func (d *design) graph(name string) *layer.Graph { return layer.New(name, d.key, layer.Options{}) }

// values appends the network from its inputs to the values of all actions, [batch, actions].
func (d *design) values(g *layer.Graph) (onnx.Value, error) {
	in := d.torso.Inputs(g, "")
	if d.torso.HasPolicy() {
		return d.torso.Policy(g, in, d.actions)
	}
	z, err := d.torso.Build(g, in)
	if err != nil {
		return "", err
	}
	x := z.Pooled
	if n := len(d.c.Hidden); n > 0 {
		p := head.Perceptron{Hidden: d.c.Hidden[:n-1], Activation: d.c.Activation, Default: true}
		x = g.Activate(d.c.Activation, p.Build(g.In("hidden"), x, d.c.Hidden[n-1]))
	}
	init := layer.FanIn(max(1, g.Extent(x, -1)))
	if d.c.Duelling {
		x = head.Duelling(g, x, init, d.actions)
	} else {
		x = head.QValues(g, x, init, d.actions)
	}
	return x, g.Err()
}

// refuseDropout looks for dropout, which the graphs of acting and of the targets do not have.
func (d *design) refuseDropout() error {
	g := layer.New("dropout", d.key, layer.Options{Training: true})
	if _, err := d.values(g); err != nil {
		return err
	}
	if masks := g.Masks(); len(masks) > 0 {
		return fmt.Errorf("dropout of %g is asked for, which DQN here does not have; set it to 0", masks[0].Ratio)
	}
	return nil
}

// addPolicy adds the network that acts.
func (d *design) addPolicy(g *graphs) error {
	p := d.graph("policy")
	q, err := d.values(p)
	if err != nil {
		return err
	}
	best := q
	if g.spec.Masked {
		best = p.Where(p.Batched(agents.MaskInput, tensor.Bool, d.actions), q, p.Float(head.Excluded))
	}
	p.Output(agents.ActionOutput, p.Op("ArgMax", []onnx.Value{best}, onnx.AttrInt("axis", 1), onnx.AttrInt("keepdims", 0)))
	p.Output(QValuesOutput, q)
	g.policy, g.values, err = p.Network(d.c.Options)
	return err
}

// addTrain adds the network of learning. Its loss is Σ w·h(δ) with δ = q(s, a) − y and Huber's
// function
//
//	h(δ) = δ²/2 where |δ| ≤ 1, else |δ| − ½
//
// which is c·(δ − c/2) with c = δ clipped to ±1. Its derivative is c, as it is when c is taken for
// a constant; learning does that, because the gradient then is a product and not twenty operators.
// The targets y are an input, so no gradient flows through them. With conservative_weight there is
// weight·Σ w·(log Σ exp q(s, ·) − q(s, a)) beside it.
func (d *design) addTrain(g *graphs) error {
	t := d.graph("train")
	q, err := d.values(t)
	if err != nil {
		return err
	}
	actions := t.Batched(actionsInput, tensor.Int64)
	delta := t.Sub(head.Pick(t, q, actions), t.Observation(targetsInput))
	clipped := t.Clip(delta, -1, 1)
	g.constant = string(clipped)
	huber := t.Mul(clipped, t.Sub(delta, t.Scale(clipped, 0.5)))
	if c := d.c.ConservativeWeight; c > 0 {
		huber = t.Sub(huber, t.Scale(head.Pick(t, t.Op("LogSoftmax", []onnx.Value{q}, onnx.AttrInt("axis", 1)), actions), c))
	}
	t.Output(lossOutput, t.Dot(t.Observation(weightsInput), huber))
	t.Output(errorOutput, delta)
	g.train, err = network.Over(g.policy.Specs, t)
	return err
}
