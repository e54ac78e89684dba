package names

// Metrics of a server by model and version. The names of Triton have Triton's meaning; durations
// are sums over successful requests in microseconds.
var (
	RequestSuccess = counter(Serving, "nv_inference_request_success", "Number of successful inference requests", "model", "version")
	RequestFailure = counter(Serving, "nv_inference_request_failure", "Number of failed inference requests, by reason", "model", "version", "reason")
	InferenceCount = counter(Serving, "nv_inference_count", "Number of rows inferred", "model", "version")
	ExecCount      = counter(Serving, "nv_inference_exec_count", "Number of runs of the model", "model", "version")
	Pending        = gauge(Serving, "nv_inference_pending_request_count", "Number of requests that wait or run", "model", "version")
	RequestTime    = counter(Serving, "nv_inference_request_duration_us", "Cumulative time of successful requests in microseconds", "model", "version")
	QueueTime      = counter(Serving, "nv_inference_queue_duration_us", "Cumulative time that successful requests waited in microseconds", "model", "version")
	InputTime      = counter(Serving, "nv_inference_compute_input_duration_us", "Cumulative time of gathering inputs in microseconds", "model", "version")
	InferTime      = counter(Serving, "nv_inference_compute_infer_duration_us", "Cumulative time of running the model in microseconds", "model", "version")
	OutputTime     = counter(Serving, "nv_inference_compute_output_duration_us", "Cumulative time of splitting outputs in microseconds", "model", "version")

	Latency             = histogram(Serving, "onnxrl_request_latency_seconds", "Time of successful requests", latencies, "model", "version")
	BatchRows           = histogram(Serving, "onnxrl_batch_rows", "Rows of the runs", rows, "model", "version")
	NonFiniteRequests   = counter(Serving, "onnxrl_nonfinite_requests_total", "Requests refused for a NaN or an infinity in an input", "model", "version")
	Sequences           = gauge(Serving, "onnxrl_sequences", "Number of live sequences", "model", "version")
	LastInference       = gauge(Serving, "onnxrl_last_inference_timestamp_seconds", "When the last request was answered", "model", "version")
	VersionState        = gauge(Serving, "onnxrl_version_state", "1 for the state that the version is in", "model", "version", "state")
	ShadowCompared      = counter(Serving, "onnxrl_shadow_compared_total", "Requests whose answers were compared with those of a version in the shadow", "model", "version", "shadow")
	ShadowDropped       = counter(Serving, "onnxrl_shadow_dropped_total", "Requests that the version in the shadow had no room for", "model", "version", "shadow")
	ShadowFailed        = counter(Serving, "onnxrl_shadow_failed_total", "Requests that the version in the shadow did not answer", "model", "version", "shadow")
	ShadowRows          = counter(Serving, "onnxrl_shadow_rows_total", "Rows compared", "model", "version", "shadow")
	ShadowDifferent     = counter(Serving, "onnxrl_shadow_different_actions_total", "Compared rows in which the action was not the same", "model", "version", "shadow")
	ShadowMaxDelta      = gauge(Serving, "onnxrl_shadow_max_delta", "Largest difference of a floating-point output", "model", "version", "shadow")
	ShadowInfer         = counter(Serving, "onnxrl_shadow_infer_seconds_total", "Time of the runs in the shadow", "model", "version", "shadow")
	LoadsGivenUp        = gauge(Serving, "onnxrl_loads_given_up", "Number of abandoned loads that are still running")
	VersionsRefused     = counter(Serving, "onnxrl_versions_refused_crashing_total", "Number of versions refused because trying them ended the process that tried them")
	ResponsesByProtocol = counter(Serving, "onnxrl_responses_total", "Answers by protocol and code, refusals included; reason says what the code stands for", "protocol", "code", "reason")
)
