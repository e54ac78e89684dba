// Package loss appends supervised losses to a model as ONNX nodes.
//
// [Attach] adds, for each [Term], an input for the targets and the nodes of the loss, and one input
// [WeightInput] of one weight per sample. The output [Output] is Σ over samples of weight · loss,
// so the caller decides between a mean (every weight 1/batch), a sum, padding (weight 0) and
// importance weights, and a batch may be split over shards or accumulated over several runs without
// changing the result.
//
// Conventions are PyTorch's: a sample's loss is the mean over its elements, cross-entropy takes
// logits with classes on axis 1, and "bce" takes probabilities while "bce_logits" takes logits.
//
// To add a loss: write one function in loss_<name>.go returning the loss of every sample, and add
// one line to kinds.
package loss
