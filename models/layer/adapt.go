package layer

import (
	"fmt"
	"slices"
	"strings"

	"github.com/onnxrl/onnxrl/models"
	"github.com/onnxrl/onnxrl/models/lora"
	"github.com/onnxrl/onnxrl/runtime/onnx"
)

// adapterScope has the adapters' parameters, below the scope that they are used in.
const adapterScope = "lora"

// IsAdapter reports whether a parameter is one of an adapter that [Graph.Adapt] made.
func IsAdapter(name string) bool { return slices.Contains(strings.Split(name, "."), adapterScope) }

// Adapt appends what build makes of x, with low-rank adapters (package lora) beside its layers. Its
// own parameters have the role models.Base and are called below name alone ("encoder.fc.weight"),
// whatever the scope: all scopes that adapt it under that name share them. The adapters are
// parameters of this scope ("critic.lora.encoder.fc.weight.A"). Where cfg has no seed the
// matrices A descend from the network's key and the scope.
func (g *Graph) Adapt(name string, cfg lora.Config, x onnx.Value, build func(g *Graph, x onnx.Value) (onnx.Value, error)) (onnx.Value, error) {
	if err := g.Err(); err != nil {
		return "", err
	}
	z, err := g.adapt(name, cfg, x, build)
	if err != nil {
		g.Failf("%w", err)
	}
	return z, g.Err()
}

func (g *Graph) adapt(name string, cfg lora.Config, x onnx.Value, build func(g *Graph, x onnx.Value) (onnx.Value, error)) (onnx.Value, error) {
	own, err := g.s.b.Model()
	if err != nil {
		return "", err
	}
	const in, out = "x", "adapted"
	base := New(name, g.s.key, Options{Opset: own.Opset(onnx.DomainStandard), Training: g.s.training})
	t := g.Type(x)
	z, err := build(base.In(name), base.Input(in, t.DType, t.Dims...))
	if err != nil {
		return "", err
	}
	if masks := base.Masks(); len(masks) > 0 {
		return "", fmt.Errorf("dropout of %g in a network with adapters is not supported; set it to 0", masks[0].Ratio)
	}
	base.Output(out, z)
	m, err := base.Model()
	if err != nil {
		return "", err
	}
	for _, note := range base.s.notes {
		g.Note("%s", note)
	}
	key := g.s.key.Split(g.Name(adapterScope))
	if cfg.Seed != 0 {
		key = key.Split("seed", int(cfg.Seed))
	}
	cfg.Seed = key.Stream().Uint64()
	m, adapters, err := lora.Apply(m, cfg)
	if err != nil {
		return "", err
	}
	if m, err = g.align(m); err != nil {
		return "", err
	}
	p := insertion{m: m, inputs: map[onnx.Value]onnx.Value{in: x}, outputs: []onnx.Value{out}, scope: strings.Join(append(slices.Clone(g.path), adapterScope), "/"), values: base.s.values}
	if g.reuse {
		p.scope = string(g.s.b.Fresh(p.scope + "/again"))
	}
	for _, s := range base.Params() {
		s.Role = models.Base
		p.names, p.specs = append(p.names, s), append(p.specs, s)
	}
	add := func(param, weight, which string) (string, error) {
		v, err := onnx.TensorOf(m.Graph.FindInitializer(param))
		if err != nil {
			return "", err
		}
		full := g.Name(adapterScope + "." + weight + "." + which)
		p.names = append(p.names, models.Spec{Name: param, Shape: v.Shape()})
		p.specs = append(p.specs, models.Spec{Name: full, Shape: v.Shape(), Role: models.Trainable})
		p.values[param] = v
		return full, nil
	}
	for i := range adapters {
		ad := &adapters[i]
		if ad.A, err = add(ad.A, ad.Weight, "A"); err != nil {
			return "", err
		}
		if ad.B, err = add(ad.B, ad.Weight, "B"); err != nil {
			return "", err
		}
		ad.Merged = g.Name(ad.Weight)
	}
	p.renamed = func(f func(onnx.Value) onnx.Value) {
		for i := range adapters {
			for k, y := range adapters[i].Outputs {
				adapters[i].Outputs[k] = string(f(onnx.Value(y)))
			}
		}
	}
	v, err := g.insert(p)
	if err != nil {
		return "", err
	}
	g.record(adapters)
	return v[0], nil
}

// record adds adapters to the network's: one that was used before has further outputs.
func (g *Graph) record(adapters []lora.Adapter) {
	for _, ad := range adapters {
		if i := slices.IndexFunc(g.s.adapters, func(have lora.Adapter) bool { return have.A == ad.A }); i >= 0 {
			g.s.adapters[i].Outputs = append(g.s.adapters[i].Outputs, ad.Outputs...)
			continue
		}
		g.s.adapters = append(g.s.adapters, ad)
	}
}
