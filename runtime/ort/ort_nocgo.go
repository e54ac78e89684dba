//go:build !cgo

package ort

import (
	"context"
	"fmt"

	"github.com/onnxrl/onnxrl/runtime/engine"
)

func errNoCgo() error { return fmt.Errorf("%w: this program was built without cgo", ErrUnavailable) }

// New returns an error matching [ErrUnavailable].
func New(ctx context.Context, o Options) (engine.Compiler, error) { return nil, errNoCgo() }

// Info returns an error matching [ErrUnavailable].
func Info() (Runtime, error) { return Runtime{}, errNoCgo() }

// Live returns zeros.
func Live() Objects { return Objects{} }
