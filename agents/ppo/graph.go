package ppo

import (
	"fmt"
	"math"

	"github.com/onnxrl/onnxrl/agents"
	"github.com/onnxrl/onnxrl/agents/network"
	"github.com/onnxrl/onnxrl/models"
	"github.com/onnxrl/onnxrl/models/encoder"
	"github.com/onnxrl/onnxrl/models/head"
	"github.com/onnxrl/onnxrl/models/layer"
	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/rng"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// graphs are the networks of an agent, all over the parameters of policy.
type graphs struct {
	frame *network.Frame
	// policy is complete: observations to actions, the distribution's parameters and value. values
	// are its initial parameters.
	policy *models.Network
	values map[string]*tensor.Tensor
	// act is what the sampler needs and the value, learn the loss, evaluate log-probabilities and
	// values only.
	act, learn, evaluate *models.Network
	// stops are the values that the loss's gradient does not pass.
	stops []string
	// states are the names of the states of a memory and sizes their numbers for one environment;
	// length is the rounds of a sequence, 0 without a memory.
	states []string
	sizes  []int
	length int
	// logStd is the name of the parameter of a Gaussian's deviations; "" for other policies.
	logStd string
}

// design builds graphs.
type design struct {
	c     Config
	torso *network.Torso
	key   rng.Key
}

// newGraphs builds every network of an agent.
func newGraphs(c Config, f *network.Frame, kinds []encoder.Kind, key rng.Key) (*graphs, error) {
	// Hidden layers have the gain √2 with tanh too, as in Stable-Baselines3 and CleanRL.
	torso, err := network.NewTorso(c.Config, f, kinds, c.orthogonal(math.Sqrt2))
	if err != nil {
		return nil, err
	}
	if err := c.refuseMemory(torso); err != nil {
		return nil, err
	}
	d, g := &design{c: c, torso: torso, key: key}, &graphs{frame: f}
	if d.remembers() {
		g.length = c.Recurrent.rounds(c.NSteps)
	}
	if f.Continuous() {
		g.logStd = "actor." + network.LogStdParam
	}
	if err := d.refuseDropout(); err != nil {
		return nil, err
	}
	if err := d.addPolicy(g); err != nil {
		return nil, err
	}
	return g, d.addLearn(g)
}

func (d *design) graph(name string) *layer.Graph { return layer.New(name, d.key, layer.Options{}) }

// parts is a graph from its inputs to the policy's distribution and the value [rows, 1].
type parts struct {
	dist   network.Distribution
	value  onnx.Value
	memory *memory
	stops  []string
}

// build appends the network. length is that of sequences; 0 is for single observations.
func (d *design) build(g *layer.Graph, length int) (*parts, error) {
	in, p := d.torso.InputSequences(g, "", length), &parts{}
	if d.remembers() {
		p.memory = newMemory(g, d.c.Recurrent, length)
	}
	actor, critic := g.In("actor"), g.In("critic")
	var forActor, forCritic network.Features
	var err error
	switch {
	case d.torso.HasPolicy():
		if forActor, err = d.given(actor, in, p.memory); err == nil {
			forCritic, _, err = d.features(critic, in, p.memory, "critic", "")
		}
	case d.c.Encoders == Shared:
		forActor, _, err = d.features(g, in, p.memory, "shared", "")
		forCritic = forActor
	default:
		var remembered onnx.Value
		if forActor, remembered, err = d.features(actor, in, p.memory, "actor", ""); err == nil {
			if d.c.Recurrent.Critic == Separate {
				remembered = ""
			} else if remembered != "" {
				remembered = g.Op("Identity", []onnx.Value{remembered})
				p.stops = append(p.stops, string(remembered))
			}
			forCritic, _, err = d.features(critic, in, p.memory, "critic", remembered)
		}
	}
	if err != nil {
		return nil, err
	}
	p.dist = network.NewDistribution(actor, d.torso.Frame(), forActor, in.Mask, d.c.Exploration, d.c.orthogonal(0.01))
	p.value = head.ValueColumn(critic, forCritic.Whole, d.c.orthogonal(1))
	p.stops = append(p.stops, p.dist.Stops()...)
	return p, g.Err()
}

// features appends a torso, with the memory between its encoder and its hidden layers. remembered,
// unless absent, stands for everything up to there; what it is otherwise is returned.
func (d *design) features(g *layer.Graph, in network.Inputs, m *memory, owner string, remembered onnx.Value) (network.Features, onnx.Value, error) {
	if d.c.Recurrent.Kind == None {
		z, err := d.torso.Build(g, in)
		return z, "", err
	}
	if remembered == "" {
		z, err := d.torso.Encode(g, in)
		if err != nil {
			return network.Features{}, "", err
		}
		if z, err = d.torso.Join(g, in, z); err != nil {
			return network.Features{}, "", err
		}
		remembered = m.layers(g, owner, z)
	}
	return d.torso.Hidden(g, remembered), remembered, g.Err()
}

// given appends a user-supplied policy, for each round of a sequence where it has a memory.
func (d *design) given(g *layer.Graph, in network.Inputs, m *memory) (network.Features, error) {
	n := d.torso.Frame().Parameters()
	if len(d.torso.PolicyStates()) == 0 {
		return d.torso.PolicyFeatures(g, in, d.c.UseSDE, n)
	}
	return m.policy(g, d.torso, in, d.c.UseSDE, n)
}

// remembers reports whether a memory is in force: LSTM layers, or that of a user-supplied policy.
func (d *design) remembers() bool {
	return d.c.Recurrent.Kind != None || len(d.torso.PolicyStates()) > 0
}

// refuseDropout looks for dropout, which the graphs of acting do not have.
func (d *design) refuseDropout() error {
	g := layer.New("dropout", d.key, layer.Options{Training: true})
	if _, err := d.build(g, 0); err != nil {
		return err
	}
	if masks := g.Masks(); len(masks) > 0 {
		return fmt.Errorf("dropout of %g is asked for, but PPO is on-policy: the policy that learns must be the one that acted; set it to 0", masks[0].Ratio)
	}
	return nil
}

// addPolicy adds the network that is published and the one that acts.
func (d *design) addPolicy(g *graphs) error {
	p := d.graph("policy")
	n, err := d.build(p, 0)
	if err != nil {
		return err
	}
	p.Output(agents.ActionOutput, n.dist.Mode())
	n.dist.Output()
	p.Output(agents.ValueOutput, p.Squeeze(n.value, 1))
	if n.memory != nil {
		g.states, g.sizes = n.memory.names, n.memory.sizes
		n.memory.outputs(p)
	}
	if g.policy, g.values, err = p.Network(d.c.Options); err != nil {
		return err
	}
	a := d.graph("act")
	if n, err = d.build(a, 0); err != nil {
		return err
	}
	n.dist.Acting()
	a.Output(agents.ValueOutput, n.value)
	if n.memory != nil {
		n.memory.outputs(a)
	}
	g.act, err = network.Over(g.policy.Specs, a)
	return err
}

// addLearn adds the networks of learning: the loss and, for V-trace, the evaluation of a rollout.
func (d *design) addLearn(g *graphs) (err error) {
	t := d.graph("learn")
	n, logProb, err := d.evaluate(t, g)
	if err != nil {
		return err
	}
	loss, entropy := d.loss(t, n, logProb, g.length)
	t.Output(lossOutput, loss)
	output(t, logProbOutput, logProb, g.length)
	output(t, entropyOutput, entropy, g.length)
	output(t, agents.ValueOutput, n.value, g.length)
	g.stops = n.stops
	if g.learn, err = network.Over(g.policy.Specs, t); err != nil || d.c.Correction != VTrace {
		return err
	}
	t = d.graph("learn")
	if n, logProb, err = d.evaluate(t, g); err != nil {
		return err
	}
	output(t, logProbOutput, logProb, g.length)
	output(t, agents.ValueOutput, n.value, g.length)
	g.evaluate, err = network.Over(g.policy.Specs, t)
	return err
}

// evaluate appends the network and the log-probabilities of recorded actions.
func (d *design) evaluate(t *layer.Graph, g *graphs) (*parts, onnx.Value, error) {
	n, err := d.build(t, g.length)
	if err != nil {
		return nil, "", err
	}
	dtype, shape := g.frame.Stored()
	actions := network.Sequence(t, actionsInput, g.length, dtype, shape...)
	if c, ok := n.dist.(*network.Categorical); ok && g.frame.Discrete() {
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
