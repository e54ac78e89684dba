//go:build !cgo

package floor

import (
	"fmt"

	"github.com/onnxrl/onnxrl/runtime/engine"
)

// Runs returns [ErrForeign]: without cgo there are no bindings of that engine.
func Runs(b engine.Binding, ns []int64) error { return fmt.Errorf("measure floor: %w", ErrForeign) }
