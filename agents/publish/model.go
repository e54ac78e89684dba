package publish

import (
	"context"
	"errors"
	"fmt"

	"github.com/onnxrl/onnxrl/agents"
	"github.com/onnxrl/onnxrl/agents/served"
	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/envs/vector"
	"github.com/onnxrl/onnxrl/runtime/engine"
	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/rng"
	"github.com/onnxrl/onnxrl/runtime/tensor"
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
	w := &watched{Actor: a}
	for _, name := range a.Policy().Outputs() {
		if t := a.Policy().Output(name); t.DType() == tensor.Float32 {
			w.outputs = append(w.outputs, output{name, t.Float32s()})
		}
	}
	return w, nil
}

// watched is an actor whose model must not give NaN: the action would still be one, and mean
// nothing.
type watched struct {
	*served.Actor
	outputs []output
}

type output struct {
	name   string
	values []float32
}

// Act implements agents.Actor.
func (w *watched) Act(ctx context.Context, key rng.Key, b *vector.Batch) (*agents.Decision, error) {
	d, err := w.Actor.Act(ctx, key, b)
	if err != nil {
		return nil, err
	}
	for _, o := range w.outputs {
		for i, x := range o.values {
			if x != x {
				return nil, fmt.Errorf("output %q of the model is NaN at element %d", o.name, i)
			}
		}
	}
	return d, nil
}
