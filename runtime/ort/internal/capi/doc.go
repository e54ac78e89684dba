// Package capi is the part of ONNX Runtime's C API that onnxruntime_go lacks.
//
// onnxruntime_go loads the library and makes environments, session options,
// sessions, run options and I/O bindings. This package works on those objects'
// handles where the wrapper falls short:
//
//   - tensors of rank 0 and without elements over the caller's memory (refused
//     there), and half-precision or rank-0 tensors that the library allocates
//     (copied wrongly there);
//   - runs of a binding that can be terminated (no run options there), and the
//     error code beside the message;
//   - denormal numbers flushed to zero for the duration of a run, which needs the
//     thread's control register to be set and restored around the C call;
//   - a loop of runs in C, the floor that benchmarks compare with;
//   - types of a session's inputs and outputs without creating a second session;
//   - operators of our own for gradients (kernels.h).
//
// The library hands out its functions as a table that only ever grows at its end,
// so an index identifies a function in every release that serves the API version.
// The indices in table.h are compared by a test with the header of the
// onnxruntime_go module in use; the header itself is neither copied nor included.
//
// Memory. What C reads and writes is off the Go heap, or pinned by package ort for as long as C
// can reach it. Go never stores a pointer into C memory through a pointer type; [Names] says why.
//
// Without cgo the package is empty.
package capi
