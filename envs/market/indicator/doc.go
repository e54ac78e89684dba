// Package indicator computes technical indicators one bar at a time.
//
// # Concepts
//
// An [Indicator] is a state machine of one asset: it is given the bars in order and writes its
// values after each. A batch is computed by the same steps ([Run]), so a value can only depend on
// bars that have been given already: prefix invariance holds by construction, and live values are
// bit-equal to those of a backtest. Next never allocates.
//
// A [Kind] is a row of the table [Kinds]: name, parameters, outputs with units, and how many bars
// go by before the first defined value. Values before that are NaN; afterwards they are always
// finite, also on flat prices and zero volume.
//
// Where TA-Lib has an indicator the values are TA-Lib's, including how recursions are seeded (an
// EMA by the mean of its first bars, the fast EMA of MACD by the mean of the bars that end where
// the slow one is seeded) and what is returned where a quotient has no value. Windows are summed
// from their own values at every bar instead of by adding and subtracting, so an indicator with
// a finite window gives the same bits wherever the data begin.
//
// # What is left out
//
// Ichimoku's chikou span is the close drawn 26 bars earlier; as a feature it would be a future
// price. The roc indicator carries the same comparison without looking ahead.
//
// # How to add an indicator
//
//  1. Write <name>.go with the state machine and a Kind that describes it, and its State in
//     state.go.
//  2. Add the Kind to the table in kinds.go. Features appear in the order of that table.
//  3. Add expected values to a test: published ones, or those of cmd/peers/talib_compare.py. The
//     properties that every indicator must have are tested over the table without further work.
package indicator
