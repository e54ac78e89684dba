package publish

import (
	"context"

	"github.com/onnxrl/onnxrl/agents/served"
	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/envs/meta"
	"github.com/onnxrl/onnxrl/runtime/engine"
)

// Expert is a meta.Opener: the model of a file as an expert in a factory's environments, joined to
// them as [OpenActor] does.
func Expert(ctx context.Context, path string, f envs.Factory, split envs.Split, c engine.Compiler) (meta.Policy, error) {
	a, err := OpenActor(ctx, path, f, split, c, 1)
	if err != nil {
		return nil, err
	}
	return served.Expert(a), nil
}
