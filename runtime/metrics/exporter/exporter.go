package exporter

import (
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/onnxrl/onnxrl/runtime/metrics"
)

// Exporter holds the metrics of a process.
type Exporter struct {
	registry *prometheus.Registry
	now      func() time.Time
	// runs and searches are added with the first of them: a server has none.
	addRuns, addSearches sync.Once
	runs                 *runs
	searches             *searches
}

// New returns an exporter that has nothing to show yet. It reads the time from now.
func New(now func() time.Time) *Exporter {
	return &Exporter{registry: prometheus.NewRegistry(), now: now}
}

// ShowProcess adds what the Go runtime and the operating system tell of the process: memory,
// goroutines, processor time, open files.
func (e *Exporter) ShowProcess() {
	e.registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
}

// Register adds a collector whose metrics are made from lines of the table by [Desc].
func (e *Exporter) Register(c prometheus.Collector) { e.registry.MustRegister(c) }

// Handler answers with the metrics in the text format of Prometheus.
func (e *Exporter) Handler() http.Handler {
	return promhttp.HandlerFor(e.registry, promhttp.HandlerOpts{ErrorHandling: promhttp.ContinueOnError})
}

// WriteFile replaces a file by the metrics, for the textfile collector of node_exporter.
func (e *Exporter) WriteFile(path string) error {
	return prometheus.WriteToTextfile(path, e.registry)
}

// Desc describes a metric of the table to Prometheus' library.
func Desc(m metrics.Metric) *prometheus.Desc {
	return prometheus.NewDesc(m.Name, m.Help, m.Labels, nil)
}

// expect panics where a metric is of another type than the caller thinks.
func expect(m metrics.Metric, t metrics.Type) {
	if m.Type != t {
		panic(fmt.Sprintf("exporter: %s is a %s, not a %s", m.Name, m.Type, t))
	}
}

// Gauges adds a gauge of the table. It panics where the table has no gauge there.
func (e *Exporter) Gauges(m metrics.Metric) *prometheus.GaugeVec {
	expect(m, metrics.Gauge)
	v := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: m.Name, Help: m.Help}, m.Labels)
	e.registry.MustRegister(v)
	return v
}

// Counters adds a counter of the table. It panics where the table has no counter there.
func (e *Exporter) Counters(m metrics.Metric) *prometheus.CounterVec {
	expect(m, metrics.Counter)
	v := prometheus.NewCounterVec(prometheus.CounterOpts{Name: m.Name, Help: m.Help}, m.Labels)
	e.registry.MustRegister(v)
	return v
}

// Histograms adds a histogram of the table. It panics where the table has no histogram there.
func (e *Exporter) Histograms(m metrics.Metric) *prometheus.HistogramVec {
	expect(m, metrics.Histogram)
	v := prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: m.Name, Help: m.Help, Buckets: m.Buckets}, m.Labels)
	e.registry.MustRegister(v)
	return v
}
