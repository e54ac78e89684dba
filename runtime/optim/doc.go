// Package optim updates float32 parameters in place from their gradients.
//
// # Concepts
//
//   - A [Group] is a range of parameters with the gradients of the same range
//     and its own learning rate and decay. Parameters live in one arena and
//     gradients in another of the same layout; Group.Offset is the position in
//     that layout. Elements outside every group are never touched.
//   - An [Optimizer] performs one step over all groups in one fused pass. Its
//     state (moments) has the layout of the arena as well, so that regrouping
//     parameters between steps, for instance by editing the decay patterns of a
//     population member, keeps every moment with its parameter.
//   - A [Config] names an optimiser and its hyper-parameters; [Groups] splits a
//     list of named parameters into groups as the Config says.
//   - A [Schedule] maps a step to a value, for the learning rate or anything
//     else; [SetLR] writes it into the groups.
//   - [ClipGlobalNorm] computes a norm and leaves a factor in the groups that
//     the optimiser multiplies into the gradient on its own pass.
//
// One training step is thus
//
//	optim.SetLR(groups, schedule.At(step, total))
//	norm, _, err := optim.ClipGlobalNorm(groups, 0.5) // err names a parameter that is not finite
//	err = opt.Step(groups)
//
// # Exactness
//
// The arithmetic is package kernel's: the same bits on every CPU and for any
// number of worker goroutines. State plus parameters determine everything that
// follows; a resumed run equals the uninterrupted one bit for bit. Scalars such
// as bias corrections are computed in float64 and rounded once.
//
// # Full batches
//
// Package optim/fullbatch adapts gonum's L-BFGS, CG and CMA-ES. They assume a
// deterministic objective; on mini-batches their line searches fail.
//
// # How to add an optimiser
//
//  1. Write its fused kernel by the recipe of kernel/asmgen.
//  2. Write <name>.go here: a function returning a method value, which states
//     the state slots, the coefficients of a step and the kernel call.
//  3. Add the kind to the table in config.go with its defaults.
//  4. Add a case to cmd/peers/optim_vectors.py, run it, and list the case in
//     torch_test.go.
package optim
