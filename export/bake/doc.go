// Package bake turns a trained network into one ONNX file that any runtime loads, and proves that
// the file computes what was trained.
//
// A baked model has the parameters as initializers, adapters merged, a symbolic batch, and its
// lineage as metadata. That of an agent, made by [Agent], also scales its observations itself
// ([Wrapper]), so that it takes them as they come, and imports the oldest opset that expresses it.
//
// [Prove] runs the trained form (parameters as inputs, as the training program sees them) and the
// baked form on recorded inputs ([Pair]) at several batch sizes; nothing is published without it.
// Numbers agree within [Tolerance]; what a policy chooses ([Choice]) is the same wherever it is
// decided by more than [Margin], and how often it is not is reported. [Write] proves, and writes
// the file atomically, with the weights in a second file where protobuf's 2 GiB do not suffice.
//
// # Tolerance
//
// Engines fold and fuse constant weights, which changes the rounding but not the function. The
// largest |Δ| / (1 + |y|) was 5.5e-7 for a market agent on 10,240 recorded observations and 1.5e-6
// for a 4×1024 network, and the models that package fit is tested with pass too, so one tolerance,
// 1e-5, serves all.
//
// # Memory
//
// A model may remember: a recurrent network has states, and [Frames] puts a stack of observations
// inside. Every state is an input and an output, listed with its initial value in the metadata;
// models.States reads the list. A server keeps states apart by sequence. A model that remembers is
// checked over whole episodes: both forms go through the same observations, each with its own
// memory, seven episodes side by side and one alone, and then all rows again at the largest batch
// with the memory that they were met with ([Prover.Add]).
//
// # Between the environment and the network
//
// When the model serves it does what was done to observations and actions in training, as a
// [Wrapper] around the network: [Affine] scales the records of a table and knows those that are
// missing, [Normal] has the running statistics of a run, [Frames] the stack, [Start] has choices
// begin where the environment's do, [Bounds] makes actions those of the environment, and [Simplex]
// makes them weights. The proof compares the network with what it is given in training to the
// model with what comes from outside.
//
// # Several policies
//
// [Router.Compose] joins a router and the experts that it chooses between into one model, with the
// books and masks of envs/meta in the graph: what it remembers are states as any other's. Parts
// that are equal, such as a base that experts share, are stored and computed once.
//
// # Lower precision
//
// [Float16] and [Int8] keep weights in fewer bits, and [Losses] measures what that costs: numbers,
// choices, the divergence of policies, and actions by their range. Measured
// with ONNX Runtime 1.27 on one core at batch 1: float16 halves the file and leaves the time as it
// is; int8 makes the file of a 4×1024 network a quarter and its run 3.6 times as fast, and that of
// a 2×64 network 3.7 times as slow, because its 24 further nodes cost more than the products do.
//
// # Sampling
//
// [Sample] adds an output with a drawn action and an input with the noise that it is drawn with,
// for choices; [SampleGaussian] does for continuous actions. The metadata say of which distribution
// the noise is. Published models have neither: an input that most callers leave out is one that
// many servers ask for all the same.
//
// # How to add another kind of model
//
// Make its baked form with models.Network.Bake or models.Reweigh, rewrite that as serving needs it,
// and pass both forms to Write.
//
// # How to add another preprocessing
//
// Write it as [Normal] is: a [Wrapper] with Validate and the nodes that go in front of an input,
// which keeps its name and place, and Apply, which makes what the network is given of what comes
// from outside, for the proof. Use operators of opset 13.
package bake
