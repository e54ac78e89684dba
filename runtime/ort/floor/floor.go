// Package floor measures how fast a model runs without Go: ONNX Runtime's C API
// called in a C loop. Benchmarks compare the engine with it, in the same process
// and on the same buffers.
package floor

import "errors"

// ErrForeign is returned for bindings of another engine.
var ErrForeign = errors.New("not a binding of the ort engine")
