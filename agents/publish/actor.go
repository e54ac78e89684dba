package publish

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/onnxrl/onnxrl/agents/served"
	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/envs/vector"
	"github.com/onnxrl/onnxrl/export/bake"
	"github.com/onnxrl/onnxrl/runtime/engine"
	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// OpenActor reads a policy from a file and joins it to a factory's environments, for batches of
// that many rows: inputs that the model scales itself are given unscaled, of a stack of
// observations that the model keeps itself the newest, and all others as the environment shows
// them. Errors name both shapes. Close the actor before compiler and factory.
func OpenActor(ctx context.Context, path string, f envs.Factory, split envs.Split, c engine.Compiler, rows int) (*served.Actor, error) {
	p, err := served.Open(ctx, path, c, rows)
	if err != nil {
		return nil, err
	}
	a, err := join(p, f, split, nil)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", path, err), p.Close())
	}
	return a, nil
}

// Opponent is OpenActor for a player of a factory's worlds. It is a versus.Opener.
func Opponent(ctx context.Context, path string, worlds envs.Factory, split envs.Split, c engine.Compiler, rows int) (vector.Policy, error) {
	return OpenActor(ctx, path, worlds, split, c, rows)
}

// NewActor is OpenActor for a model in memory, such as one of an artefact store.
func NewActor(ctx context.Context, m *onnx.Model, f envs.Factory, split envs.Split, c engine.Compiler, rows int) (*served.Actor, error) {
	p, err := served.New(ctx, m, c, rows)
	if err != nil {
		return nil, err
	}
	a, err := join(p, f, split, nil)
	if err != nil {
		return nil, errors.Join(err, p.Close())
	}
	return a, nil
}

// join joins a policy to the environments of a factory. keep, unless nil, opens what is kept of the
// windows of a field.
func join(p *served.Policy, f envs.Factory, split envs.Split, keep func(field string, w *envs.Window) ([]served.Kept, error)) (*served.Actor, error) {
	e, err := f.New(split, 0)
	if err != nil {
		return nil, err
	}
	a, err := newPreprocessing(f, e)
	if err := errors.Join(err, e.Close()); err != nil {
		return nil, err
	}
	o := a.options()
	o.Tables = nil
	if list, ok := p.Meta(bake.MetaScales); ok {
		o.Tables = map[string]*tensor.Tensor{}
		for name := range strings.SplitSeq(list, ",") {
			t := a.Tables[name]
			if t == nil {
				return nil, fmt.Errorf("the model scales its input %q itself, and this environment does not say what it is unscaled", name)
			}
			o.Tables[name] = t
		}
	}
	if keep == nil {
		return served.NewActor(p, a.spec, o)
	}
	for _, field := range a.spec.Observation {
		if w := field.Window; w != nil {
			if t := o.Tables[field.Name]; t != nil {
				if w, err = envs.NewWindow(t, w.Len()); err != nil {
					return nil, err
				}
			}
			kept, err := keep(field.Name, w)
			if err != nil {
				return nil, err
			}
			o.Kept = append(o.Kept, kept...)
		}
	}
	return served.NewActor(p, a.spec, o)
}
