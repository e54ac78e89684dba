// Package kernel holds the arithmetic of package optim: fused update rules and
// reductions over flat float32 slices.
//
// Every kernel exists as a Go twin (twin_*.go) and as assembly for AVX2,
// AVX-512F and NEON, generated from one description by asmgen. The twin is the
// definition; the vector versions are bit-identical to it on every CPU, so a
// run resumed on another machine continues exactly. (Which NaN results from a
// NaN operand is the one thing left open.) Three rules make that possible:
//
//   - Element-wise kernels never fuse a multiplication with an addition. Go may
//     fuse x*y + z unless the product is converted explicitly, which is why the
//     twins are full of float32(...).
//   - Square roots and divisions are the correctly rounded ones of IEEE 754,
//     never reciprocal estimates.
//   - Sums have a fixed shape: see [SumSquares].
//
// # Tiny values
//
// A parameter that stops receiving gradients leaves moments that decay into
// denormals and, with rounding to nearest, stay there for ever; x86 then takes
// a slow path on every step. Two explicit rules, equal on every CPU, prevent it:
//
//   - a denormal moment counts as zero when it is read;
//   - where a rule squares the gradient, a gradient below 2^-63 (about 1e-19),
//     whose square would underflow, counts as zero for the moments.
//
// # Conventions
//
// Slices of one call have equal lengths and do not overlap partly (equal or
// disjoint); other lengths panic, being caller bugs. Any length and alignment
// works; 64-byte alignment is fastest. Kernels keep no state, allocate nothing
// and may run concurrently on disjoint slices.
//
// The build tag noasm selects the twins, as do other architectures.
//
// To add a kernel, follow the recipe in asmgen.
package kernel

//go:generate go run ./asmgen -dir .
