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
// assets share all weights and do not see each other; [BuildCrossAsset] mixes them.
//
// # Kinds
//
// A [Kind] is one row of the list of encoders: a name, and how a section of a configuration becomes
// an [Encoder]. [Kinds] lists those that come with the program; a program may have others. Building
// is separate from configuring, because the same encoder is built several times: with a batch of one
// for acting, with a batch for training, shared over a rollout.
//
// # Assets that see each other
//
// Behind an encoder, [BuildCrossAsset] joins each asset's features with its position and the cash,
// mixes the assets, and sums them up:
//
//	features [batch, N, D], position [batch, N], cash [batch, 1]  ->  assets [batch, N, D'], portfolio [batch, D']
//
// The per-asset features feed the heads of an actor, the portfolio's feed a critic. Mixing by
// attention is one or more transformer blocks over the assets; mixing by mlp adds to each asset
// what a layer makes of the mean of all (deep sets, Zaheer et al. 2017, arXiv 1703.06114). Neither
// knows an order of the assets: permuting them permutes the features. Assets that are not valid,
// because they are not listed yet, are seen by nobody and do not count in the portfolio.
//
// # What an encoder may promise
//
// A [Sequencer] has features for every step and says whether they are causal. A [Sharer] can
// compute the features of each bar once per rollout instead of once per window. Both promises are
// tested, not believed: see package encodertest.
//
// # How to add an encoder
//
//  1. Write a file of this package, or a package of your own, with a type for its configuration and
//     one for itself, defaults, Validate, a constructor, and a Kind.
//  2. Build it from package layer. Document the initialisation and name the source of the
//     architecture, with every deviation.
//  3. Call encodertest.Run from a test.
//  4. Add it to [Kinds].
package encoder
