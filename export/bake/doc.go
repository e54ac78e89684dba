// Package bake turns a trained network into one ONNX file that any runtime loads, and proves that the file computes what was trained.
//
// A baked model has the parameters as initializers, adapters merged, a symbolic batch, and its lineage as metadata. That of an agent, made by [Agent], also scales its observations itself ([Affine]), so that it takes them as they come, and imports the oldest opset that expresses it.
//
// [Prove] runs the trained form (parameters as inputs, as the training program sees them) and the baked form on recorded inputs ([Pair]) at several batch sizes; nothing is published without it. Numbers agree within [Tolerance]; what a policy chooses ([Choice]) is the same wherever
// it is decided by more than [Margin], and how often it is not is reported. [Write] proves, and writes the file atomically, with the weights in a second file where protobuf's 2 GiB do not suffice.
//
// # How to add another kind of model
//
// Make its baked form with models.Network.Bake or models.Reweigh, rewrite that as serving needs it, and pass both forms to Write.
//
// # How to add another preprocessing
//
// Write it as [Affine] is: a value with Validate and the nodes that go in front of an input, which keeps its name and place, and the inverse, which makes raw samples of recorded ones for the proof. Use operators of opset 13.
package bake
