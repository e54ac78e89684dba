// Package corebench measures what everything else stands on: how fast a policy answers, how fast a
// network learns, and how far both are from what the hardware and ONNX Runtime allow. It is the
// library of `onnxrl-bench core`.
//
// # Rows
//
// A [Row] compares a value with a reference that is measured in the same process, and, where the
// ratio has a target, says whether it is met. The two sides take turns in short rounds, first the
// one and then the other. The ratio is the median of the ratios of the rounds, so that whatever
// else the machine does meets both alike. On a busy machine single ratios still wander by some per
// cent: run again before believing a miss. Durations are medians over the rounds as well.
//
// The references are
//
//   - for the latency of a policy, ONNX Runtime's C API called in a C loop on the same buffers
//     (package runtime/ort/floor);
//   - for a training step, the bare matrix products that any implementation must do: one session
//     with a single Gemm, MatMul or Conv node per product of the forward pass, of the input
//     gradients and of the weight gradients ([Products] says exactly which);
//   - for a data-parallel step, the same step on one core;
//   - for Adam, a copy that moves as many bytes; for importing and for memory, fixed bounds.
//
// A training step is one run of the program (forward, loss, gradients), clipping by the global
// norm, and Adam.
//
// # How to add a row
//
// Write a function that returns rows, measure both sides with [alternate], and add it to the table
// in [benchmarks]. A network that PyTorch is to be compared on also needs its twin in
// cmd/peers/core_torch.py under the same name.
package corebench
