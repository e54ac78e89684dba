//go:build cgo

package capi

/*
#cgo noescape onnxrl_run_bound
#cgo nocallback onnxrl_run_bound
#cgo noescape onnxrl_run
#cgo nocallback onnxrl_run
#include "shim.h"
*/
import "C"

import "unsafe"

// Call is one run with values that live only as long. It is reused: Reset, add
// the inputs, then the outputs, Run. It is not safe for concurrent use.
type Call struct {
	tensors []C.onnxrl_tensor
	dims    []C.int64_t
	values  []unsafe.Pointer
}

// Reset forgets the tensors and keeps the memory.
func (c *Call) Reset() {
	c.tensors, c.dims, c.values = c.tensors[:0], c.dims[:0], c.values[:0]
}

// Add appends a tensor over memory that the caller has pinned.
func (c *Call) Add(data unsafe.Pointer, bytes int, shape []int, dtype int32) {
	c.tensors = append(c.tensors, C.onnxrl_tensor{
		data: C.uintptr_t(uintptr(data)), bytes: C.size_t(bytes), dtype: C.int32_t(dtype), rank: C.int32_t(len(shape)),
	})
	for _, d := range shape {
		c.dims = append(c.dims, C.int64_t(d))
	}
	c.values = append(c.values, nil)
}

// AddValue appends a value that the caller made and keeps.
func (c *Call) AddValue(value Handle) {
	c.tensors = append(c.tensors, C.onnxrl_tensor{dtype: -1})
	c.values = append(c.values, value)
}

// AddAllocated appends an output that ONNX Runtime allocates. After a successful
// run, [Call.Value] returns it, and the caller must release it.
func (c *Call) AddAllocated() {
	c.tensors = append(c.tensors, C.onnxrl_tensor{})
	c.values = append(c.values, nil)
}

// Value returns the i-th value, counted over inputs and outputs.
func (c *Call) Value(i int) Handle { return c.values[i] }

// Run executes a session. runOptions may be nil. flush makes denormal numbers
// zero during the run.
func (c *Call) Run(session, runOptions, memory Handle, in, out Names, flush bool) error {
	return check(C.onnxrl_run(session, runOptions, memory, in.list(), out.list(),
		unsafe.SliceData(c.tensors), unsafe.SliceData(c.dims), C.size_t(in.n), C.size_t(out.n),
		unsafe.SliceData(c.values), flag(flush)))
}

// RunBound executes a session on a binding. It does not allocate unless it fails.
func RunBound(session, binding Handle, flush bool) error {
	return check(C.onnxrl_run_bound(session, nil, binding, flag(flush)))
}

// Floor executes a binding len(ns) times in a C loop, and stores what each run
// took in nanoseconds.
func Floor(session, binding Handle, flush bool, ns []int64) error {
	return check(C.onnxrl_floor(session, binding, flag(flush), (*C.int64_t)(unsafe.SliceData(ns)), C.size_t(len(ns))))
}

// Port is what a session says of one of its inputs or outputs.
type Port struct {
	IsTensor bool
	DType    int32
	// Dims has -1 for a free extent. It is empty both for rank 0 and for an unknown
	// rank, which this part of the API does not tell apart.
	Dims []int64
}

// PortCount returns the number of inputs or outputs.
func PortCount(session Handle, output bool) (int, error) {
	var n C.size_t
	err := check(C.onnxrl_port_count(session, flag(output), &n))
	return int(n), err
}

// PortAt describes one input or output.
func PortAt(session Handle, output bool, i int) (Port, error) {
	var kind, dtype C.int32_t
	var buf [maxRank]C.int64_t
	var rank C.size_t
	if err := check(C.onnxrl_port(session, flag(output), C.size_t(i), &kind, &dtype, &buf[0], maxRank, &rank)); err != nil {
		return Port{}, err
	}
	const tensor = 1 // ONNX_TYPE_TENSOR
	dims, err := extents(&buf, rank)
	return Port{IsTensor: kind == tensor, DType: int32(dtype), Dims: dims}, err
}
