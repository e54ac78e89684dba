// Package feature turns bars into the features an agent sees.
//
// # Concepts
//
// A [Config] chooses features; [New] lays them out as [Column]s in a fixed order: prices and
// volume, indicators in the order of their table, extra columns of the data, calendar, and the
// listed flag. A [Stream] computes one asset's row bar by bar, without allocating; batches go
// through the same stream, so values are prefix-invariant and live values are bit-equal.
//
// A row is defined when its stock is listed and every feature has a value. Rows that are not
// defined are all zero except for the listed flag, which is 1 from the first real bar on, and the
// stock is not tradable there: nothing is invented before the listing, and an indicator that is
// still warming up is not mistaken for a small value.
//
// [Fit] computes the statistics of the z-score per feature over all defined rows of a range, all
// assets together, and [Statistic.Apply] gives the float32 that is stored.
//
// # How to add a feature
//
// An indicator: see package indicator. Something else of one bar, such as another calendar feature:
// a column in layout.go and its value in stream.go, in the same order.
package feature
