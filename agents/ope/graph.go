package ope

import (
	"slices"

	"github.com/onnxrl/onnxrl/agents"
	"github.com/onnxrl/onnxrl/agents/network"
	"github.com/onnxrl/onnxrl/agents/offpolicy"
	"github.com/onnxrl/onnxrl/models"
	"github.com/onnxrl/onnxrl/models/encoder"
	"github.com/onnxrl/onnxrl/models/head"
	"github.com/onnxrl/onnxrl/models/layer"
	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/rng"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// actionInput is int64 [batch] of Discrete actions, and else their features, float32 [batch, A].
const actionInput = "learner.action"

// design has the networks of q, all over the same parameters: critic.*, and target.critic.*,
// frozen.
type design struct {
	c     FQEConfig
	p     *Policy
	torso *network.Torso
	key   rng.Key

	specs []models.Spec
	start map[string]*tensor.Tensor
	// targets gives q of next observations by the target network, critic the loss, and values q.
	targets, critic, values *models.Network
}

func newDesign(c FQEConfig, p *Policy, kinds []encoder.Kind, key rng.Key) (*design, error) {
	torso, err := network.NewTorso(network.Config{CrossAsset: encoder.CrossAssetDefaults(), Activation: "relu"}, p.f, kinds, layer.Zeros())
	if err != nil {
		return nil, err
	}
	d := &design{c: c, p: p, torso: torso, key: key}
	l := d.graph("values")
	q, err := d.q(l.In(offpolicy.CriticScope), torso.Inputs(l, ""), d.features(l))
	if err != nil {
		return nil, err
	}
	l.Output(offpolicy.QOutput, q)
	whole, start, err := l.Network(models.Options{})
	if err != nil {
		return nil, err
	}
	d.values, d.specs, d.start = whole, slices.Clone(whole.Specs), start
	for _, s := range whole.Specs {
		name := offpolicy.TargetScope + "." + s.Name
		d.specs = append(d.specs, models.Spec{Name: name, Shape: s.Shape, Role: models.Frozen})
		start[name] = start[s.Name]
	}
	if err := d.addTargets(); err != nil {
		return nil, err
	}
	return d, d.addCritic()
}

func (d *design) graph(name string) *layer.Graph { return layer.New(name, d.key, layer.Options{}) }

// newParams makes the parameters.
func (d *design) newParams() (*models.Params, error) {
	return network.NewParams(&agents.Setup{}, d.specs, d.start, nil)
}

// features declares the features of actions; absent for Discrete ones.
func (d *design) features(l *layer.Graph) onnx.Value {
	if d.p.f.Discrete() {
		return ""
	}
	return l.Observation(actionInput, d.p.width())
}

// q appends values: of all Discrete actions, [batch, n], or of those with the features, [batch].
func (d *design) q(g *layer.Graph, in network.Inputs, action onnx.Value) (onnx.Value, error) {
	z, err := d.torso.Build(g, in)
	if err != nil {
		return "", err
	}
	h := head.Perceptron{Hidden: d.c.Hidden, Activation: "relu", Default: true}
	if action == "" {
		return h.Build(g.In("q"), z.Pooled, d.p.f.Heads[0]), g.Err()
	}
	return g.Squeeze(h.Build(g.In("q"), g.Concat(-1, z.Pooled, action), 1), 1), g.Err()
}

// addTargets adds q of next observations by the target network.
func (d *design) addTargets() error {
	l := d.graph("targets")
	q, err := d.q(l.In(offpolicy.TargetScope).In(offpolicy.CriticScope), d.torso.Inputs(l, offpolicy.NextPrefix), d.features(l))
	if err != nil {
		return err
	}
	l.Output(offpolicy.QOutput, q)
	d.targets, err = network.Over(d.specs, l)
	return err
}

// addCritic adds the loss, mean (q(obs_tm1, a_tm1) − y)².
func (d *design) addCritic() error {
	l := d.graph("critic")
	action := d.features(l)
	q, err := d.q(l.In(offpolicy.CriticScope), d.torso.Inputs(l, ""), action)
	if err != nil {
		return err
	}
	if action == "" {
		q = head.Pick(l, q, l.Batched(actionInput, tensor.Int64))
	}
	square := l.Square(l.Sub(q, l.Observation(offpolicy.TargetInput)))
	l.Output(offpolicy.LossOutput, l.Scale(l.Sum(square, 0), 1/float64(d.c.BatchSize)))
	d.critic, err = network.Over(d.specs, l)
	return err
}
