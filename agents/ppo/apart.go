package ppo

import (
	"fmt"

	"github.com/onnxrl/onnxrl/agents/network"
	"github.com/onnxrl/onnxrl/agents/onpolicy"
	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/models/layer"
	"github.com/onnxrl/onnxrl/runtime/onnx"
)

// apart makes layers of their own for each value of a field of the observation; nil where all rows
// share theirs.
type apart struct {
	field int
	space envs.Discrete
	name  string
}

// newApart finds the field that policies are made by.
func newApart(c Config, f *network.Frame) (*apart, error) {
	if c.PoliciesBy == "" {
		return nil, nil
	}
	i := f.Spec.Observation.Index(c.PoliciesBy)
	if i < 0 || !f.Reads(i) {
		return nil, fmt.Errorf("policies_by: %q is no field that the policy reads of the observations of %s", c.PoliciesBy, f.Spec.Name)
	}
	space, ok := f.Spec.Observation[i].Space.(envs.Discrete)
	switch {
	case !ok:
		return nil, fmt.Errorf("policies_by: the observation %q of %s is %v, expected a discrete one", c.PoliciesBy, f.Spec.Name, f.Spec.Observation[i].Space)
	case f.Assets > 0:
		return nil, fmt.Errorf("policies_by: the observation %q of %s is a window of assets, whose heads are the assets'", f.Spec.Observation[f.Series].Name, f.Spec.Name)
	}
	return &apart{i, space, c.PoliciesBy}, nil
}

// build appends what one makes, below a scope for each value of the field, and returns for each row
// [batch, D] what those layers make that are its own.
func (a *apart) build(g *layer.Graph, in network.Inputs, one func(g *layer.Graph) (onnx.Value, error)) (sum onnx.Value, err error) {
	mine := network.Flatten(g, in.Obs[a.field], a.space)
	for k := range a.space.N {
		z, err := one(g.In(fmt.Sprintf("%s%d", a.name, k)))
		if err != nil {
			return "", err
		}
		if z = g.Mul(g.Slice(mine, 1, k, k+1), z); k > 0 {
			z = g.Add(sum, z)
		}
		sum = z
	}
	return sum, nil
}

// parameters appends the parameters of the distribution, which are the only ones that it needs.
func (d *design) parameters(actor *layer.Graph, in network.Inputs) (z network.Features, err error) {
	f := d.acting.Frame()
	last := "logits"
	if f.Continuous() {
		last = "mean"
	}
	z.Given, err = d.apart.build(actor, in, func(g *layer.Graph) (onnx.Value, error) {
		own, err := d.acting.Build(g, in)
		return g.Linear(last, own.Pooled, f.Parameters(), onpolicy.Orthogonal(d.c.OrthoInit, 0.01)), err
	})
	return z, err
}
