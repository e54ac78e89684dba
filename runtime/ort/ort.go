package ort

import (
	"errors"

	"github.com/onnxrl/onnxrl/runtime/ort/library"
)

// Name is the engine's short name.
const Name = "ort"

// ErrUnavailable is matched by the error of [New] if there is no ONNX Runtime to
// use: the program was built without cgo, or no library was found. Another engine
// can take over then. A library that a person named and that is unusable is not
// unavailable but wrong, and does not match.
var ErrUnavailable = errors.New("ONNX Runtime is not available")

// Options of [New].
type Options struct {
	// Library says how to find or install the shared library. It matters to the
	// first successful New of a process only.
	Library library.Options
	// KeepDenormals computes with denormal numbers instead of flushing them to zero.
	KeepDenormals bool
}

// Runtime describes the loaded library.
type Runtime struct {
	Library    library.Found
	Version    string   // what the library says of itself, for instance "1.32.0"
	APIVersion int      // of the C API that is used
	Providers  []string // execution providers built in; this engine uses the CPU
	Build      string   // the library's description of its build
}

// Objects counts objects of ONNX Runtime that exist now.
type Objects struct {
	Sessions, Bindings, Values, RunOptions int
}
