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
// [WalkForward] and [CombinatorialPurged] give many pairs of training and test positions for
// studies that repeat training.
//
// # How to add a scheme
//
// Write a type with a method that returns []Fold, and test that no fold trains on a position within
// reach of its test set.
package split
