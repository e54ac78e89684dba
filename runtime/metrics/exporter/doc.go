// Package exporter shows the metrics of a process to Prometheus, under the names of package metrics.
//
// # Concepts
//
// An [Exporter] is the registry of a process; [Exporter.Handler] answers requests for /metrics.
// What has a few series that change now and then is made from a line of the table by
// [Exporter.Gauges], [Exporter.Counters] or [Exporter.Histograms]. As a metrics.Watcher it shows
// runs and searches: a [Run] keeps a training's newest metrics and its progress between two records,
// a [Search] keeps those of a population. Everything is read when Prometheus asks: a training pays
// for storing a few numbers.
//
// Runs that have ended stay, so that their last values are seen, up to the newest [keptRuns]. A run
// that begins under the name of one before it, as the next interval of a member does, goes on with
// its counters. All methods are safe for concurrent use.
//
// # How to add a metric
//
// A line in the table of package metrics. A gauge whose value a run records by a tag needs nothing else: give the
// line the tag. Others are set where their values are known.
package exporter
