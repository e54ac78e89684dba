// Package encoder says what an encoder is: a part of a network that turns what is observed into a
// vector of features.
//
// # Shapes
//
// An encoder takes float32 values of one of three forms and gives as many vectors:
//
//	[batch, F]        one vector           -> [batch, D]
//	[batch, W, F]     a window of W steps  -> [batch, D]
//	[batch, W, N, F]  a window of N assets -> [batch, N, D]
//
// Time comes before assets because a window of a market's table lies in memory that way. The N
// assets share all weights and do not see each other; package crossasset mixes them.
//
// # Kinds
//
// A [Kind] is one row of the list of encoders: a name, and how a section of a configuration becomes
// an [Encoder]. Package kinds holds them and their list. Building is separate from configuring, because the
// same encoder is built several times: with a batch of one for acting, with a batch for training,
// shared over a rollout.
//
// # What an encoder may promise
//
// A [Sequencer] has features for every step and says whether they are causal. A [Sharer] can
// compute the features of each bar once per rollout instead of once per window. Both promises are
// tested, not believed: see package encodertest.
//
// # How to add an encoder
//
//  1. Write a file of package kinds with a type for its configuration and one for itself, defaults,
//     Validate, a constructor, and a Kind.
//  2. Build it from package layer. Document the initialisation and name the source of the
//     architecture, with every deviation.
//  3. Call encodertest.Run from a test.
//  4. Add it to kinds.All.
package encoder
