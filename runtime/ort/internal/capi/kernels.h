// Operators of ours for ONNX Runtime: a chain of element-wise operations on float32 as one node, and
// the pooling of images with the indices of what is largest.
#ifndef ONNXRL_CAPI_KERNELS_H
#define ONNXRL_CAPI_KERNELS_H

#include <stddef.h>
#include <stdint.h>

#define ONNXRL_DOMAIN "onnxrl"

// Elementwise: a chain.
#define ONNXRL_ELEMENTWISE "Elementwise"

// The operations of a chain. Each rounds exactly as ONNX Runtime's own node does: none is two roundings that a
// compiler may make one of.
enum {
  ONNXRL_ADD,
  ONNXRL_SUB,
  ONNXRL_MUL,
  ONNXRL_DIV,
  ONNXRL_NEG,
  ONNXRL_ABS,
  ONNXRL_RELU,
  ONNXRL_CLAMP, // to [0, 1]
  ONNXRL_OPS
};

// Bounds of one chain.
enum {
  ONNXRL_MOST_INPUTS = 16,
  ONNXRL_MOST_CONSTANTS = 32,
  ONNXRL_MOST_STEPS = 48,
  ONNXRL_MOST_SLOTS = 12,
  ONNXRL_MOST_RANK = 8
};

// The attributes of a chain.
//
//   shape      the extents of the output
//   extents    two integers for each input, inner and count: element i of the output uses element
//              i / inner % count of the input
//   constants  numbers, at least one
//   steps      four integers for each: an operation, the slot that it writes, and its operands a
//              and b; the last one writes the output instead. An operand is an input, then a
//              constant, then a slot, counted on.

// MaxPool: as ONNX's of images with both outputs, of which the second counts rows first.
#define ONNXRL_MAX_POOL "MaxPool"

// Its attribute "window" has these integers.
enum {
  ONNXRL_PLANES, // images times channels
  ONNXRL_HEIGHT,
  ONNXRL_WIDTH,
  ONNXRL_OUT_HEIGHT,
  ONNXRL_OUT_WIDTH,
  ONNXRL_KERNEL_HEIGHT,
  ONNXRL_KERNEL_WIDTH,
  ONNXRL_STRIDE_HEIGHT,
  ONNXRL_STRIDE_WIDTH,
  ONNXRL_PAD_TOP,
  ONNXRL_PAD_LEFT,
  ONNXRL_DILATION_HEIGHT,
  ONNXRL_DILATION_WIDTH,
  ONNXRL_WINDOW
};
// The attribute "shape" has the four extents of the outputs.

// onnxrl_add_kernels gives session options the domain of the operators.
void *onnxrl_add_kernels(void *options);

#endif
