// Package enginetest is the suite that every engine passes. An engine's test
// calls [Run] with a way to open the engine and a statement of what it can do.
//
// To add a case: write a function on *suite in the file of its subject, and name
// it in the table of Run. A case may rely on nothing but package engine's
// contract; what only one engine promises belongs into that engine's own tests.
package enginetest

import (
	"testing"

	"github.com/onnxrl/onnxrl/runtime/engine"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// Config states what an engine can do.
type Config struct {
	// Open returns a new engine. The suite closes it.
	Open func(t *testing.T) engine.Compiler
	// DTypes lists the element types that the engine moves through an Identity. For
	// every other type of ONNX the engine must refuse to compile with an
	// [engine.UnsupportedError].
	DTypes []tensor.DType
	// Interrupts says that the engine ends a run between two nodes when its context
	// ends. Without it, only contexts that ended before are tried.
	Interrupts bool
}

type suite struct {
	Config
}

// cases is how many cases Run has; it fails if it ran another number.
const cases = 24

// Run runs the suite.
func Run(t *testing.T, c Config) {
	s := &suite{c}
	table := []struct {
		name string
		run  func(*suite, *testing.T)
	}{
		{"Ports", (*suite).ports},
		{"DTypes", (*suite).dtypes},
		{"Shapes", (*suite).shapes},
		{"Policy", (*suite).policy},
		{"Initializers", (*suite).initializers},
		{"Wiring", (*suite).wiring},
		{"Subgraphs", (*suite).subgraphs},
		{"PassedValues", (*suite).passedValues},
		{"PassedConstants", (*suite).passedConstants},
		{"OutputsInPlace", (*suite).outputsInPlace},
		{"OptLevels", (*suite).optLevels},
		{"ModelIsNotChanged", (*suite).modelIsNotChanged},
		{"BindingIsZeroCopy", (*suite).bindingIsZeroCopy},
		{"BindingHoldsMemory", (*suite).bindingHoldsMemory},
		{"BindingDoesNotAllocate", (*suite).bindingDoesNotAllocate},
		{"ConcurrentRuns", (*suite).concurrentRuns},
		{"Cancellation", (*suite).cancellation},
		{"InputErrors", (*suite).inputErrors},
		{"CompileErrors", (*suite).compileErrors},
		{"RunErrors", (*suite).runErrors},
		{"Labels", (*suite).labels},
		{"Division", (*suite).division},
		{"Extremes", (*suite).extremes},
		{"Closed", (*suite).closed},
	}
	ran := 0
	for _, c := range table {
		t.Run(c.name, func(t *testing.T) {
			ran++
			c.run(s, t)
		})
	}
	if ran != cases {
		t.Errorf("%d cases ran, expected %d (is a -run filter at work?)", ran, cases)
	}
}

// open returns an engine that is closed, without complaint, after the test.
func (s *suite) open(t *testing.T) engine.Compiler {
	t.Helper()
	e := s.Open(t)
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Errorf("close engine: %v", err)
		}
	})
	return e
}
