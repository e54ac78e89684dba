// Package rng draws all randomness of a run from named, independent, serialisable streams that
// descend from one seed.
//
// # Keys and streams
//
// A [Key] is a value that names a place in the tree of all randomness; it has no state. [New] gives
// the root of a seed, and [Key.Split] gives a child by name and indices: New(7).Split("env", 3).
// Equal names give equal keys, other names give keys that have nothing to do with each other, and
// the order of splits does not matter. A [Stream] is what numbers are drawn from; it starts at a
// key and has state, which is saved in a checkpoint. A [Set] keeps the streams of a component by
// name and saves them together.
//
// Give every purpose its own name. Then another draw in one place, or another environment, changes
// nothing elsewhere.
//
// # Reproducibility
//
// The generator is PCG-DXSM with 128 bits of state (math/rand/v2.PCG; O'Neill 2014, "PCG: A Family
// of Simple Fast Space-Efficient Statistically Good Algorithms for Random Number Generation"). The
// distributions are written here and not taken from math/rand/v2, whose sequences may change
// between Go versions, and they use no fused multiply-add and no function of package math that
// differs between processors. A stream gives the same bits on every platform. Golden vectors in the
// tests hold all of this fixed.
//
// A Stream must not be used by two goroutines at once; keys are values and may be. No method
// allocates except Perm.
//
// # How to add a distribution
//
// Write a method on *Stream in a file named after it, built on Uint64, Float64 and log. Consume a
// number of draws that does not depend on the values where that is possible. Add a row to the
// moments test and run the golden test with -update.
package rng
