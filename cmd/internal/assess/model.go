package assess

import (
	"context"
	"errors"
	"path/filepath"

	"onnxrl/agents"
	"onnxrl/agents/served"
	"onnxrl/envs"
	"onnxrl/envs/market/trading"
	"onnxrl/runtime/engine"
	"onnxrl/runtime/onnx"
	"onnxrl/runtime/tensor"
)

// Model makes actors of an exported policy for the environments of a spec. It is an evaluate.Actors.
type Model struct {
	open   func(rows int) (*served.Policy, error)
	spec   envs.Spec
	tables map[string]*tensor.Tensor
}

// ModelFile returns the actors of an ONNX file, and ModelOf those of a model in memory. The model takes observations as they come, before any scaling: d, unless nil, says how those of the environment were scaled.
func ModelFile(ctx context.Context, path string, c engine.Compiler, spec envs.Spec, d *trading.Data) *Model {
	return &Model{func(rows int) (*served.Policy, error) { return served.Open(ctx, filepath.Clean(path), c, rows) }, spec, unscaled(d)}
}

// ModelOf is ModelFile for a model in memory.
func ModelOf(ctx context.Context, m *onnx.Model, c engine.Compiler, spec envs.Spec, d *trading.Data) *Model {
	return &Model{func(rows int) (*served.Policy, error) { return served.New(ctx, m, c, rows) }, spec, unscaled(d)}
}

// NewActor implements evaluate.Actors.
func (m *Model) NewActor(mode agents.Mode, n int) (agents.Actor, error) {
	if mode != agents.Greedy {
		return nil, errors.New("an exported model takes the best action; to draw actions (eval.deterministic: false), evaluate a run directory that has checkpoints")
	}
	p, err := m.open(n)
	if err != nil {
		return nil, err
	}
	a, err := served.NewActor(p, m.spec, served.Options{Tables: m.tables})
	if err != nil {
		return nil, errors.Join(err, p.Close())
	}
	return a, nil
}

// unscaled returns the table of features before they were scaled, x = z·std + mean, for the model to scale again. What was clipped stays at its limit, and what was unknown, and 0 after scaling, becomes the mean, which is 0 again after scaling.
func unscaled(d *trading.Data) map[string]*tensor.Tensor {
	if d == nil || d.Scales == nil {
		return nil
	}
	m := d.Market
	f := len(m.Features)
	x := make([]float32, len(m.X))
	for i, z := range m.X {
		if s := d.Scales[i%f]; s.Scaled {
			z = float32(float64(z)*s.Std + s.Mean)
		}
		x[i] = z
	}
	return map[string]*tensor.Tensor{trading.WindowField: tensor.Of(x, m.Len(), len(m.Assets), f)}
}
