package publish

import (
	"context"
	"errors"

	"github.com/onnxrl/onnxrl/agents"
	"github.com/onnxrl/onnxrl/agents/served"
	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/runtime/engine"
	"github.com/onnxrl/onnxrl/runtime/onnx"
)

// Model makes actors of an exported policy. It is an evaluate.Actors.
type Model struct {
	open func(rows int) (*served.Actor, error)
}

// ModelFile returns the actors of an ONNX file for a factory's environments, and ModelOf those of a
// model in memory. A model that scales its inputs itself gets them as they are before scaling.
func ModelFile(ctx context.Context, path string, c engine.Compiler, f envs.Factory, split envs.Split) *Model {
	return &Model{func(rows int) (*served.Actor, error) { return OpenActor(ctx, path, f, split, c, rows) }}
}

// ModelOf is ModelFile for a model in memory.
func ModelOf(ctx context.Context, m *onnx.Model, c engine.Compiler, f envs.Factory, split envs.Split) *Model {
	return &Model{func(rows int) (*served.Actor, error) { return NewActor(ctx, m, f, split, c, rows) }}
}

// NewActor implements evaluate.Actors.
func (m *Model) NewActor(mode agents.Mode, n int) (agents.Actor, error) {
	if mode != agents.Greedy {
		return nil, errors.New("an exported model takes the best action; to draw actions (eval.deterministic: false), evaluate a run directory that has checkpoints")
	}
	a, err := m.open(n)
	if err != nil {
		return nil, err
	}
	return a, nil
}
