// Package fit trains any ONNX model on a table: the library behind onnxrl fit.
//
// [New] puts a model together with losses, roles of parameters, adapters and data; [Trainer.Run] trains, validates, checkpoints and stops; the trained network and parameters are in the
// trainer, from where export/bake writes an ONNX file. A run is a pure function of model, data and configuration: it can be stopped after any optimiser step and resumed with
// bit-identical results, because every random choice is derived from the seed and the position.
//
// Forward, loss and gradient are one program per batch size; the last partial batch of an epoch has a program of its own, so it is weighted by its true number of rows.
package fit
