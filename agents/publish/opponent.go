package publish

import (
	"context"

	"github.com/onnxrl/onnxrl/agents/served"
	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/envs/versus"
	"github.com/onnxrl/onnxrl/runtime/engine"
)

// Opponent opens the model of a file as a player of a factory's worlds, joined to them as
// [OpenActor] does. It is a versus.Opener.
func Opponent(ctx context.Context, path string, worlds envs.Factory, split envs.Split, c engine.Compiler, rows int) (versus.Policy, error) {
	a, err := OpenActor(ctx, path, worlds, split, c, rows)
	if err != nil {
		return nil, err
	}
	return served.Opponent(a), nil
}
