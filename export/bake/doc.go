// Package bake turns a trained network into one ONNX file that any runtime loads, and proves that the file computes what was trained.
//
// A baked model has the parameters as initializers, adapters merged, a symbolic batch, and its lineage as metadata. [Prove] runs the trained form (parameters as inputs, as the training
// program sees them) and the baked form on recorded inputs at several batch sizes; nothing is published without it. [Write] does both and writes the file atomically.
package bake
