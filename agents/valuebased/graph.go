package valuebased

import (
	"errors"
	"fmt"
	"slices"

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
	actionsInput = "learner.actions"
	targetsInput = "learner.targets"
	weightsInput = "learner.weights"

	lossOutput  = "loss"
	errorOutput = "td_error"
	// numbersOutput has the numbers of all actions where there are several for each.
	numbersOutput = "numbers"
)

// graphs are the networks of an agent, all over the parameters of policy.
type graphs struct {
	spec    envs.Spec
	actions int
	// policy is complete: observations to the best valid action and the values of all. values are
	// its initial parameters.
	policy *models.Network
	values map[string]*tensor.Tensor
	// q gives the values and the numbers of all actions, train the loss.
	q, train *models.Network
	// constants are the values of train that no gradient flows through.
	constants []string
}

// numbers is the output of q that targets are made of.
func (d *Design) numbers() string {
	if d.Numbers == 1 {
		return agents.QValuesOutput
	}
	return numbersOutput
}

// drawing builds graphs.
type drawing struct {
	*Design
	key     rng.Key
	actions int
	torso   *network.Torso
}

// newGraphs builds every network of an agent.
func newGraphs(name string, c *Design, spec envs.Spec, kinds []encoder.Kind, key rng.Key) (*graphs, error) {
	a, ok := spec.Action.(envs.Discrete)
	if !ok {
		return nil, fmt.Errorf("the actions of %s are %v; %s chooses among Discrete ones", spec.Name, spec.Action, name)
	}
	g := &graphs{spec: spec, actions: a.N}
	// Values do not depend on what is allowed, so the mask enters only the policy.
	spec.Masked = false
	f, err := c.Network.Frame(spec, kinds)
	if err != nil {
		return nil, err
	}
	d := &drawing{Design: c, key: key, actions: a.N}
	// The hidden layers are built here, with PyTorch's initialisation of weights and biases.
	torso := c.Network
	torso.Hidden = nil
	if d.torso, err = network.NewTorso(torso, f, kinds, layer.Zeros()); err != nil {
		return nil, err
	}
	if err := d.addPolicy(g); err != nil {
		return nil, err
	}
	// The graphs of acting and of the targets have no dropout.
	l := layer.New("dropout", d.key, layer.Options{Training: true})
	if _, err := d.all(l); err != nil {
		return nil, err
	}
	if masks := l.Masks(); len(masks) > 0 {
		return nil, fmt.Errorf("dropout of %g is not supported by %s; set it to 0", masks[0].Ratio, name)
	}
	l = d.graph("q")
	z, err := d.all(l)
	if err != nil {
		return nil, err
	}
	l.Output(agents.QValuesOutput, d.values(l, z))
	if d.Numbers > 1 {
		l.Output(numbersOutput, z)
	}
	if g.q, err = network.Over(g.policy.Specs, l); err != nil {
		return nil, err
	}
	return g, d.addTrain(g)
}

func (d *drawing) graph(name string) *layer.Graph { return layer.New(name, d.key, layer.Options{}) }

// all appends the network from its inputs to the numbers of all actions.
func (d *drawing) all(g *layer.Graph) (onnx.Value, error) {
	in := d.torso.Inputs(g, "")
	if d.torso.HasPolicy() {
		x, err := d.torso.Policy(g, in, d.Numbers*d.actions)
		if err != nil || d.Numbers == 1 {
			return x, err
		}
		return g.Reshape(x, -1, d.Numbers, d.actions), g.Err()
	}
	z, err := d.torso.Build(g, in)
	if err != nil {
		return "", err
	}
	x := z.Pooled
	if n := len(d.Network.Hidden); n > 0 {
		p := head.Perceptron{Hidden: d.Network.Hidden[:n-1], Activation: d.Network.Activation, Default: true}
		x = g.Activate(d.Network.Activation, p.Build(g.In("hidden"), x, d.Network.Hidden[n-1]))
	}
	last := head.QValues
	if d.Settings.Duelling {
		last = head.Duelling
	}
	x = last(g, x, layer.FanIn(max(1, g.Extent(x, -1))), d.Numbers, d.actions)
	return x, g.Err()
}

// values appends the values of all actions, [batch, actions].
func (d *drawing) values(g *layer.Graph, z onnx.Value) onnx.Value {
	if d.Numbers == 1 {
		return z
	}
	return g.Mean(z, 1)
}

// addPolicy adds the network that acts.
func (d *drawing) addPolicy(g *graphs) error {
	p := d.graph("policy")
	z, err := d.all(p)
	if err != nil {
		return err
	}
	q := d.values(p, z)
	best := q
	if g.spec.Masked {
		best = p.Where(p.Batched(agents.MaskInput, tensor.Bool, d.actions), q, p.Float(head.Excluded))
	}
	p.Output(agents.ActionOutput, p.Op("ArgMax", []onnx.Value{best}, onnx.AttrInt("axis", 1), onnx.AttrInt("keepdims", 0)))
	p.Output(agents.QValuesOutput, q)
	if g.policy, g.values, err = p.Network(d.Options); err != nil {
		return err
	}
	if !slices.ContainsFunc(g.policy.Specs, func(s models.Spec) bool { return s.Role == models.Trainable }) {
		return errors.New("train and freeze leave no parameter to train")
	}
	return nil
}

// addTrain adds the network of learning.
func (d *drawing) addTrain(g *graphs) error {
	t := d.graph("train")
	z, err := d.all(t)
	if err != nil {
		return err
	}
	actions := t.Batched(actionsInput, tensor.Int64)
	var shape []int
	if d.Numbers > 1 {
		shape = []int{d.Numbers}
	}
	loss := d.Loss(t, z, actions, t.Observation(targetsInput, shape...))
	t.Output(lossOutput, t.Dot(t.Observation(weightsInput), loss.Rows))
	t.Output(errorOutput, loss.Errors)
	g.constants = loss.Constants
	g.train, err = network.Over(g.policy.Specs, t)
	return err
}
