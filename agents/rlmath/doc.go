// Package rlmath holds the arithmetic of reinforcement learning as pure functions over slices:
// returns, advantages, importance weights, targets, distributions and diagnostics.
//
// # Conventions
//
// Names and time indices follow DeepMind's rlax. An environment step leads from time t−1 to time t:
// the agent sees an observation worth v_tm1, acts, and receives r_t, discount_t and an observation
// worth v_t. Element i of every slice belongs to the i-th step, so v_tm1[i] is the value before the
// step and v_t[i] the value after it. With the values of T+1 observations in one slice v, pass
// v[:T] and v[1:].
//
// Sequences of a batch lie side by side: the slices of a function with a parameter width hold a
// row-major matrix [T, width] whose columns are independent sequences. A width of 1 is a single
// sequence.
//
// The result comes first and is written in place; its length must be that of the other slices. It
// may be one of the arguments, as long as the two do not overlap at a shift. Functions panic when
// lengths differ, because that is a bug of the caller. Nothing is allocated. Arithmetic is done in
// the element type F, sums of many elements in float64.
//
// # The discount ends episodes
//
// discount_t is γ times the discount of the environment's step, so it is 0 after a termination and
// every recursion ends there by itself. A truncated episode needs the value of its final
// observation and then must not run on into the next one. [FoldTruncation] turns both demands into
// numbers: it adds the discounted value to the reward and makes the discount 0. After it, no
// function needs to know about truncation.
//
// # Stop-gradient
//
// Everything here is data to a learner and never differentiated. What is differentiated is built as
// a graph (package models/head); the clipped surrogate and the densities are here too, to compute
// what was measured outside a graph and as a reference for tests.
//
// # How to add a function
//
// Write it into the file of its topic with the recursion, its special cases, its source and every
// deviation in the comment; test it against published numbers or a naive float64 form, test a
// property, and add a line to the benchmark and the table of allocations.
package rlmath
