package metrics

import (
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/onnxrl/onnxrl/export/serve"
	"github.com/onnxrl/onnxrl/export/serve/decisions"
	"github.com/onnxrl/onnxrl/export/serve/traffic"
	"github.com/onnxrl/onnxrl/runtime/metrics"
	"github.com/onnxrl/onnxrl/runtime/metrics/exporter"
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
	e := exporter.New(time.Now)
	e.Register(New(s, t))
	e.ShowProcess()
	return e.Handler()
}

// descriptions of everything that is collected.
var (
	requestSuccess = describe(metrics.RequestSuccess)
	requestFailure = describe(metrics.RequestFailure)
	nonFinite      = describe(metrics.NonFiniteRequests)
	inferenceCount = describe(metrics.InferenceCount)
	execCount      = describe(metrics.ExecCount)
	pending        = describe(metrics.Pending)
	requestTime    = describe(metrics.RequestTime)
	queueTime      = describe(metrics.QueueTime)
	inputTime      = describe(metrics.InputTime)
	inferTime      = describe(metrics.InferTime)
	outputTime     = describe(metrics.OutputTime)

	latency     = describe(metrics.Latency)
	inference   = describe(metrics.Inference)
	batchRows   = describe(metrics.BatchRows)
	sequences   = describe(metrics.Sequences)
	last        = describe(metrics.LastInference)
	state       = describe(metrics.VersionState)
	compared    = describe(metrics.ShadowCompared)
	dropped     = describe(metrics.ShadowDropped)
	shadowFail  = describe(metrics.ShadowFailed)
	shadowRows  = describe(metrics.ShadowRows)
	different   = describe(metrics.ShadowDifferent)
	maxDelta    = describe(metrics.ShadowMaxDelta)
	abandoned   = describe(metrics.LoadsGivenUp)
	crashes     = describe(metrics.VersionsRefused)
	responses   = describe(metrics.ResponsesByProtocol)
	shadowInfer = describe(metrics.ShadowInfer)
	logged      = describe(metrics.DecisionsLogged)
	drifted     = describe(metrics.ObservationDrift)
	driftedBy   = describe(metrics.DriftFeature)
	unlogged    = describe(metrics.DecisionsDropped)
)

var descriptions []*prometheus.Desc

func describe(m metrics.Metric) *prometheus.Desc {
	d := exporter.Desc(m)
	descriptions = append(descriptions, d)
	return d
}

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
	if l, ok := c.service.(*decisions.Log); ok {
		n := l.Counts()
		ch <- prometheus.MustNewConstMetric(logged, prometheus.CounterValue, float64(n.Published))
		ch <- prometheus.MustNewConstMetric(unlogged, prometheus.CounterValue, float64(n.Queue), "queue")
		ch <- prometheus.MustNewConstMetric(unlogged, prometheus.CounterValue, float64(n.Disk), "disk")
		ch <- prometheus.MustNewConstMetric(unlogged, prometheus.CounterValue, float64(n.Form), "form")
		ch <- prometheus.MustNewConstMetric(unlogged, prometheus.CounterValue, float64(n.Removed), "removed")
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
	ch <- times(latency, metrics.Latency.Buckets, &s.Latency, s.Success.Total, s)
	var ran time.Duration
	for _, b := range s.Batches {
		ran += b.Infer.Total
	}
	ch <- times(inference, metrics.Inference.Buckets, &s.Inference, ran, s)
	ch <- rows(s)
	if s.Drift.Rows > 0 {
		send(drifted, prometheus.GaugeValue, s.Drift.PSI)
		send(driftedBy, prometheus.GaugeValue, float64(s.Drift.Feature))
	}
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

// times puts the server's fine buckets into those of a histogram; a fine one that a bound divides
// counts to the next.
func times(d *prometheus.Desc, buckets []float64, l *serve.Latency, total time.Duration, s *serve.Statistics) prometheus.Metric {
	cumulative := make(map[float64]uint64, len(buckets))
	i, n := 0, uint64(0)
	for _, le := range buckets {
		for i < len(l.Bounds) && l.Bounds[i].Seconds() <= le {
			n += l.Counts[i]
			i++
		}
		cumulative[le] = n
	}
	return prometheus.MustNewConstHistogram(d, l.Count, total.Seconds(), cumulative, s.Model, s.Version)
}

func rows(s *serve.Statistics) prometheus.Metric {
	cumulative := make(map[float64]uint64, len(metrics.BatchRows.Buckets))
	total, sum := uint64(0), 0.0
	for _, b := range s.Batches {
		total += b.Infer.Count
		sum += float64(b.Rows) * float64(b.Infer.Count)
		for _, le := range metrics.BatchRows.Buckets {
			if float64(b.Rows) <= le {
				cumulative[le] += b.Infer.Count
			}
		}
	}
	for _, le := range metrics.BatchRows.Buckets {
		cumulative[le] += 0 // every bucket is there
	}
	return prometheus.MustNewConstHistogram(batchRows, total, sum, cumulative, s.Model, s.Version)
}
