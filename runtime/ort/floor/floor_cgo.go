//go:build cgo

package floor

import (
	"fmt"

	"github.com/onnxrl/onnxrl/runtime/engine"
)

// Runs executes a binding of the ort engine len(ns) times in a C loop, and stores
// in ns what each run took in nanoseconds, reading the clock (some tens of
// nanoseconds) included. The binding must not be used meanwhile.
func Runs(b engine.Binding, ns []int64) error {
	n, ok := b.(interface{ Floor(ns []int64) error })
	if !ok {
		return fmt.Errorf("measure floor: %w", ErrForeign)
	}
	if err := n.Floor(ns); err != nil {
		return fmt.Errorf("measure floor: %w", err)
	}
	return nil
}
