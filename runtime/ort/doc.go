// Package ort executes models with ONNX Runtime. It is the only part of the
// program that needs cgo; without cgo it builds, and [New] says
// [ErrUnavailable].
//
// # Parts
//
// [New] finds the shared library (sub-package library), loads it once per process
// and returns an [engine.Compiler]. The github.com/yalue/onnxruntime_go module
// loads the library and makes the environment, session options, sessions, run
// options and bindings. internal/capi holds the few calls that the module lacks;
// its package comment lists them. Sub-package floor measures runs in a C loop, the
// yardstick of the benchmarks.
//
// # Memory
//
// Nothing is copied on the way in or out: ONNX Runtime reads and writes the
// tensors' own memory. Arena memory lies outside the Go heap and is retained while
// C may look at it; Go memory is pinned for as long. Strings, and outputs whose
// shape only the run knows, are the exceptions: they are copied, once.
//
// A pointer that Go stores into memory of C goes through the collector's write barrier,
// which also reports the word that was there before. Memory that C freed may hold the
// address of a Go object of long ago, and the heap is corrupt. So memory for C comes
// zeroed (calloc), addresses in it are written as uintptr, and a test of the layout finds
// stores that do otherwise.
//
// With the build tag ortguard every tensor that C sees is a copy between guard pages,
// with canaries around it, compared after the run. An access beyond a tensor, or a write
// to an input, ends the process and names the value. .ci/stress runs the runtime's suites
// so, and all that use ONNX Runtime with a collector that never rests.
//
// A session copies its initializers while it is made, so they may change
// afterwards without effect: parameters that change are inputs (design decision
// D2).
//
// # Threads and numbers
//
// A run executes on the calling thread, and with one thread (the default) only
// there; workers of a larger [engine.Options.Threads] do not spin. Results are
// reproducible for one machine, release, optimisation level and thread count.
//
// Denormal numbers are flushed to zero during a run, because arithmetic on them is
// about ten times slower; [Options.KeepDenormals] turns that off. The calling
// thread's floating-point mode is restored before the call returns.
//
// # Operators of our own
//
// With [engine.Options.Training] a session has operators that internal/capi implements in C. Chains
// of element-wise nodes become one node each. A third of the nodes of a small gradient do little
// more than cost ONNX Runtime its microsecond, and those of a large one are passes through memory.
// Ours also take max pools whose indices the gradient needs. The plain graph stays what is exported
// and what other engines run, and the oracle: both give the same bits, so a chain has only
// operations that round exactly. Exponentials and sums, which ONNX Runtime computes in its own
// ways, stay its. To add an operator, write it as elementwise.c and maxpool.c are written, name it
// in kernels.c, and put it in the place of nodes as fuse.go and maxpool.go do.
//
// # Errors
//
// An operator or a type that ONNX Runtime does not know is an
// [engine.UnsupportedError], any other refusal of a model a [ModelError], a
// failure during a run an [engine.RunError]. All keep ONNX Runtime's words, and the
// node's name where it gives one. ONNX Runtime itself writes nothing to the
// standard error.
//
// # How to add a call of the C API
//
// Look whether onnxruntime_go has it; it usually has. If not, add the function's name and
// index to the table of internal/capi/table.h (TestFunctionTable compares it with the
// header). Then add a C function that calls it, and a Go function that turns its status
// into an error. Objects that it makes are counted, so that [Live] tells whether they are
// freed.
package ort
