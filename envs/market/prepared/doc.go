// Package prepared makes, stores and loads the data set of a market environment.
//
// # Concepts
//
// A [Config] names the source, or a made-up market in its place (package synthetic), the rules for
// its faults, the features, their normalisation and the split. [Build] turns the rows of a source
// into a [Set]: the feature tensor X of shape [T,N,F], float32, in one contiguous block, so that
// the window of W bars that ends at t is a view ([Set.Window]). The prices that features see, not
// normalised, and beside them, as far as the source has them, prices before adjustment, factors,
// limits and so on ([Set.Quotes]); a status and a defined flag for every time and symbol; the split
// as positions; and a [Manifest] with everything that a reader needs to know: symbols, feature
// order with units and statistics, what the quality checks found, and hashes of all inputs.
//
// With a universe (package universe), Set.Members says who can be bought at each time, and the
// manifest how many these are over time.
//
// The first rows, at which no stock has all its features, are dropped for all stocks together, so
// that the tensor stays aligned. A stock that is listed later is not tradable until all its
// features are defined ([Set.Tradable]).
//
// [Set.Save] writes the set as two Parquet files and the manifest, which any other program can
// read; [Open] loads it again with equal bits and refuses files that do not have the manifest's
// hashes. Equal inputs give equal files.
//
// [Lookahead] and [Warmup] run the whole preparation again on shortened data and name every feature
// that depends on later rows, or on how early the data begin.
//
// # How to add something to a set
//
// A value per time and symbol: a field of Set, a column in tables.go in both directions, and a line
// in the test that loads what was saved. Something that describes the set: a field of Manifest.
package prepared
