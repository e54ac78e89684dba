// Package metrics records the numbers of a run over its steps, for people to plot and for programs
// to read. Metrics are not logs: a log line says what happened, a metric is a value of a tag at a
// step.
//
// # Vocabulary
//
// A tag is a name such as train/loss or rollout/ep_rew_mean; the part before the slash groups. We
// use the tags of Stable-Baselines3 where it has them. A step is what the run counts on its x axis,
// environment steps in reinforcement learning and optimiser steps in fit, one kind per run. A
// [Sink] takes the values: [JSONLines] for programs, [TensorBoard] for its web interface, [Tee] for
// both.
//
// # JSON lines
//
// One object per line: "step", "time" (seconds since 1970) and the tags beside them, sorted:
//
//	{"step":2048,"time":1700000000.25,"rollout/ep_rew_mean":21.5,"train/loss":0.125}
//
// JSON has no NaN and no infinities; they are written as the strings "NaN", "Infinity" and
// "-Infinity". Every line is written by one call as soon as it is recorded, so a run that is killed
// loses nothing but a line that it was writing.
//
// # The table of all metrics
//
// One table, [All], has everything that the program shows to Prometheus: the name, type, help and
// labels of each metric, and the bounds of a histogram's buckets. Code makes its metrics from these
// entries, the dashboards and alerts in configs/observability are checked against them, and the table
// in docs/observability.md is written from them.
//
// A metric is of one [Part] of the program: training, population, serving or trading. Names begin
// with onnxrl_, and end as Prometheus wants it: counters in _total, times in _seconds. Those that
// Triton's dashboards know are the exception, nv_inference_…, with Triton's meaning. Where a run
// records a value by a tag that has a name of its own here, [Metric.Tag] is the tag; all other tags are
// values of [Scalar].
//
// Sources: Prometheus' guide "Metric and label naming", and Triton's documentation of its metrics.
//
// # Resuming
//
// A run that resumes from step n has forgotten what came after n. ResumeJSONLines removes the lines
// after n, and the event file of a resumed TensorBoard tells its readers to drop the points after
// n.
//
// Sinks are safe for concurrent use. They read no clock: the caller injects one.
//
// # How to add a sink
//
// Implement Sink in a file of its own, and add it to the table of the conformance test in
// sink_test.go.
//
// # How to add a metric
//
// A line in the file of its part (names_training.go and its neighbours), and go test
// ./cmd/internal/apptest/observability -run Table -update for the documentation. Labels have few
// values: never an id of an order or a time.
package metrics
