// Package synthetic makes markets of which it is known what can be earned.
//
// # Concepts
//
// A Market is a recipe; Generate makes daily bars of it that go through the same preparation as
// real ones: quality checks, indicators, normalisation, splits. A configuration names it in the
// data section, in place of a source:
//
//	data:
//	  synthetic: {kind: leading_indicator, seed: 1, bars: 3000, move: 0.01, accuracy: 0.9}
//	  features: {extra: [signal]}
//
// Of a [Known] market [Solve] computes what the best policy earns. LeadingIndicator has a column,
// signal, that tells the next move with a known accuracy, and LeadingVolume tells it by its volume;
// Momentum has a trend and Regimes two regimes that nobody sees, and the best policy is the one of
// a Bayesian who knows the recipe. Pairs are two assets that never part for long, and LimitTrap is
// one that rises day by day and cannot be sold when it falls. Of Liquidation, whose price changes
// on known days and where trading at once is dear, the best schedule is known in closed form. Noise
// has prices that are martingales: no policy has an expected return, and before fees every one
// earns 0. The former show that an algorithm learns, the last that a report does not find skill
// where there is none.
//
// # Reproducibility
//
// A recipe gives the same bits on every processor: the generator is runtime/rng, and what is
// computed from it uses no fused multiply-add and no function of package math that differs between
// processors. File.SHA256 of the data is the digest of the rows.
//
// # How to add a market
//
// A file with its configuration, DefaultNAME, Validate and Generate, a row in kinds, and a test of
// what is known about it; Chain and States where its optimum is.
package synthetic
