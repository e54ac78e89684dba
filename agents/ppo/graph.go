package ppo

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/onnxrl/onnxrl/agents"
	"github.com/onnxrl/onnxrl/agents/network"
	"github.com/onnxrl/onnxrl/agents/onpolicy"
	"github.com/onnxrl/onnxrl/models"
	"github.com/onnxrl/onnxrl/models/encoder"
	"github.com/onnxrl/onnxrl/models/head"
	"github.com/onnxrl/onnxrl/models/layer"
	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/rng"
)

// graphs are the networks of an agent.
type graphs struct {
	onpolicy.Networks
	// states are those of a recurrent policy; length is the rounds of a sequence, 0 without.
	states []models.State
	length int
}

// costScope holds the parameters of the values of costs.
const costScope = "cost_critic"

// design builds graphs.
type design struct {
	c Config
	// torso is the critic's, acting the actor's, which reads no privileged fields.
	torso, acting *network.Torso
	apart         *apart
}

// newGraphs builds every network of an agent.
func newGraphs(c Config, f *network.Frame, kinds []encoder.Kind, key rng.Key) (*graphs, error) {
	// Hidden layers have the gain √2 with tanh too, as in Stable-Baselines3 and CleanRL.
	if c.Central {
		central := f.Spec.Observation.Central()
		if len(central) == 0 {
			return nil, fmt.Errorf("central: none of the observations of %s is marked as central; set it to false to learn the value from what the policy reads", f.Spec.Name)
		}
		c.Privileged = append(slices.DeleteFunc(slices.Clone(c.Privileged), func(name string) bool { return slices.Contains(central, name) }), central...)
	}
	torso, err := network.NewTorso(c.Config, f, kinds, onpolicy.Orthogonal(c.OrthoInit, math.Sqrt2))
	if err != nil {
		return nil, err
	}
	if c.LayerNorm {
		torso = torso.LayerNormed()
	}
	if err := c.refuseMemory(torso); err != nil {
		return nil, err
	}
	acting, err := torso.Acting()
	if err != nil {
		return nil, err
	}
	by, err := newApart(c, acting.Frame())
	if err != nil {
		return nil, err
	}
	d, g := &design{c: c, torso: torso, acting: acting, apart: by}, &graphs{Networks: onpolicy.NewNetworks(f, key)}
	if d.remembers() {
		g.length = c.Recurrent.rounds(c.NSteps)
	}
	if err := d.addPolicy(g); err != nil {
		return nil, err
	}
	return g, d.addLearn(g)
}

// parts is a graph from its inputs to the policy's distribution and the value [rows, 1].
type parts struct {
	dist  network.Distribution
	value onnx.Value
	// costs are the values of the constraints' costs, [rows, constraints]; absent without.
	costs  onnx.Value
	memory *recurrence
	stops  []string
}

// build appends the network. length is that of sequences; 0 is for single observations.
func (d *design) build(g *layer.Graph, length int) (*parts, error) {
	in, p := d.torso.InputSequences(g, "", length), &parts{}
	if d.remembers() {
		p.memory = newRecurrence(g, d.c.Recurrent, length)
	}
	critic := g.In(onpolicy.CriticScope)
	forActor, remembered, err := d.forActor(g, in, p.memory)
	if err != nil {
		return nil, err
	}
	forCritic := forActor
	if !d.shares() && d.apart == nil {
		if d.torso.HasPolicy() || d.c.Recurrent.Critic == Separate {
			remembered = ""
		} else if remembered != "" {
			remembered = g.Op("Identity", []onnx.Value{remembered})
			p.stops = append(p.stops, string(remembered))
		}
		if forCritic, _, err = d.features(d.torso, critic, in, p.memory, "critic", remembered); err != nil {
			return nil, err
		}
	}
	p.dist = d.distribution(g.In(onpolicy.ActorScope), in, forActor)
	column := func(g *layer.Graph, z network.Features) onnx.Value {
		return head.ValueColumn(g, z.Pooled, onpolicy.Orthogonal(d.c.OrthoInit, 1))
	}
	if d.apart == nil {
		p.value = column(critic, forCritic)
	} else if p.value, err = d.apart.build(critic, in, func(g *layer.Graph) (onnx.Value, error) {
		z, err := d.torso.Build(g, in)
		return column(g, z), err
	}); err != nil {
		return nil, err
	}
	p.stops = append(p.stops, p.dist.Stops()...)
	if len(d.c.Constraints) > 0 {
		err = d.costs(g, in, p, forCritic, remembered)
	}
	return p, errors.Join(err, g.Err())
}

// shares reports whether the value reads what the policy's layers make of the observation.
func (d *design) shares() bool { return d.c.Encoders == Shared && !d.torso.HasPolicy() }

// forActor appends what the distribution reads, and returns it with what is remembered.
func (d *design) forActor(g *layer.Graph, in network.Inputs, m *recurrence) (z network.Features, remembered onnx.Value, err error) {
	actor := g.In(onpolicy.ActorScope)
	switch {
	case d.torso.HasPolicy():
		z, err = d.given(actor, in, m)
		return z, "", err
	case d.apart != nil:
		z, err = d.parameters(actor, in)
		return z, "", err
	case d.shares():
		return d.features(d.torso, g, in, m, "shared", "")
	}
	return d.features(d.acting, actor, in, m, "actor", "")
}

// costs appends the values of costs: from the features of the value where all share them, else from
// a torso of their own.
func (d *design) costs(g *layer.Graph, in network.Inputs, p *parts, z network.Features, remembered onnx.Value) (err error) {
	costs := g.In(costScope)
	if !d.shares() {
		if z, _, err = d.features(d.torso, costs, in, p.memory, costScope, remembered); err != nil {
			return err
		}
	}
	p.costs = costs.Linear("value", z.Pooled, len(d.c.Constraints), onpolicy.Orthogonal(d.c.OrthoInit, 1))
	return nil
}

func (d *design) distribution(actor *layer.Graph, in network.Inputs, z network.Features) network.Distribution {
	return network.NewDistribution(actor, d.torso.Frame(), z, in.Mask, d.c.Exploration, onpolicy.Orthogonal(d.c.OrthoInit, 0.01))
}

// features appends a torso, with the memory between its encoder and its hidden layers. remembered,
// unless absent, stands for everything up to there; what it is otherwise is returned.
func (d *design) features(torso *network.Torso, g *layer.Graph, in network.Inputs, m *recurrence, owner string, remembered onnx.Value) (network.Features, onnx.Value, error) {
	if d.c.Recurrent.Kind == None {
		z, err := torso.Build(g, in)
		return z, "", err
	}
	if remembered == "" {
		z, err := torso.Encode(g, in)
		if err != nil {
			return network.Features{}, "", err
		}
		if z, err = torso.Join(g, in, z); err != nil {
			return network.Features{}, "", err
		}
		remembered = m.layers(g, owner, z)
	}
	return torso.Hidden(g, remembered), remembered, g.Err()
}

// given appends a user-supplied policy, for each round of a sequence where it has a memory.
func (d *design) given(g *layer.Graph, in network.Inputs, m *recurrence) (network.Features, error) {
	n := d.acting.Frame().Parameters()
	if len(d.acting.PolicyStates()) == 0 {
		return d.acting.PolicyFeatures(g, in, d.c.UseSDE, n)
	}
	return m.policy(g, d.acting, in, d.c.UseSDE, n)
}

// remembers reports whether a memory is in force: LSTM layers, or that of a user-supplied policy.
func (d *design) remembers() bool {
	return d.c.Recurrent.Kind != None || len(d.torso.PolicyStates()) > 0
}

// addPolicy adds the network that is published and the one that acts.
func (d *design) addPolicy(g *graphs) error {
	p := g.Graph("policy")
	n, err := d.build(p, 0)
	if err != nil {
		return err
	}
	p.Output(agents.ActionOutput, n.dist.Mode())
	n.dist.Output()
	p.Output(agents.ValueOutput, p.Squeeze(n.value, 1))
	if n.costs != "" {
		p.Output(agents.CostValueOutput, n.costs)
	}
	if n.memory != nil {
		g.states = n.memory.states
		n.memory.outputs(p)
	}
	if err := g.Complete(p, d.c.Options, func(l *layer.Graph) error { _, err := d.build(l, 0); return err }); err != nil {
		return err
	}
	if len(d.c.Privileged) > 0 || d.c.NormalizeValue != None {
		if err := d.addExported(g); err != nil {
			return err
		}
	}
	a := g.Training("act")
	if n, err = d.build(a, 0); err != nil {
		return err
	}
	n.dist.Acting()
	a.Output(agents.ValueOutput, n.value)
	if n.costs != "" {
		a.Output(agents.CostValueOutput, n.costs)
	}
	if n.memory != nil {
		n.memory.outputs(a)
	}
	g.Act, err = g.Over(a)
	return err
}

// addExported adds the policy alone: what its critic reads is not there where it acts, or what the
// value says is no return.
func (d *design) addExported(g *graphs) error {
	p := g.Graph("policy")
	in := d.acting.Inputs(p, "")
	var m *recurrence
	if d.remembers() {
		m = newRecurrence(p, d.c.Recurrent, 0)
	}
	z, _, err := d.forActor(p, in, m)
	if err != nil {
		return err
	}
	return g.Export(p, d.distribution(p.In(onpolicy.ActorScope), in, z), func() {
		if m != nil {
			m.outputs(p)
		}
	})
}

// addLearn adds the networks of learning: the loss and, for V-trace, the evaluation of a rollout.
func (d *design) addLearn(g *graphs) (err error) {
	t := g.Training("learn")
	n, logProb, err := d.evaluate(t, g)
	if err != nil {
		return err
	}
	loss, entropy := d.loss(t, n, logProb, g.length)
	t.Output(onpolicy.LossOutput, loss)
	output(t, onpolicy.LogProbOutput, logProb, g.length)
	output(t, onpolicy.EntropyOutput, entropy, g.length)
	output(t, agents.ValueOutput, n.value, g.length)
	if k := len(d.c.Constraints); k > 0 {
		output(t, agents.CostValueOutput, n.costs, g.length*k)
	}
	g.Stops = n.stops
	if g.Learn, err = g.Over(t); err != nil || d.c.Correction != VTrace {
		return err
	}
	t = g.Training("learn")
	if n, logProb, err = d.evaluate(t, g); err != nil {
		return err
	}
	output(t, onpolicy.LogProbOutput, logProb, g.length)
	output(t, agents.ValueOutput, n.value, g.length)
	g.Evaluate, err = g.Over(t)
	return err
}

// evaluate appends the network and the log-probabilities of recorded actions.
func (d *design) evaluate(t *layer.Graph, g *graphs) (*parts, onnx.Value, error) {
	n, err := d.build(t, g.length)
	if err != nil {
		return nil, "", err
	}
	dtype, shape := g.Frame.Stored()
	actions := network.Sequence(t, actionsInput, g.length, dtype, shape...)
	if c, ok := n.dist.(*network.Categorical); ok && g.Frame.Discrete() {
		return n, c.Chosen(actions), nil
	}
	return n, n.dist.LogProb(actions), nil
}

// output declares an output with a number per sample.
func output(t *layer.Graph, name string, v onnx.Value, length int) {
	if length > 0 {
		v = t.Reshape(v, -1, length)
	}
	t.Output(name, v)
}
