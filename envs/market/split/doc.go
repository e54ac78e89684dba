// Package split divides the times of a data set into ranges that do not share information.
//
// # Concepts
//
// [Config] names the training, validation and test range by their dates, both ends included;
// [Config.Resolve] turns them into positions ([Span]) and refuses ranges that overlap, are empty or
// go back in time. A decision taken at a bar is paid at later ones, so the last bars before the
// next range are purged; an embargo leaves out the first bars of the next range.
//
// Features look back, never forward, so the window of the first validation bar may reach into the
// training range: a position held in reality would have seen the same bars.
//
// A [Scheme] divides the times into many folds, each with ranges of its own, for studies that
// repeat training: [Expanding] and [Rolling] walk forward in time; [Combinatorial] tests every
// choice of blocks ([CombinatorialPurged]) and trains on what is left, before and after.
//
// # How to add a scheme
//
// Write what lists its [SchemeFold]s, a kind of it in [Scheme.Folds], and add it to the test that
// no fold trains on a position within reach of its test set.
package split
