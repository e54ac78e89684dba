package observability

import "github.com/onnxrl/onnxrl/runtime/metrics"

func servingBoard() board {
	const of = `model=~"$model"`
	quantile := func(q, metric, by string) string {
		return `histogram_quantile(` + q + `, sum by (le, ` + by + `) (rate(` + metric + `_bucket{` + of + `}[$__rate_interval])))`
	}
	mean := func(time string) string {
		return `sum by (model) (rate(` + time + `{` + of + `}[$__rate_interval])) / sum by (model) (rate(nv_inference_request_success{` + of + `}[$__rate_interval])) / 1e6`
	}
	shadow := func(metric string) string { return metric + `{` + of + `}` }
	return board{
		name: "serving", title: "onnxrl serving", about: "Models that onnxrl serve answers for", part: metrics.Serving,
		variables: []variable{{"model", "Model", "onnxrl_version_state", "model"}},
		rows: []row{
			{"Now", []panel{
				{kind: "stat", title: "Requests a second", about: "Answers of all protocols, refusals included", unit: "reqps", width: 4, queries: one(`sum(rate(onnxrl_responses_total[$__rate_interval]))`, "")},
				{kind: "stat", title: "Failures of the server", about: "Share of the answers that say internal, unavailable, overloaded or deadline exceeded", unit: "percentunit", width: 4, red: 0.01, queries: one(`sum(rate(onnxrl_responses_total{reason=~"internal|unavailable|overloaded|deadline exceeded"}[$__rate_interval])) / sum(rate(onnxrl_responses_total[$__rate_interval]))`, "")},
				{kind: "stat", title: "p99", about: "99th percentile of the time of successful requests", unit: "s", width: 4, queries: one(`histogram_quantile(0.99, sum by (le) (rate(onnxrl_request_latency_seconds_bucket{`+of+`}[$__rate_interval])))`, "")},
				{kind: "stat", title: "Waiting", about: "Requests that wait or run", unit: "none", width: 3, queries: one(`sum(nv_inference_pending_request_count{`+of+`})`, "")},
				{kind: "stat", title: "Versions", about: "By their state", unit: "none", width: 5, queries: one(`sum by (state) (onnxrl_version_state{`+of+`})`, "{{state}}")},
				{kind: "stat", title: "Loads", about: "Versions that were refused because they end a process, and loads that were given up", unit: "none", width: 4, red: 1, queries: []query{{`sum(onnxrl_versions_refused_crashing_total)`, "refused"}, {`sum(onnxrl_loads_given_up)`, "given up"}}},
			}},
			{"Requests", []panel{
				{kind: "timeseries", title: "Answers by protocol and code", about: "Of codes that were answered", unit: "reqps", width: 12, queries: one(`sum by (protocol, code, reason) (rate(onnxrl_responses_total[$__rate_interval])) > 0`, "{{protocol}} {{code}} {{reason}}")},
				{kind: "timeseries", title: "Requests by model", about: "Successful ones, and failed ones by Triton's reason", unit: "reqps", width: 12, queries: []query{{`sum by (model, version) (rate(nv_inference_request_success{` + of + `}[$__rate_interval]))`, "{{model}} {{version}}"}, {`sum by (model, reason) (rate(nv_inference_request_failure{` + of + `}[$__rate_interval]))`, "{{model}} {{reason}}"}}},
				{kind: "timeseries", title: "Latency", about: "Of successful requests", unit: "s", width: 12, log: true, queries: []query{{quantile("0.5", "onnxrl_request_latency_seconds", "model"), "{{model}} median"}, {quantile("0.95", "onnxrl_request_latency_seconds", "model"), "{{model}} p95"}, {quantile("0.99", "onnxrl_request_latency_seconds", "model"), "{{model}} p99"}}},
				{kind: "timeseries", title: "Time of a request in its parts", about: "Means: waiting, gathering inputs, running, splitting outputs, and all of it", unit: "s", width: 12, queries: []query{{mean("nv_inference_queue_duration_us"), "{{model}} queue"}, {mean("nv_inference_compute_input_duration_us"), "{{model}} input"}, {mean("nv_inference_compute_infer_duration_us"), "{{model}} infer"}, {mean("nv_inference_compute_output_duration_us"), "{{model}} output"}, {mean("nv_inference_request_duration_us"), "{{model}} request"}}},
				{kind: "timeseries", title: "Inputs that are not finite", about: "Requests refused for a NaN or an infinity", unit: "reqps", width: 6, queries: one(`sum by (model) (rate(onnxrl_nonfinite_requests_total{`+of+`}[$__rate_interval]))`, "{{model}}")},
				{kind: "timeseries", title: "Since the last request", about: "By model and version", unit: "s", width: 6, queries: one(`time() - onnxrl_last_inference_timestamp_seconds{`+of+`}`, "{{model}} {{version}}")},
				{kind: "timeseries", title: "Sequences", about: "Live sequences, whose state the server keeps", unit: "none", width: 6, queries: one(`sum by (model) (onnxrl_sequences{`+of+`})`, "{{model}}")},
			}},
			{"What policies see and do", []panel{
				{kind: "timeseries", title: "Drift of observations", about: "Population stability index of the feature that has moved farthest from what the policy was published on", unit: "none", width: 8, queries: one(`onnxrl_observation_drift{`+of+`}`, "{{model}} {{version}}")},
				{kind: "timeseries", title: "The feature that has drifted", about: "Its number over all inputs, from 0; the server's log has its name", unit: "none", width: 8, queries: one(`onnxrl_observation_drift_feature{`+of+`}`, "{{model}} {{version}}")},
				{kind: "timeseries", title: "Decisions in the log", about: "Of serve --decisions: published, and not, by reason", unit: "none", width: 8, queries: []query{{`sum(rate(onnxrl_decisions_logged_total[$__rate_interval]))`, "logged"}, {`sum by (reason) (rate(onnxrl_decisions_dropped_total[$__rate_interval])) > 0`, "{{reason}}"}}},
			}},
			{"Runs of models", []panel{
				{kind: "timeseries", title: "Inference", about: "Time of a run of the model", unit: "s", width: 8, log: true, queries: []query{{quantile("0.5", "onnxrl_inference_seconds", "model"), "{{model}} median"}, {quantile("0.99", "onnxrl_inference_seconds", "model"), "{{model}} p99"}}},
				{kind: "timeseries", title: "Rows of a run", about: "Mean: what batching has put together", unit: "none", width: 8, queries: []query{{`sum by (model) (rate(onnxrl_batch_rows_sum{` + of + `}[$__rate_interval])) / sum by (model) (rate(onnxrl_batch_rows_count{` + of + `}[$__rate_interval]))`, "{{model}}"}}},
				{kind: "timeseries", title: "Rows and runs", about: "Rows inferred and runs of the model", unit: "none", width: 8, queries: []query{{`sum by (model) (rate(nv_inference_count{` + of + `}[$__rate_interval]))`, "{{model}} rows/s"}, {`sum by (model) (rate(nv_inference_exec_count{` + of + `}[$__rate_interval]))`, "{{model}} runs/s"}}},
			}},
			{"Shadows", []panel{
				{kind: "timeseries", title: "Compared", about: "Requests whose answers were compared with those of a version in the shadow, that it had no room for, and that it did not answer", unit: "none", width: 8, queries: []query{{shadow("onnxrl_shadow_compared_total"), "{{model}} {{shadow}} compared"}, {shadow("onnxrl_shadow_dropped_total"), "{{model}} {{shadow}} dropped"}, {shadow("onnxrl_shadow_failed_total"), "{{model}} {{shadow}} failed"}}},
				{kind: "timeseries", title: "Other actions", about: "Share of the compared rows in which the action was not the same", unit: "percentunit", width: 8, queries: one(`onnxrl_shadow_different_actions_total{`+of+`} / (onnxrl_shadow_rows_total{`+of+`} > 0)`, "{{model}} {{shadow}}")},
				{kind: "timeseries", title: "Largest difference", about: "Of a floating-point output", unit: "none", width: 4, queries: one(shadow("onnxrl_shadow_max_delta"), "{{model}} {{shadow}}")},
				{kind: "timeseries", title: "Time in the shadow", about: "Of the runs in the shadow, a second", unit: "s", width: 4, queries: one(`rate(onnxrl_shadow_infer_seconds_total{`+of+`}[$__rate_interval])`, "{{model}} {{shadow}}")},
			}},
			process("onnxrl-serve"),
		},
	}
}
