// Package metrics shows a server's statistics to Prometheus: under the names that Triton's
// dashboards and autoscalers know, and under our own for what Triton does not have.
//
// nv_inference_request_success, nv_inference_request_failure{reason}, nv_inference_count (rows),
// nv_inference_exec_count (runs), nv_inference_pending_request_count and
// nv_inference_{request,queue,compute_input,compute_infer,compute_output}_duration_us have Triton's
// meaning and its labels model and version; durations are sums over successful requests in
// microseconds. Ours begin with onnxrl_: the latency of requests and the time and rows of runs as
// histograms, live sequences, the state of every version, the time of the last request, loads that
// were given up and have not ended, every answer by protocol and code (refusals that no model has
// seen included), and the comparison of versions that run in the shadow.
//
// Everything is read from the server when Prometheus asks: nothing is counted twice, and requests
// pay nothing for it.
//
// # How to add a metric
//
// A line in the table of package runtime/metrics, its description here, and its value where
// [Collector.Collect] walks the statistics; the golden text of the test shows it.
package metrics
