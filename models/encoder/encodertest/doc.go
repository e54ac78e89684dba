// Package encodertest is the suite that every encoder passes: the contract of package encoder, as
// code.
//
// Run builds an encoder for observations of several shapes and checks, on every engine it is given,
// that
//
//   - the features are float32 [batch, D] or [batch, N, D], finite, the same on all engines, and
//     the model is valid ONNX;
//   - rows of a batch do not see each other: a row alone, and rows in another order, give the same
//     features; nor do assets;
//   - the gradient with respect to every parameter and to the observation agrees with differences;
//   - initial values depend on the seed and the parameter's name alone, and have the moments that
//     their initialisation promises;
//   - dropout masks of ones change nothing, and other masks something;
//   - a Sequencer that says it is causal is: changing what comes later leaves features bit for bit
//     as they were;
//   - a Sharer gives for every window what the window gives alone, and the same gradients.
//
// Torch compares features and gradients with those that PyTorch computed.
//
// Both count what they compared. To test a new encoder, call Run with its smallest configuration,
// smooth activations, and shapes of each rank that it takes.
package encodertest
