// Package names is the table of all metrics that this program shows to Prometheus: the name, type,
// help and labels of each, and of histograms the bounds of their buckets. Code makes its metrics
// from these entries, the dashboards and alerts in configs/observability are checked against them,
// and the table in docs/observability.md is written from them.
//
// # Concepts
//
// A metric is of one [Part] of the program: training, population, serving or trading. Names begin
// with onnxrl_, and end as Prometheus wants it: counters in _total, times in _seconds. Those that
// Triton's dashboards know are the exception, nv_inference_…, with Triton's meaning. What a run
// records by a tag (see package metrics) and has a name of its own here says so by [Metric.Tag];
// all other tags are values of [Scalar].
//
// Sources: Prometheus' guide "Metric and label naming", and Triton's documentation of its metrics.
//
// # How to add a metric
//
// A line in the file of its part, and go test ./cmd/internal/apptest/observability -run Table
// -update for the documentation. Labels have few values: never an id of an order or a time.
package names
