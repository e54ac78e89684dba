// Package pretrain trains an encoder on windows of bars before agents do: by what followed them, in
// the training range alone.
//
// # What is learnt
//
// The document is that of package fit without its data: a network of an encoder and linear layers
// whose outputs are called after what they foresee.
//
//	horizon: 5
//	stride: 5
//	fit:
//	  network: {encoder: {kind: timesnet, d_model: 32}, outputs: {volatility: 1, returns: 5}}
//	  loss: [{output: volatility, kind: mse}, {output: returns, kind: mse, weight: 100}]
//
// Windows are those that the environment shows, asset by asset, as its [Windowed] factory writes
// them. Outputs may be volatility, the logarithm of the root mean square of the next returns;
// return, their sum; and returns, themselves. The layers are left behind: agents take the value
// features of what is written,
//
//	agent: {encoder: {kind: file, path: encoder.onnx, output: features}}
//
// and adapt it (agent.lora) or keep it as it is (freeze).
//
// # A directory
//
//	windows.parquet   the table, removed when the encoder is written
//	fit/              the run directory, from which a pretraining goes on that was stopped
//	encoder.onnx      the encoder, proved equal to what was trained
//	artifacts/        the store that it is a version in, which agents name among their parents
//
// # How to add a target
//
// A column of what [Windowed] factories write, such as agents/trader by prepared.Set.WriteWindows, and
// a line in targets.
package pretrain
