package impala

import (
	"errors"
	"math"

	"github.com/onnxrl/onnxrl/agents"
	"github.com/onnxrl/onnxrl/agents/network"
	"github.com/onnxrl/onnxrl/agents/onpolicy"
	"github.com/onnxrl/onnxrl/models/encoder"
	"github.com/onnxrl/onnxrl/models/head"
	"github.com/onnxrl/onnxrl/models/layer"
	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/rng"
)

// Inputs of the graph that learns, beside observations and mask: a number for each sample, except
// the actions.
const (
	actionsInput = "impala.actions"
	targetInput  = "impala.target"
	// The log-probability of the policy that acted, and what the surrogate is at least.
	oldInput   = "impala.old_log_prob"
	floorInput = "impala.floor"
	// The weights of a sample in the three terms of the loss, signs and coefficients included.
	policyWeight  = "impala.policy_weight"
	valueWeight   = "impala.value_weight"
	entropyWeight = "impala.entropy_weight"
)

// design builds graphs.
type design struct {
	c Config
	f *network.Frame
	// torso is the critic's, acting the actor's, which reads no privileged fields.
	torso, acting *network.Torso
}

// newGraphs builds every network of an agent.
func newGraphs(c Config, f *network.Frame, kinds []encoder.Kind, key rng.Key) (*onpolicy.Networks, error) {
	torso, err := network.NewTorso(c.Config, f, kinds, onpolicy.Orthogonal(c.OrthoInit, math.Sqrt2))
	if err != nil {
		return nil, err
	}
	if len(torso.PolicyStates()) > 0 {
		return nil, errors.New("policy: it has a memory, and an unroll keeps no states; use ppo")
	}
	acting, err := torso.Acting()
	if err != nil {
		return nil, err
	}
	n := onpolicy.NewNetworks(f, key)
	g, d := &n, &design{c: c, f: f, torso: torso, acting: acting}
	p := g.Graph("policy")
	dist, value, _, err := d.build(p)
	if err != nil {
		return nil, err
	}
	p.Output(agents.ActionOutput, dist.Mode())
	dist.Output()
	p.Output(agents.ValueOutput, value)
	if err := g.Complete(p, c.Options, func(l *layer.Graph) error { _, _, _, err := d.build(l); return err }); err != nil {
		return nil, err
	}
	if len(c.Privileged) > 0 {
		p := g.Graph("policy")
		in := acting.Inputs(p, "")
		z, err := d.forActor(p, in)
		if err == nil {
			err = g.Export(p, d.distribution(p, in, z), func() {})
		}
		if err != nil {
			return nil, err
		}
	}
	a := g.Training("act")
	if dist, value, _, err = d.build(a); err != nil {
		return nil, err
	}
	dist.Acting()
	a.Output(agents.ValueOutput, value)
	if g.Act, err = g.Over(a); err != nil {
		return nil, err
	}
	return g, errors.Join(d.addEvaluate(g), d.addLearn(g))
}

// build appends the network from its inputs to the policy's distribution and the value [batch].
func (d *design) build(g *layer.Graph) (network.Distribution, onnx.Value, network.Inputs, error) {
	in := d.torso.Inputs(g, "")
	z, err := d.forActor(g, in)
	if err != nil {
		return nil, "", in, err
	}
	dist := d.distribution(g, in, z)
	critic := g.In(onpolicy.CriticScope)
	if !d.shares() {
		if z, err = d.torso.Build(critic, in); err != nil {
			return nil, "", in, err
		}
	}
	return dist, head.Value(critic, z.Pooled, onpolicy.Orthogonal(d.c.OrthoInit, 1)), in, g.Err()
}

// shares reports whether the value reads what the policy's layers make of the observation.
func (d *design) shares() bool { return d.c.Encoders == Shared && !d.torso.HasPolicy() }

// forActor appends what the distribution reads.
func (d *design) forActor(g *layer.Graph, in network.Inputs) (network.Features, error) {
	switch actor := g.In(onpolicy.ActorScope); {
	case d.torso.HasPolicy():
		return d.acting.PolicyFeatures(actor, in, d.c.UseSDE, d.f.Parameters())
	case d.shares():
		return d.torso.Build(g, in)
	default:
		return d.acting.Build(actor, in)
	}
}

func (d *design) distribution(g *layer.Graph, in network.Inputs, z network.Features) network.Distribution {
	return network.NewDistribution(g.In(onpolicy.ActorScope), d.f, z, in.Mask, d.c.Exploration, onpolicy.Orthogonal(d.c.OrthoInit, 0.01))
}

// evaluate appends the network and the log-probabilities of recorded actions.
func (d *design) evaluate(g *layer.Graph) (dist network.Distribution, logProb, value onnx.Value, err error) {
	dist, value, _, err = d.build(g)
	if err != nil {
		return nil, "", "", err
	}
	dtype, shape := d.f.Stored()
	return dist, dist.LogProb(g.Batched(actionsInput, dtype, shape...)), value, g.Err()
}

// addEvaluate adds the network that V-trace needs.
func (d *design) addEvaluate(n *onpolicy.Networks) error {
	g := n.Training("evaluate")
	_, logProb, value, err := d.evaluate(g)
	if err != nil {
		return err
	}
	g.Output(onpolicy.LogProbOutput, logProb)
	g.Output(agents.ValueOutput, value)
	n.Evaluate, err = n.Over(g)
	return err
}

// addLearn adds the network of learning. Its loss is
//
//	Σ policy + value_weight·(V(s) − vs)² + entropy_weight·H(π(·|s))
//
// with policy = policy_weight·log π(a|s), or with a surrogate max(policy_weight·ρ, floor) − floor:
// with policy_weight = −A/n and floor = policy_weight·(1 + ε·sign A) that is the clipped one, of
// whose bounds only one can ever count. Advantages are in the weights and vs is an input, so no
// gradient flows through them.
func (d *design) addLearn(n *onpolicy.Networks) error {
	g := n.Training("learn")
	dist, logProb, value, err := d.evaluate(g)
	if err != nil {
		return err
	}
	entropy := dist.Entropy()
	loss := g.Add(g.Dot(g.Observation(valueWeight), g.Square(g.Sub(value, g.Observation(targetInput)))), g.Dot(g.Observation(entropyWeight), entropy))
	if d.c.ClipRange > 0 {
		surrogate := g.Mul(g.Observation(policyWeight), g.Exp(g.Sub(logProb, g.Observation(oldInput))))
		excess := g.Activate("relu", g.Sub(surrogate, g.Observation(floorInput)))
		loss = g.Add(loss, g.Op("ReduceSum", []onnx.Value{excess}, onnx.AttrInt("keepdims", 0)))
	} else {
		loss = g.Add(loss, g.Dot(g.Observation(policyWeight), logProb))
	}
	g.Output(onpolicy.LossOutput, loss)
	g.Output(onpolicy.LogProbOutput, logProb)
	g.Output(onpolicy.EntropyOutput, entropy)
	g.Output(agents.ValueOutput, value)
	n.Stops = dist.Stops()
	n.Learn, err = n.Over(g)
	return err
}
