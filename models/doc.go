// Package models joins graphs and parameters.
//
// A [Network] is an ONNX graph whose floating-point parameters have been turned from initializers into graph inputs, so that one compiled session survives every
// update of the weights (design decision D2). [Params] holds the parameters' values: an ordered list of [Segment]s, each one contiguous off-heap arena with one
// [Role] — trainable, frozen (and then shareable between networks), or buffer (running statistics). Every parameter is a named view, aligned to 64 bytes. Gradients
// and optimiser moments use the layout of the segment they belong to, so clipping, updating and averaging are loops over flat slices.
//
// # Which initializers are parameters
//
// ONNX does not tell weights from other constants. [FromModel] takes as parameters all float32 initializers but scalars and values named like an exporter's constants;
// the running mean and variance of BatchNormalization become buffers. Patterns override the choice. Initializers of other types stay in the graph.
//
// # How to add a kind of network
//
// Build any ONNX model, with runtime/onnx's Builder or by loading a file, and pass it to FromModel. Nothing else needs to know about the architecture.
package models
