// Package trainmode turns BatchNormalization and Dropout into their training form and back as graph
// rewrites, and says what a model holds of them.
//
// Exporters usually write models in evaluation form: BatchNormalization uses its running statistics
// and Dropout passes its input through, or both are folded into neighbouring layers and gone.
// [Find] names what is there; [Apply] makes BatchNormalization use the statistics of the batch and
// update the running ones, and makes Dropout multiply by a mask that is an input of the graph,
// because randomness is drawn in Go from a named stream (design decision D5). [Evaluation] is the
// way back, for models that were exported in training form: what is served and validated must not
// depend on the batch or on chance.
//
// Deviation from PyTorch: ONNX (BatchNormalization-15) updates the running variance with the biased
// variance of the batch, divided by n; PyTorch with the unbiased one, divided by n − 1. The loss
// and its gradient do not depend on it.
//
// To add a layer that behaves differently in training: name its operator in isLayer, say in
// isTraining how its form is recognised, and rewrite it in Evaluation and Apply.
package trainmode
