// Package models joins graphs and parameters.
//
// A [Network] is an ONNX graph whose floating-point parameters have been turned from initializers
// into graph inputs, so that one compiled session survives every update of the weights (design
// decision D2). [Params] holds the parameters' values: an ordered list of [Segment]s, each one
// contiguous off-heap arena with one [Role] — trainable, frozen (and then shareable between
// networks), or buffer (running statistics). Every parameter is a named view, aligned to 64 bytes.
// Gradients and optimiser moments use the layout of the segment they belong to, so clipping,
// updating and averaging are loops over flat slices.
//
// # Which initializers are parameters
//
// ONNX does not tell weights from other constants. [FromModel] takes as parameters the float32
// initializers of the main graph, except
//
//   - tensors that nothing uses;
//   - inputs that configure an operator, such as the bounds of Clip or the scales of Resize;
//   - tensors named like a literal ("Constant_3"), and tensors with a name that an exporter made up
//     ("val_71", "onnx::Add_12") of which only element-wise operators make use. These are folded
//     scales and masks far more often than weights, while made-up names at matrix products are
//     transposed weights;
//   - additive masks: tensors with infinities or numbers of that size that only element-wise
//     operators use;
//   - scalars with a made-up name, scalars that fill masked places, and epsilons: positive scalars
//     up to 1e-4 that are only added. Other scalars are parameters: temperatures, gates, scales of
//     logits;
//   - buffers, as far as they can be told: what PyTorch's exporter has marked as one, tables of
//     sines and cosines, progressions such as positions and frequencies, and triangular masks.
//
// [Network.Constants] and [Network.Buffers] list what was left out, and a training pattern that is
// the exact name of a tensor overrules all of this. The running mean and variance of
// BatchNormalization become buffers. Initializers of other types, of sub-graphs and of functions,
// and the values of Constant nodes stay in the graph.
//
// # What a model remembers
//
// A [State] goes from one step of an episode to the next, such as that of an LSTM or the last frames of
// a stack. Every state is an input and an output of the graph. A served model lists them with their
// initial values in its metadata, under [StateKey]; [States] reads the list and [AddStates] writes it. A
// policy network in training has none of that: its states are recognised by their names and begin with
// 0, which [NamedStates] finds.
//
// # How to add what a state can be
//
// Add a field to [State] that old lists may lack, and teach it to whoever feeds states:
// agents/served, export/bake, export/serve and the class of export/format/python.
//
// # Layers that train differently
//
// BatchNormalization and Dropout have a training form and an evaluation form, and are rewritten from one
// to the other. Exporters usually write models in evaluation form: BatchNormalization uses its running statistics
// and Dropout passes its input through, or both are folded into neighbouring layers and gone.
// [ModeLayers] names what is there; [TrainingForm] makes BatchNormalization use the statistics of the
// batch and update the running ones, and makes Dropout multiply by a mask that is an input of the graph,
// because randomness is drawn in Go from a named stream (design decision D5). [EvaluationForm] is the
// way back, for models that were exported in training form: what is served and validated must not
// depend on the batch or on chance.
//
// Deviation from PyTorch: ONNX (BatchNormalization-15) updates the running variance with the biased
// variance of the batch, divided by n; PyTorch with the unbiased one, divided by n − 1. The loss
// and its gradient do not depend on it.
//
// To add a layer that behaves differently in training: name its operator in isLayer, say in
// isTraining how its form is recognised, and rewrite it in EvaluationForm and TrainingForm.
//
// # How to add a kind of network
//
// Build any ONNX model, with runtime/onnx's Builder or by loading a file, and pass it to FromModel.
// Nothing else needs to know about the architecture.
package models
