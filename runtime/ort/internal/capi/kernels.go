//go:build cgo

package capi

// #include "kernels.h"
import "C"

// FusedOp is an operation of a chain, see kernels.h.
type FusedOp int

// The operations.
const (
	FusedAdd   FusedOp = C.ONNXRL_ADD
	FusedSub   FusedOp = C.ONNXRL_SUB
	FusedMul   FusedOp = C.ONNXRL_MUL
	FusedDiv   FusedOp = C.ONNXRL_DIV
	FusedNeg   FusedOp = C.ONNXRL_NEG
	FusedAbs   FusedOp = C.ONNXRL_ABS
	FusedRelu  FusedOp = C.ONNXRL_RELU
	FusedClamp FusedOp = C.ONNXRL_CLAMP
)

// Domain is that of the operators; FusedName and MaxPoolName are theirs, and the others the bounds
// of a chain.
const (
	Domain         = C.ONNXRL_DOMAIN
	FusedName      = C.ONNXRL_ELEMENTWISE
	FusedInputs    = C.ONNXRL_MOST_INPUTS
	FusedConstants = C.ONNXRL_MOST_CONSTANTS
	FusedSteps     = C.ONNXRL_MOST_STEPS
	FusedSlots     = C.ONNXRL_MOST_SLOTS
	FusedRank      = C.ONNXRL_MOST_RANK
	MaxPoolName    = C.ONNXRL_MAX_POOL
)

// AddKernels gives session options the operators.
func AddKernels(options Handle) error { return check(C.onnxrl_add_kernels(options)) }
