//go:build cgo

package floor

import (
	"fmt"

	"onnxrl/runtime/engine"
	"onnxrl/runtime/ort/internal/capi"
)

// Runs executes a binding of the ort engine len(ns) times in a C loop, and stores
// in ns what each run took in nanoseconds, reading the clock (some tens of
// nanoseconds) included. The binding must not be used meanwhile.
func Runs(b engine.Binding, ns []int64) error {
	n, ok := b.(interface {
		Native() (session, binding capi.Handle, flush, ok bool)
	})
	if !ok {
		return fmt.Errorf("measure floor: %w", ErrForeign)
	}
	session, binding, flush, open := n.Native()
	if !open {
		return fmt.Errorf("measure floor: %w", engine.ErrClosed)
	}
	if err := capi.Floor(session, binding, flush, ns); err != nil {
		return fmt.Errorf("measure floor: %w", err)
	}
	return nil
}
