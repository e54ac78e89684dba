// Package tensor holds dense host tensors and the off-heap arenas that parameters, gradients and
// optimiser moments live in.
//
// A [Tensor] is an element type, a shape and row-major, contiguous, little-endian bytes. Tensors
// made by [New] own Go memory aligned to 64 bytes. Tensors made by [Arena.Tensor] are views: they
// share the arena's memory, never move, and may be given to C for as long as the arena is open.
//
// Nothing in this package computes. Functions that panic do so only for a caller's bug (a wrong
// element type, an index out of range); everything that depends on foreign data returns an error.
package tensor
