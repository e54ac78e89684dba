package metrics

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/onnxrl/onnxrl/export/serve"
	"github.com/onnxrl/onnxrl/export/serve/traffic"
)

// fixed has statistics and nothing else.
type fixed struct{ serve.Service }

func (fixed) Index(bool) []serve.ModelStatus {
	return []serve.ModelStatus{{Name: "m", Version: "3", State: serve.Ready}, {Name: "n", Version: "1", State: serve.Unavailable, Reason: "broken"}, {Name: "empty"}}
}

func (fixed) AbandonedLoads() int { return 3 }
func (fixed) Crashes() int        { return 2 }

func (fixed) Statistics(string, string) ([]serve.Statistics, error) {
	d := func(n uint64, us int) serve.Durations {
		return serve.Durations{Count: n, Total: time.Duration(us) * time.Microsecond}
	}
	return []serve.Statistics{{
		Model: "m", Version: "3", Success: d(7, 700), Failed: d(6, 60), Failures: map[serve.Code]uint64{serve.Overloaded: 2, serve.Canceled: 1, serve.DeadlineExceeded: 1, serve.Internal: 1, serve.InvalidArgument: 1}, NonFinite: 11,
		Queue: d(7, 70), Input: d(7, 7), Infer: d(7, 500), Output: d(7, 9), Inferences: 9, Executions: 5, Pending: 4, LastInference: time.UnixMilli(1500),
		Batches:   []serve.BatchStatistics{{Rows: 1, Infer: d(3, 1)}, {Rows: 3, Infer: d(2, 1)}},
		Latency:   serve.Latency{Count: 7, Max: time.Minute, Bounds: []time.Duration{10 * time.Microsecond, 90 * time.Microsecond, time.Minute}, Counts: []uint64{2, 4, 1}},
		Inference: serve.Latency{Count: 5, Bounds: []time.Duration{time.Microsecond, 2 * time.Microsecond}, Counts: []uint64{3, 2}},
		Sequences: 8, Shadows: []serve.Comparison{{Shadow: "4", Compared: 5, Dropped: 1, Failed: 2, MaxDelta: 0.25, Rows: 6, DifferentActions: 3, ShadowInfer: time.Second}},
	}}, nil
}

func TestMetrics(t *testing.T) {
	w := httptest.NewRecorder()
	answers := traffic.New(nil)
	answers.HTTP(429)
	answers.GRPC(nil)
	Handler(fixed{}, answers).ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	if w.Code != http.StatusOK || !strings.HasPrefix(w.Header().Get("Content-Type"), "text/plain") {
		t.Fatal(w.Code, w.Header(), w.Body)
	}
	text := w.Body.String()
	const of = `{model="m",version="3"}`
	n := 0
	for _, line := range []string{
		"# TYPE nv_inference_request_success counter",
		"nv_inference_request_success" + of + " 7",
		`nv_inference_request_failure{model="m",reason="REJECTED",version="3"} 2`,
		`nv_inference_request_failure{model="m",reason="CANCELED",version="3"} 2`,
		`nv_inference_request_failure{model="m",reason="BACKEND",version="3"} 1`,
		`nv_inference_request_failure{model="m",reason="OTHER",version="3"} 1`,
		"onnxrl_nonfinite_requests_total" + of + " 11",
		"nv_inference_count" + of + " 9",
		"nv_inference_exec_count" + of + " 5",
		`onnxrl_responses_total{code="429",protocol="http",reason="overloaded"} 1`,
		`onnxrl_responses_total{code="500",protocol="http",reason="internal"} 0`,
		`onnxrl_responses_total{code="OK",protocol="grpc",reason="ok"} 1`,
		"# TYPE nv_inference_pending_request_count gauge",
		"nv_inference_pending_request_count" + of + " 4",
		"nv_inference_request_duration_us" + of + " 700",
		"nv_inference_queue_duration_us" + of + " 70",
		"nv_inference_compute_input_duration_us" + of + " 7",
		"nv_inference_compute_infer_duration_us" + of + " 500",
		"nv_inference_compute_output_duration_us" + of + " 9",
		`onnxrl_request_latency_seconds_bucket{model="m",version="3",le="1e-05"} 2`,
		`onnxrl_request_latency_seconds_bucket{model="m",version="3",le="0.0001"} 6`,
		`onnxrl_request_latency_seconds_bucket{model="m",version="3",le="10"} 6`,
		`onnxrl_request_latency_seconds_bucket{model="m",version="3",le="+Inf"} 7`,
		"onnxrl_request_latency_seconds_sum" + of + " 0.0007",
		`onnxrl_inference_seconds_bucket{model="m",version="3",le="1e-06"} 3`,
		`onnxrl_inference_seconds_bucket{model="m",version="3",le="2.5e-06"} 5`,
		"onnxrl_inference_seconds_sum" + of + " 2e-06",
		`onnxrl_batch_rows_bucket{model="m",version="3",le="2"} 3`,
		`onnxrl_batch_rows_bucket{model="m",version="3",le="4"} 5`,
		"onnxrl_batch_rows_sum" + of + " 9",
		"onnxrl_sequences" + of + " 8",
		"onnxrl_last_inference_timestamp_seconds" + of + " 1.5",
		`onnxrl_version_state{model="m",state="READY",version="3"} 1`,
		`onnxrl_version_state{model="n",state="UNAVAILABLE",version="1"} 1`,
		`onnxrl_shadow_compared_total{model="m",shadow="4",version="3"} 5`,
		`onnxrl_shadow_different_actions_total{model="m",shadow="4",version="3"} 3`,
		`onnxrl_shadow_max_delta{model="m",shadow="4",version="3"} 0.25`,
		`onnxrl_shadow_infer_seconds_total{model="m",shadow="4",version="3"} 1`,
		"# TYPE onnxrl_loads_given_up gauge",
		"onnxrl_loads_given_up 3",
		"# TYPE go_goroutines gauge",
	} {
		if !strings.Contains(text, line+"\n") {
			t.Errorf("missing: %s", line)
		}
		n++
	}
	if n != 41 {
		t.Errorf("%d lines", n)
	}
	if t.Failed() {
		t.Log(text)
	}
}
