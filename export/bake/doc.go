// Package bake turns a trained network into one ONNX file that any runtime loads, and proves that the file computes what was trained.
//
// A baked model has the parameters as initializers, adapters merged, a symbolic batch, and its lineage as metadata. [Prove] runs the trained form (parameters as inputs, as the training
// program sees them) and the baked form on recorded inputs at several batch sizes; nothing is published without it. [Write] does both and writes the file atomically, with
// the weights in a second file where protobuf's 2 GiB do not suffice.
//
// To publish another kind of model: make its baked form with models.Network.Bake or models.Reweigh, rewrite that as serving needs it, and pass both forms to Write.
package bake
