// Package fit trains any ONNX model on a table: the library behind onnxrl fit.
//
// [New] puts a model together with losses, roles of parameters, adapters and data; [Trainer.Run]
// trains, validates, checkpoints and stops; [Trainer.Baked] returns the file's own graph with the
// trained weights. A run is a pure function of model, data and configuration. It can be stopped
// after any optimiser step and resumed with bit-identical results, because every random choice is
// derived from the seed and the position.
//
// # One step
//
// Forward, loss and gradient are one compiled program per batch size: one for the configured size
// and one for what is left at the end of an epoch. The loss is Σ weight · loss per sample with
// weights of 1/rows, where rows counts all rows of the step. So the last partial batch, accumulated
// batches and shards add up to exactly the mean that one large batch has. The optimiser then
// updates the trainable segment in place.
//
// # All rows at once
//
// With Config.FullBatch the loss and gradient over all rows, summed batch by batch in the order of
// the table, are what package fullbatch minimises until it converges. A step is a major iteration.
// What would make the loss another function at every call is refused: training forms of dropout
// and BatchNormalization, and operators that draw. A checkpoint holds what brings gonum's methods
// to where they were: see package fullbatch.
//
// # The model
//
// Training works on a rewritten model: functions inlined, opset raised to what autodiff
// understands, the batch a symbol. The written file is the one that came in, with other
// weights. Layers are trained in the form in which the file has them unless TrainMode is set;
// see models.TrainingForm. Which tensors are weights is decided by package models, and whatever
// was decided is logged.
//
// A [Network] of the configuration stands for a file: an encoder that begins with initial values,
// to be pretrained on windows, and linear layers over its features.
//
// # How to add
//
// A loss: package loss. An optimiser or a schedule: package optim; a full-batch
// method: package fullbatch. A file format: package dataset.
// A setting: a field of [Config] with its check in Validate, and a flag in cmd/app if it is used
// often.
package fit
