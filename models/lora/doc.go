// Package lora adds low-rank adapters to any ONNX model as a graph rewrite, and merges them back.
//
// For every MatMul, Gemm or Conv whose weight W is an initializer, directly or through the
// Transpose or Identity that exporters put between, and whose weight or node name matches a target
// pattern, [Apply] adds two small initializers A and B and the nodes that compute y + (α/r)·(x·A)·B
// beside y = x·W. B starts at zero, so the rewritten model computes exactly what the original did.
// A weight that is split, padded or summed before a layer reads it is given the product itself, W +
// (α/r)·B·A, in the graph; constants are never adapted. The base weights are then frozen and only
// the adapters are trained. [Merge] folds every adapter into its weight, W + (α/r)·A·B, and
// restores the graph's original structure.
//
// Source: Hu et al., "LoRA: Low-Rank Adaptation of Large Language Models", 2021, section 4.1. For
// convolutions A is a convolution with the layer's own kernel, strides, pads and dilations and r
// output channels per group, and B a 1×1 convolution. Deviation: no dropout on the adapter's input.
//
// ONNX Runtime's own adapters at run time (OrtLoraAdapter) are not used: onnxruntime_go 1.27.0 does
// not offer them, and adapters that are inputs of the graph are switched without them.
package lora
