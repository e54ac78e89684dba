package enginetest

import (
	"errors"
	"testing"

	"github.com/onnxrl/onnxrl/runtime/engine"
)

// Shared returns the configuration of an engine whose sessions are shared ([engine.Share]), which
// has to do the same.
func Shared(c Config) Config {
	open := c.Open
	c.Open = func(t *testing.T) engine.Compiler {
		e := open(t)
		return &owner{engine.Share(e, 4), e}
	}
	return c
}

// owner closes the engine with its shared sessions.
type owner struct {
	*engine.Shared
	of engine.Compiler
}

func (o *owner) Close() error { return errors.Join(o.Shared.Close(), o.of.Close()) }
