package prove

import (
	"context"
	"errors"

	"github.com/onnxrl/onnxrl/export/serve"
	"github.com/onnxrl/onnxrl/runtime/engine"
	"github.com/onnxrl/onnxrl/runtime/onnx"
)

// Compiler returns an engine like c which has p try every model before c compiles it. A model that
// ends the process that tries it is refused with the [*serve.CrashError]; one that could not be
// tried, for want of memory or of a program, goes on to c. Where ctx ends, so do trials.
func (p *Process) Compiler(ctx context.Context, c engine.Compiler) engine.Compiler {
	return &compiler{c, ctx, p}
}

type compiler struct {
	engine.Compiler
	until   context.Context
	process *Process
}

func (c *compiler) Compile(m *onnx.Model, o engine.Options) (engine.Session, error) {
	crash := new(serve.CrashError)
	err := c.process.Try(c.until, serve.Trial{Model: m, Options: o, Rows: []int{1}})
	switch {
	case errors.As(err, &crash) && !crash.Killed:
		return nil, crash
	case c.until.Err() != nil:
		return nil, c.until.Err()
	}
	return c.Compiler.Compile(m, o)
}
