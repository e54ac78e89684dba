package es

import (
	"errors"
	"fmt"
	"slices"

	"github.com/onnxrl/onnxrl/agents/network"
	"github.com/onnxrl/onnxrl/models"
	"github.com/onnxrl/onnxrl/models/encoder"
	"github.com/onnxrl/onnxrl/models/layer"
	"github.com/onnxrl/onnxrl/runtime/rng"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// actorScope has the parameters of the policy, as those of other algorithms' actors.
const actorScope = "actor"

// newPolicy builds the only network of an agent, complete as package agents describes it, and draws
// its initial parameters.
func newPolicy(c Settings, f *network.Frame, kinds []encoder.Kind, key rng.Key) (*models.Network, map[string]*tensor.Tensor, error) {
	torso, err := network.NewTorso(c.Config, f, kinds, layer.Orthogonal(1))
	if err != nil {
		return nil, nil, err
	}
	build := func(o layer.Options) (*layer.Graph, error) {
		g := layer.New("policy", key, o)
		in, a := torso.Inputs(g, ""), g.In(actorScope)
		z, err := torso.Build(a, in)
		if err != nil {
			return nil, err
		}
		network.Deterministic(a, f, z, in.Mask, layer.Orthogonal(0.01))
		return g, g.Err()
	}
	g, err := build(layer.Options{Training: true})
	if err != nil {
		return nil, nil, err
	}
	if masks := g.Masks(); len(masks) > 0 {
		return nil, nil, fmt.Errorf("dropout of %g is asked for, and members are to differ by their parameters alone; set it to 0", masks[0].Ratio)
	}
	if g, err = build(layer.Options{}); err != nil {
		return nil, nil, err
	}
	net, values, err := g.Network(c.Options)
	if err == nil && !slices.ContainsFunc(net.Specs, func(s models.Spec) bool { return s.Role == models.Trainable }) {
		err = errors.New("train and freeze leave no parameter to perturb")
	}
	return net, values, err
}
