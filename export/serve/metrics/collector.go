package metrics

import (
	"net/http"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/onnxrl/onnxrl/export/serve"
	"github.com/onnxrl/onnxrl/export/serve/traffic"
)

// Collector reads a service's statistics whenever it is collected.
type Collector struct {
	service serve.Service
	traffic *traffic.Recorder
}

// New returns the collector of a service, and of the answers that a recorder has counted, unless it
// is nil; it belongs into one registry.
func New(s serve.Service, t *traffic.Recorder) *Collector {
	return &Collector{service: s, traffic: t}
}

// Handler answers with the metrics of the service, the recorder, the Go runtime and the process.
func Handler(s serve.Service, t *traffic.Recorder) http.Handler {
	r := prometheus.NewRegistry()
	r.MustRegister(New(s, t), collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return promhttp.HandlerFor(r, promhttp.HandlerOpts{ErrorHandling: promhttp.ContinueOnError})
}

// descriptions of everything that is collected.
var (
	labels = []string{"model", "version"}

	requestSuccess = describe("nv_inference_request_success", "Number of successful inference requests")
	requestFailure = describe("nv_inference_request_failure", "Number of failed inference requests, by reason", "reason")
	nonFinite      = describe("onnxrl_nonfinite_requests_total", "Requests refused for a NaN or an infinity in an input")
	inferenceCount = describe("nv_inference_count", "Number of rows inferred")
	execCount      = describe("nv_inference_exec_count", "Number of runs of the model")
	pending        = describe("nv_inference_pending_request_count", "Number of requests that wait or run")
	requestTime    = describe("nv_inference_request_duration_us", "Cumulative time of successful requests in microseconds")
	queueTime      = describe("nv_inference_queue_duration_us", "Cumulative time that successful requests waited in microseconds")
	inputTime      = describe("nv_inference_compute_input_duration_us", "Cumulative time of gathering inputs in microseconds")
	inferTime      = describe("nv_inference_compute_infer_duration_us", "Cumulative time of running the model in microseconds")
	outputTime     = describe("nv_inference_compute_output_duration_us", "Cumulative time of splitting outputs in microseconds")

	latency     = describe("onnxrl_request_latency_seconds", "Time of successful requests")
	batchRows   = describe("onnxrl_batch_rows", "Rows of the runs")
	sequences   = describe("onnxrl_sequences", "Number of live sequences")
	last        = describe("onnxrl_last_inference_timestamp_seconds", "When the last request was answered")
	state       = describe("onnxrl_version_state", "1 for the state that the version is in", "state")
	compared    = describe("onnxrl_shadow_compared_total", "Requests whose answers were compared with those of a version in the shadow", "shadow")
	dropped     = describe("onnxrl_shadow_dropped_total", "Requests that the version in the shadow had no room for", "shadow")
	shadowFail  = describe("onnxrl_shadow_failed_total", "Requests that the version in the shadow did not answer", "shadow")
	shadowRows  = describe("onnxrl_shadow_rows_total", "Rows compared", "shadow")
	different   = describe("onnxrl_shadow_different_actions_total", "Compared rows in which the action was not the same", "shadow")
	maxDelta    = describe("onnxrl_shadow_max_delta", "Largest difference of a floating-point output", "shadow")
	abandoned   = prometheus.NewDesc("onnxrl_loads_given_up", "Number of abandoned loads that are still running", nil, nil)
	crashes     = prometheus.NewDesc("onnxrl_versions_refused_crashing_total", "Number of versions refused because trying them ended the process that tried them", nil, nil)
	responses   = prometheus.NewDesc("onnxrl_responses_total", "Answers by protocol and code, refusals included; reason says what the code stands for", []string{"protocol", "code", "reason"}, nil)
	shadowInfer = describe("onnxrl_shadow_infer_seconds_total", "Time of the runs in the shadow", "shadow")
)

var descriptions = []*prometheus.Desc{
	requestSuccess, requestFailure, nonFinite, inferenceCount, execCount, pending, requestTime, queueTime, inputTime, inferTime, outputTime,
	latency, batchRows, sequences, last, state, compared, dropped, shadowFail, shadowRows, different, maxDelta, abandoned, crashes, responses, shadowInfer,
}

func describe(name, help string, more ...string) *prometheus.Desc {
	return prometheus.NewDesc(name, help, slices.Concat(labels, more), nil)
}

// Buckets of the histograms: latencies in seconds from 10 µs to 10 s, and rows.
var (
	latencyBuckets = []float64{1e-5, 2.5e-5, 5e-5, 1e-4, 2.5e-4, 5e-4, 1e-3, 2.5e-3, 5e-3, 1e-2, 2.5e-2, 5e-2, 1e-1, 2.5e-1, 5e-1, 1, 2.5, 5, 10}
	rowBuckets     = []float64{1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024}
)

// reasons are the labels of failures, as Triton has them; all of them are there from the beginning.
var reasons = []string{"REJECTED", "CANCELED", "BACKEND", "OTHER"}

// Describe implements prometheus.Collector.
func (c *Collector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range descriptions {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (c *Collector) Collect(ch chan<- prometheus.Metric) {
	stats, err := c.service.Statistics("", "")
	if err != nil {
		ch <- prometheus.NewInvalidMetric(requestSuccess, err)
		return
	}
	for i := range stats {
		collect(ch, &stats[i])
	}
	ch <- prometheus.MustNewConstMetric(abandoned, prometheus.GaugeValue, float64(c.service.AbandonedLoads()))
	ch <- prometheus.MustNewConstMetric(crashes, prometheus.CounterValue, float64(c.service.Crashes()))
	if c.traffic != nil {
		for _, n := range c.traffic.Counts() {
			ch <- prometheus.MustNewConstMetric(responses, prometheus.CounterValue, float64(n.N), n.Protocol, n.Code, n.Reason)
		}
	}
	for _, m := range c.service.Index(false) {
		if m.Version != "" {
			ch <- prometheus.MustNewConstMetric(state, prometheus.GaugeValue, 1, m.Name, m.Version, string(m.State))
		}
	}
}

func collect(ch chan<- prometheus.Metric, s *serve.Statistics) {
	send := func(d *prometheus.Desc, kind prometheus.ValueType, v float64, more ...string) {
		ch <- prometheus.MustNewConstMetric(d, kind, v, append([]string{s.Model, s.Version}, more...)...)
	}
	count := func(d *prometheus.Desc, n uint64, more ...string) {
		send(d, prometheus.CounterValue, float64(n), more...)
	}
	count(requestSuccess, s.Success.Count)
	failed := map[string]uint64{}
	for code, n := range s.Failures {
		failed[code.Reason()] += n
	}
	for _, r := range reasons {
		count(requestFailure, failed[r], r)
	}
	count(nonFinite, s.NonFinite)
	count(inferenceCount, s.Inferences)
	count(execCount, s.Executions)
	send(pending, prometheus.GaugeValue, float64(s.Pending))
	for _, t := range []struct {
		d *prometheus.Desc
		v serve.Durations
	}{{requestTime, s.Success}, {queueTime, s.Queue}, {inputTime, s.Input}, {inferTime, s.Infer}, {outputTime, s.Output}} {
		send(t.d, prometheus.CounterValue, float64(t.v.Total/time.Microsecond))
	}
	send(sequences, prometheus.GaugeValue, float64(s.Sequences))
	if !s.LastInference.IsZero() {
		send(last, prometheus.GaugeValue, float64(s.LastInference.UnixMilli())/1e3)
	}
	ch <- latencies(s)
	ch <- rows(s)
	for _, x := range s.Shadows {
		count(compared, x.Compared, x.Shadow)
		count(dropped, x.Dropped, x.Shadow)
		count(shadowFail, x.Failed, x.Shadow)
		count(shadowRows, x.Rows, x.Shadow)
		count(different, x.DifferentActions, x.Shadow)
		send(maxDelta, prometheus.GaugeValue, x.MaxDelta, x.Shadow)
		send(shadowInfer, prometheus.CounterValue, x.ShadowInfer.Seconds(), x.Shadow)
	}
}

// latencies puts the server's fine buckets into those of latencyBuckets; a fine one that a bound
// divides counts to the next.
func latencies(s *serve.Statistics) prometheus.Metric {
	cumulative := make(map[float64]uint64, len(latencyBuckets))
	i, n := 0, uint64(0)
	for _, le := range latencyBuckets {
		for i < len(s.Latency.Bounds) && s.Latency.Bounds[i].Seconds() <= le {
			n += s.Latency.Counts[i]
			i++
		}
		cumulative[le] = n
	}
	return prometheus.MustNewConstHistogram(latency, s.Latency.Count, s.Success.Total.Seconds(), cumulative, s.Model, s.Version)
}

func rows(s *serve.Statistics) prometheus.Metric {
	cumulative := make(map[float64]uint64, len(rowBuckets))
	total, sum := uint64(0), 0.0
	for _, b := range s.Batches {
		total += b.Infer.Count
		sum += float64(b.Rows) * float64(b.Infer.Count)
		for _, le := range rowBuckets {
			if float64(b.Rows) <= le {
				cumulative[le] += b.Infer.Count
			}
		}
	}
	for _, le := range rowBuckets {
		cumulative[le] += 0 // every bucket is there
	}
	return prometheus.MustNewConstHistogram(batchRows, total, sum, cumulative, s.Model, s.Version)
}
